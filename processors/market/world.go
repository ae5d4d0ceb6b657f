package market

import (
	"fmt"
	"slices"
	"sort"

	"deliverystat/codecs"
)

// World is the truth about a recorded log of several partitions, at every
// position in it. Feed it the log once; answers then take the time of a binary
// search per partition.
type World struct {
	rules      Rules
	partitions []*prefixes
}

// prefixes remembers the counts of one partition after each offset at which
// they changed.
type prefixes struct {
	model    *FastModel
	next     int64               // next offset to append
	scopes   map[string][]counts // by scope, in log order
	clock    []clock
	verdicts map[Verdict]int
}

// counts are the absolute counts by status from an offset on.
type counts struct {
	offset int64
	n      []int32
}

type clock struct{ offset, at int64 }

// NewWorld returns the truth about an empty input with that many partitions.
func NewWorld(rules Rules, partitions int) *World {
	w := &World{rules: rules}
	for range partitions {
		p := &prefixes{model: NewFastModel(rules), scopes: map[string][]counts{}, verdicts: map[Verdict]int{}}
		p.model.changed = p.record
		w.partitions = append(w.partitions, p)
	}
	return w
}

// Append adds the record at offset. Offsets of a partition must grow; they may
// have gaps, where transaction markers are. It panics if they do not, for then
// every later answer would be about another log.
func (w *World) Append(partition int32, offset int64, e Entry) Verdict {
	p := w.partitions[partition]
	if offset < p.next {
		panic(fmt.Sprintf("market: offset %d of partition %d after %d", offset, partition, p.next-1))
	}
	p.next = offset
	v := p.model.Apply(e)
	if n := len(p.clock); n == 0 || p.clock[n-1].at != p.model.Clock {
		p.clock = append(p.clock, clock{offset, p.model.Clock})
	}
	p.verdicts[v]++
	p.next = offset + 1
	return v
}

// record keeps the counts of scope as of the record that is being applied.
func (p *prefixes) record(scope string, n []int32) {
	history := p.scopes[scope]
	if last := len(history) - 1; last >= 0 && history[last].offset == p.next {
		copy(history[last].n, n)
		return
	}
	p.scopes[scope] = append(history, counts{p.next, slices.Clone(n)})
}

// End returns the position after all records that were appended.
func (w *World) End() []int64 {
	next := make([]int64, len(w.partitions))
	for i, p := range w.partitions {
		next[i] = p.next
	}
	return next
}

// Counts returns the counts of scope when next[p] is the next offset of each
// partition p: the live and the closed deliveries by status name, every status
// named. A negative or missing offset means that nothing of p is reflected.
func (w *World) Counts(scope string, next []int64) (live, closed map[string]int) {
	total := make([]int32, w.rules.Lifecycle.Len())
	for i, p := range w.partitions[:min(len(next), len(w.partitions))] {
		history := p.scopes[scope]
		at := sort.Search(len(history), func(j int) bool { return history[j].offset >= next[i] })
		if at == 0 {
			continue
		}
		for s, n := range history[at-1].n {
			total[s] += n
		}
	}
	return named(w.rules.Lifecycle, total)
}

// EventTime returns the greatest event time not refused before next, or
// codecs.None.
func (w *World) EventTime(next []int64) int64 {
	newest := int64(codecs.None)
	for i, p := range w.partitions[:min(len(next), len(w.partitions))] {
		at := sort.Search(len(p.clock), func(j int) bool { return p.clock[j].offset >= next[i] })
		if at > 0 {
			newest = max(newest, p.clock[at-1].at)
		}
	}
	return newest
}

// Scopes returns every scope that ever counted a delivery, sorted.
func (w *World) Scopes() []string {
	var scopes []string
	for _, p := range w.partitions {
		for scope := range p.scopes {
			scopes = append(scopes, scope)
		}
	}
	slices.Sort(scopes)
	return slices.Compact(scopes)
}

// Results returns how many records had each result.
func (w *World) Results() map[Result]int {
	results := map[Result]int{}
	for _, p := range w.partitions {
		for v, n := range p.verdicts {
			results[v.Result] += n
		}
	}
	return results
}

// DeadLetters returns how many records were refused for each reason.
func (w *World) DeadLetters() map[codecs.Reason]int {
	reasons := map[codecs.Reason]int{}
	for _, p := range w.partitions {
		for v, n := range p.verdicts {
			if v.Result == DeadLetter {
				reasons[v.Reason] += n
			}
		}
	}
	return reasons
}
