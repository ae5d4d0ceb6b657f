package audit

import (
	"cmp"
	"maps"
	"slices"

	"deliverystat/codecs"
)

// Count is a number of deliveries in one status.
type Count struct{ Live, Closed int64 }

// Counts are counts by scope and status name. A scope or status that is absent
// counts 0: counts are compared as if every absent one were there.
type Counts map[string]map[string]Count

// Add adds n to the count of a scope and status.
func (c Counts) Add(scope, status string, n Count) {
	statuses := c[scope]
	if statuses == nil {
		statuses = map[string]Count{}
		c[scope] = statuses
	}
	old := statuses[status]
	statuses[status] = Count{old.Live + n.Live, old.Closed + n.Closed}
}

// AddAll adds every count of other.
func (c Counts) AddAll(other Counts) {
	for scope, statuses := range other {
		for status, n := range statuses {
			c.Add(scope, status, n)
		}
	}
}

// AddRow adds the counts of one scope as a tally or a row of the table
// count-per-status gives them.
func (c Counts) AddRow(scope string, counts []codecs.StatusCount) {
	for _, n := range counts {
		c.Add(scope, n.Status, Count{n.Live, n.Closed})
	}
}

// Deliveries returns the number of all deliveries, live and closed.
func (c Counts) Deliveries() Count {
	var all Count
	for _, n := range c[""] {
		all.Live += n.Live
		all.Closed += n.Closed
	}
	return all
}

// Difference is one count that is not what the recount says.
type Difference struct {
	Scope, Status string
	Got, Want     Count // Want is the recount
}

// Compare returns where got differs from want, the recount, ordered by scope
// and status.
func Compare(got, want Counts) []Difference {
	var differences []Difference
	for _, scope := range keys(got, want) {
		for _, status := range keys(got[scope], want[scope]) {
			if g, w := got[scope][status], want[scope][status]; g != w {
				differences = append(differences, Difference{scope, status, g, w})
			}
		}
	}
	return differences
}

// keys returns the keys of both maps, sorted.
func keys[K cmp.Ordered, V any](a, b map[K]V) []K {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(all)
	return slices.Compact(all)
}
