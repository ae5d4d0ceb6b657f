package processors

import (
	"cmp"
	"slices"
)

// graves are the keys of forgotten rows whose deletes are to be written.
type graves struct {
	waiting map[string]grave // in line
	line    []string         // oldest first; keys that wait no more are skipped
	buried  map[string]int32 // deleted by the running epoch: its slot
}

// grave is a forgotten row that the table still has.
type grave struct {
	key  string
	owes bool   // its last summary, which goes with the delete
	row  []byte // nil if it is not in memory
}

func newGraves() graves {
	return graves{waiting: map[string]grave{}, buried: map[string]int32{}}
}

// queue puts a delete in line.
func (g *graves) queue(e grave) {
	if _, waits := g.waiting[e.key]; waits {
		return
	}
	if !e.owes {
		e.row = nil // is not needed any more
	}
	g.waiting[e.key] = e
	g.line = append(g.line, e.key)
}

// bury notes that the running epoch deletes key in slot.
func (g *graves) bury(key string, slot int32) { g.buried[key] = slot }

// reopen drops the delete of key, which is written anew. It returns the slot of
// a delete that the running epoch has already.
func (g *graves) reopen(key string) (slot int32, buried bool) {
	if len(g.waiting) > 0 {
		delete(g.waiting, key)
	}
	if len(g.buried) > 0 {
		slot, buried = g.buried[key]
		delete(g.buried, key)
	}
	return slot, buried
}

// pending reports whether deletes are in line.
func (g *graves) pending() bool { return len(g.waiting) > 0 }

// take removes the oldest from the line for the epoch that is being cut: at most
// n, and at most owing of those that owe a summary.
func (g *graves) take(n, owing int) []grave {
	clear(g.buried)
	if len(g.waiting) == 0 {
		g.line = nil
		return nil
	}
	taken := make([]grave, 0, min(n, len(g.waiting)))
	i := 0
	for ; i < len(g.line) && len(taken) < n; i++ {
		e, waits := g.waiting[g.line[i]]
		if !waits {
			continue
		}
		if e.owes {
			if owing == 0 {
				break
			}
			owing--
		}
		taken = append(taken, e)
		delete(g.waiting, g.line[i])
	}
	g.line = g.line[i:]
	return taken
}

// dueGrave is a forgotten row found in recovery.
type dueGrave struct {
	due int64
	grave
}

// queueAll puts the deletes of rows in line, oldest first.
func (g *graves) queueAll(rows []dueGrave) {
	slices.SortFunc(rows, func(a, b dueGrave) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.key, b.key))
	})
	for _, r := range rows {
		g.queue(r.grave)
	}
}
