package processors

// rowCache bounds the decoded rows that entries hold, in two generations: a row
// that was not touched during one whole generation goes. A row that is not yet
// committed may go too: its epoch has it.
type rowCache struct {
	limit      int // rows per generation
	generation uint32
	young, old []*entry
}

// newRowCache returns a cache that holds about limit rows.
func newRowCache(limit int) rowCache {
	return rowCache{limit: max(1, limit/2), generation: 1}
}

// touch says that e's row is in memory and was used.
func (c *rowCache) touch(e *entry) {
	if e.touched == c.generation {
		return
	}
	e.touched = c.generation
	c.young = append(c.young, e)
	if len(c.young) < c.limit {
		return
	}
	for i, o := range c.old {
		if o.touched != c.generation {
			o.row = nil
		}
		c.old[i] = nil
	}
	c.young, c.old = c.old[:0], c.young
	c.generation++
}
