package api

import (
	"encoding/json"
	"slices"
	"strings"

	"deliverystat/codecs"
)

// statusCount is one member of a counts object.
type statusCount struct {
	name  string
	count int64
}

// statusCounts is a JSON object in the order of its entries: statuses come in
// lifecycle order, which readers like and map order would lose.
type statusCounts []statusCount

// MarshalJSON implements json.Marshaler.
func (c statusCounts) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, s := range c {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, jsonString(s.name)...)
		b = append(b, ':')
		count, err := json.Marshal(s.count)
		if err != nil {
			return nil, err
		}
		b = append(b, count...)
	}
	return append(b, '}'), nil
}

// tallies are the counts of one scope as the API shows them.
type tallies struct {
	Counts statusCounts `json:"counts"`
	Live   int64        `json:"live"`
	Closed statusCounts `json:"closed"`
}

// talliesOf shows the counts of a scope: every live status and every terminal
// one, zero where nothing is counted. A status that the lifecycle does not have
// (a partition may still count by an older one) is shown too, at the end:
// leaving it out would make live wrong.
func talliesOf(lifecycle *codecs.Lifecycle, scope codecs.ScopeCounts) tallies {
	var t tallies
	place := make([]int, lifecycle.Len()) // of each status within its object
	for i := range lifecycle.Len() {
		s := codecs.Status(i)
		object := &t.Counts
		if lifecycle.Terminal(s) {
			object = &t.Closed
		}
		place[i] = len(*object)
		*object = append(*object, statusCount{name: lifecycle.Name(s)})
	}
	for _, c := range scope.Counts {
		t.Live += c.Live
		s, known := lifecycle.Lookup(c.Status)
		switch {
		case known && !lifecycle.Terminal(s):
			t.Counts[place[s]].count = c.Live
		case c.Live != 0:
			t.Counts = append(t.Counts, statusCount{c.Status, c.Live})
		}
		switch {
		case known && lifecycle.Terminal(s):
			t.Closed[place[s]].count = c.Closed
		case c.Closed != 0:
			t.Closed = append(t.Closed, statusCount{c.Status, c.Closed})
		}
	}
	return t
}

// countOf returns the count of s in a scope: of live deliveries, or of closed
// ones if s is terminal.
func countOf(lifecycle *codecs.Lifecycle, scope codecs.ScopeCounts, s codecs.Status) int64 {
	name := lifecycle.Name(s)
	for _, c := range scope.Counts {
		if c.Status == name {
			if lifecycle.Terminal(s) {
				return c.Closed
			}
			return c.Live
		}
	}
	return 0
}

// valuesOf returns the values of a dimension that a snapshot has counts of, in
// order.
func valuesOf(snapshot *codecs.Counts, dimension string) []string {
	var values []string
	for scope := range snapshot.Groups {
		if value, ok := strings.CutPrefix(scope, dimension+"="); ok {
			values = append(values, value)
		}
	}
	slices.Sort(values)
	return values
}
