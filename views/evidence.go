package views

import (
	"slices"
	"sort"
	"time"

	"deliverystat/codecs"
)

// resolution is how finely the past is remembered: a probe goes once those
// beside it are closer to each other than their age divided by this. So a bound
// of some age is too wide by no more than that part of it, and a few hundred
// probes suffice for years.
const resolution = 32

// maxGaps bounds the remembered gaps of one partition.
const maxGaps = 8

// Probe says where the input topic ended at one time.
type Probe struct {
	TopicID string
	// At is when the request for Stable was sent: everything that
	// read-committed readers could see then lies below Stable.
	At     time.Time
	Stable []int64 // last stable offset, by partition
	High   []int64 // high watermark, by partition, read before Stable
}

// gap is a range of offsets [from, to) of one partition that holds no committed
// record: only transaction markers, aborted records, or what compaction and
// retention have left of others.
type gap struct{ from, to int64 }

// evidence is what probes have shown of one life of the input topic. It is
// immutable: each new fact makes a new one.
type evidence struct {
	topicID string
	probes  []*Probe // oldest first; no end ever goes back
	gaps    [][]gap  // by partition, oldest knowledge first
	former  *evidence
}

// with adds a probe.
func (e *evidence) with(p *Probe) *evidence {
	if e == nil || e.topicID != p.TopicID || len(e.gaps) != len(p.Stable) {
		next := &evidence{topicID: p.TopicID, probes: []*Probe{p}, gaps: make([][]gap, len(p.Stable))}
		if e != nil && e.topicID != p.TopicID {
			next.former = &evidence{topicID: e.topicID, probes: e.probes, gaps: e.gaps}
		}
		return next
	}
	next := *e
	if covers(p.Stable, e.newest().Stable) {
		next.probes = append(thin(e.probes, p.At), p)
	} else {
		// An end that went back means that an unclean election cut the log:
		// what lay beyond it proves nothing any more.
		keep := len(e.probes)
		for keep > 0 && !covers(p.Stable, e.probes[keep-1].Stable) {
			keep--
		}
		next.probes = append(slices.Clone(e.probes[:keep]), p)
		next.gaps = make([][]gap, len(e.gaps))
	}
	return &next
}

// covers reports whether a is at least b in every partition.
func covers(a, b []int64) bool {
	for i := range b {
		if a[i] < b[i] {
			return false
		}
	}
	return true
}

// thin returns a copy of probes without those that are not needed any more.
func thin(probes []*Probe, now time.Time) []*Probe {
	kept := make([]*Probe, 0, len(probes)+1)
	for i, p := range probes {
		if i > 0 && i < len(probes)-1 {
			before, after := kept[len(kept)-1].At, probes[i+1].At
			if after.Sub(before) < now.Sub(after)/resolution {
				continue
			}
		}
		kept = append(kept, p)
	}
	return kept
}

// withGap adds what was found out about one partition.
func (e *evidence) withGap(partition int32, g gap) *evidence {
	if g.from >= g.to {
		return e
	}
	next := *e
	next.gaps = slices.Clone(e.gaps)
	gaps := slices.Clone(e.gaps[partition])
	// A gap that continues the last one is the same gap.
	if n := len(gaps); n > 0 && g.from <= gaps[n-1].to && g.from >= gaps[n-1].from {
		gaps[n-1].to = max(gaps[n-1].to, g.to)
	} else {
		gaps = append(gaps, g)
	}
	if len(gaps) > maxGaps {
		gaps = gaps[1:]
	}
	next.gaps[partition] = gaps
	return &next
}

// raise returns the offset that a reader at next has in truth reached: beyond
// the gap that it stands in.
func (e *evidence) raise(partition int, next int64) int64 {
	for again := true; again; {
		again = false
		for _, g := range e.gaps[partition] {
			if g.from <= next && next < g.to {
				next, again = g.to, true
			}
		}
	}
	return next
}

// visible returns the end below which the last committed record before end
// lies, as far as known.
func (e *evidence) visible(partition int, end int64) int64 {
	for _, g := range e.gaps[partition] {
		if g.from < end && end <= g.to {
			return g.from
		}
	}
	return end
}

// raised returns the raised offsets of p, -1 in the partitions that p does not
// name; false if it names none, or is of a time when there were fewer.
func (e *evidence) raised(p codecs.Position) (next []int64, ok bool) {
	if len(p.Next) < len(e.gaps) {
		return nil, false
	}
	next = make([]int64, len(e.gaps))
	for i := range next {
		next[i] = -1
		if p.Next[i] >= 0 {
			next[i], ok = e.raise(i, p.Next[i]), true
		}
	}
	return next, ok
}

// reached returns the newest probe whose ends p reaches in every partition that
// it names, or nil.
func (e *evidence) reached(p codecs.Position) *Probe {
	if p.TopicID != e.topicID {
		if e.former != nil && e.former.topicID == p.TopicID {
			return e.former.reached(p)
		}
		return nil
	}
	next, ok := e.raised(p)
	if !ok {
		return nil
	}
	// No end goes back, so those reached come first.
	n := sort.Search(len(e.probes), func(i int) bool {
		for partition, end := range e.probes[i].Stable {
			if next[partition] >= 0 && next[partition] < end {
				return true
			}
		}
		return false
	})
	if n == 0 {
		return nil
	}
	return e.probes[n-1]
}

// newest returns the last probe.
func (e *evidence) newest() *Probe { return e.probes[len(e.probes)-1] }

// lag returns the committed records of one partition that p does not reflect
// yet, counted in offsets up to the newest known end; false if p does not name
// the partition.
func (e *evidence) lag(partition int, p codecs.Position) (int64, bool) {
	if partition >= len(p.Next) || p.Next[partition] < 0 {
		return 0, false
	}
	end, next := e.newest().Stable[partition], p.Next[partition]
	if p.TopicID != e.topicID {
		return e.visible(partition, end), true // none of this life is reflected
	}
	if e.raise(partition, next) >= end {
		return 0, true
	}
	return e.visible(partition, end) - next, true
}
