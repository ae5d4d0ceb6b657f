package processors

import (
	"slices"

	"deliverystat/codecs"
)

// contributions is what is in memory of count-per-status: what each source
// partition contributes to each scope, the sums, and what is known of each
// partition. It does no I/O.
type contributions struct {
	partitions []codecs.PartitionCounts          // by source partition
	parts      []map[string][]codecs.StatusCount // by source partition and scope
	totals     map[string][]codecs.StatusCount   // by scope
	changed    map[string][]codecs.StatusCount   // by row key, since the last cut
}

func newContributions(partitions int32) *contributions {
	c := &contributions{
		totals:  map[string][]codecs.StatusCount{},
		changed: map[string][]codecs.StatusCount{},
	}
	for p := range partitions {
		c.partitions = append(c.partitions, codecs.PartitionCounts{
			Partition: p, Position: -1, Clock: codecs.None, Horizon: codecs.None, Audit: codecs.Audit{At: codecs.None},
		})
		c.parts = append(c.parts, map[string][]codecs.StatusCount{})
	}
	return c
}

// apply takes in a whole tally. A tally that is older than what is known says
// nothing new: it is read again, or comes from a rebuild that has not caught up.
//
// A full tally of the position that is known can change nothing. drift is what it
// changed all the same: the counts were wrong.
func (c *contributions) apply(t *codecs.Tally) (drift []codecs.StatusCount) {
	known := &c.partitions[t.Partition]
	same := known.TopicID == t.TopicID
	if same && t.Position < known.Position {
		return nil
	}
	checked := t.Full && same && known.Full && t.Position == known.Position && t.SettingsHash == known.SettingsHash
	if checked {
		drift = difference(t.Scopes, c.contribution(t.Partition))
	}
	audit := known.Audit
	switch {
	case !same:
		audit = codecs.Audit{At: codecs.None}
	case checked && t.Check || len(drift) > 0:
		audit.Table = drift
	}
	if t.Audited != codecs.None {
		audit.At, audit.Rows = t.Audited, t.Drift
	}
	if t.Full || !same {
		told := make(map[string]bool, len(t.Scopes))
		for _, sc := range t.Scopes {
			told[sc.Scope] = true
		}
		for scope := range c.parts[t.Partition] {
			if !told[scope] {
				c.set(t.Partition, scope, nil)
			}
		}
	}
	for _, sc := range t.Scopes {
		c.set(t.Partition, sc.Scope, normalCounts(sc.Counts))
	}
	*known = codecs.PartitionCounts{
		Partition:    t.Partition,
		TopicID:      t.TopicID,
		Position:     t.Position,
		Clock:        t.Clock,
		Horizon:      t.Horizon,
		SettingsHash: t.SettingsHash,
		Full:         t.Full || same && known.Full,
		Audit:        audit,
	}
	return drift
}

// contribution returns what partition p contributes.
func (c *contributions) contribution(p int32) []codecs.ScopeCounts {
	all := make([]codecs.ScopeCounts, 0, len(c.parts[p]))
	for scope, counts := range c.parts[p] {
		all = append(all, codecs.ScopeCounts{Scope: scope, Counts: counts})
	}
	return all
}

// set replaces what partition p contributes to scope, and moves the total.
func (c *contributions) set(p int32, scope string, counts []codecs.StatusCount) {
	old := c.parts[p][scope]
	if slices.Equal(old, counts) {
		return
	}
	if len(counts) == 0 {
		delete(c.parts[p], scope)
	} else {
		c.parts[p][scope] = counts
	}
	c.changed[codecs.ContributionKey(p, scope)] = counts
	c.setTotal(scope, addCounts(addCounts(c.totals[scope], counts, +1), old, -1))
}

func (c *contributions) setTotal(scope string, counts []codecs.StatusCount) {
	if len(counts) == 0 && scope != AllScope {
		delete(c.totals, scope)
	} else {
		c.totals[scope] = counts
	}
	c.changed[codecs.TotalKey(scope)] = counts
}

// gap says that tallies of partition p may have been missed: what it contributes
// is not known until it tells all.
func (c *contributions) gap(p int32) { c.partitions[p].Full = false }

// gapAll says so of every partition.
func (c *contributions) gapAll() {
	for p := range c.partitions {
		c.gap(int32(p))
	}
}

// recount makes the totals the sums of the contributions. It returns the scopes
// whose stored total was another one.
func (c *contributions) recount() []string {
	sums := map[string][]codecs.StatusCount{AllScope: {}}
	for _, scopes := range c.parts {
		for scope, counts := range scopes {
			sums[scope] = addCounts(sums[scope], counts, +1)
		}
	}
	var wrong []string
	for scope, sum := range sums {
		if total, ok := c.totals[scope]; !ok || !slices.Equal(total, sum) {
			if ok || scope != AllScope {
				wrong = append(wrong, scope)
			}
			c.setTotal(scope, sum)
		}
	}
	for scope := range c.totals {
		if _, ok := sums[scope]; !ok {
			wrong = append(wrong, scope)
			c.setTotal(scope, nil)
		}
	}
	return wrong
}

// assembly holds the parts of tallies that have not come whole.
type assembly struct {
	held map[int32]*heldTally
}

// heldTally is the first parts of one tally.
type heldTally struct {
	tally *codecs.Tally // with the scopes of all parts so far
	from  int64         // offset of part 0
}

// add takes in the part at offset. It returns the whole tally once the last part
// is there. lost says that parts are missing, which only the loss of records
// explains: the parts of a tally are written in one transaction.
func (a *assembly) add(t *codecs.Tally, offset int64) (whole *codecs.Tally, lost bool) {
	if a.held == nil {
		a.held = map[int32]*heldTally{}
	}
	held := a.held[t.Partition]
	if held != nil && !held.continues(t) {
		delete(a.held, t.Partition)
		held, lost = nil, true
	}
	switch {
	case held == nil && t.Part != 0:
		return nil, true
	case held == nil && t.Parts <= 1:
		return t, lost
	case held == nil:
		a.held[t.Partition] = &heldTally{t, offset}
		return nil, lost
	}
	held.tally.Scopes = append(held.tally.Scopes, t.Scopes...)
	held.tally.Part = t.Part
	if t.Part < t.Parts-1 {
		return nil, lost
	}
	delete(a.held, t.Partition)
	return held.tally, lost
}

func (h *heldTally) continues(t *codecs.Tally) bool {
	w := h.tally
	return t.Part == w.Part+1 && t.Parts == w.Parts && t.Position == w.Position && t.TopicID == w.TopicID && t.Full == w.Full
}

// first returns the offset of the first part that is held, or next if none is.
func (a *assembly) first(next int64) int64 {
	for _, h := range a.held {
		next = min(next, h.from)
	}
	return next
}
