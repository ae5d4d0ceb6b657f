package market

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// arrival is a record in the order of production.
type arrival struct {
	at      int64
	step    int32
	kind    Kind
	variant uint8 // the spelling of an event, the fault of a malformed record
}

// pick draws n of candidates, or all if there are fewer. It reorders them.
func pick(r *rand.Rand, candidates []int32, n int) []int32 {
	n = min(n, len(candidates))
	for i := range n {
		j := i + r.IntN(len(candidates)-i)
		candidates[i], candidates[j] = candidates[j], candidates[i]
	}
	return candidates[:n]
}

// arrive decides when the events arrive, and what arrives besides.
func (m *Market) arrive(r *rand.Rand) {
	o := &m.options
	m.arrivals = make([]arrival, len(m.steps), o.Events)
	for i := range m.steps {
		m.arrivals[i] = arrival{at: m.steps[i].produced, step: int32(i)}
	}
	m.delay(r, o.number(o.Late))
	m.overtake(r, o.number(o.OutOfOrder))

	var known []int32
	for i := range m.steps {
		if m.steps[i].unknown == 0 {
			known = append(known, int32(i))
		}
	}
	for range o.number(o.Duplicates) {
		i := int32(r.IntN(len(m.steps)))
		if len(known) > 0 {
			i = known[r.IntN(len(known))]
		}
		a := arrival{at: m.arrivals[i].at, step: i, kind: IsDuplicate}
		if r.IntN(2) == 0 { // else at once, as a producer that retries
			a.at += int64(r.ExpFloat64() * float64(o.Span) / 60)
		}
		if r.IntN(4) == 0 {
			a.variant = uint8(another)
		}
		m.arrivals = append(m.arrivals, a)
	}
	for n := range o.number(o.Malformed) {
		m.arrivals = append(m.arrivals, arrival{
			at:      o.End.Add(-o.Span).UnixNano() + r.Int64N(int64(o.Span)),
			step:    int32(r.IntN(len(m.steps))),
			kind:    IsMalformed,
			variant: uint8(n % len(faults)),
		})
	}
	slices.SortFunc(m.arrivals, func(a, b arrival) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind),
			cmp.Compare(a.step, b.step), cmp.Compare(a.variant, b.variant))
	})
}

// delay lets n events arrive after the completion of their delivery.
func (m *Market) delay(r *rand.Rand, n int) {
	completion := make([]int64, len(m.deliveries))
	for i := range m.steps {
		if m.terminal(i) {
			completion[m.steps[i].delivery] = m.steps[i].produced
		}
	}
	var candidates []int32
	for i := range m.steps {
		if !m.terminal(i) && completion[m.steps[i].delivery] != 0 {
			candidates = append(candidates, int32(i))
		}
	}
	for _, i := range pick(r, candidates, n) {
		m.arrivals[i].kind = IsLate
		m.arrivals[i].at = completion[m.steps[i].delivery] + int64(r.ExpFloat64()*float64(m.options.Span)/20)
	}
}

// overtake lets n events arrive right after the next one of their delivery that
// keeps its place and does not complete it. The last such one is never moved.
func (m *Market) overtake(r *rand.Rand, n int) {
	var candidates []int32
	last := int32(-1) // the last event that may keep its place, of the delivery at hand
	for i := int32(len(m.steps)) - 1; i >= 0; i-- {
		if last >= 0 && m.steps[last].delivery != m.steps[i].delivery {
			last = -1
		}
		switch {
		case m.arrivals[i].kind == IsLate || m.terminal(int(i)):
		case last < 0:
			last = i
		default:
			candidates = append(candidates, i)
		}
	}
	for _, i := range pick(r, candidates, n) {
		m.arrivals[i].kind = IsOutOfOrder
	}
	var anchor int32
	for i := int32(len(m.steps)) - 1; i >= 0; i-- {
		switch m.arrivals[i].kind {
		case InOrder:
			anchor = i // for a candidate before it: no completion lies between
		case IsOutOfOrder:
			m.arrivals[i].at = m.arrivals[anchor].at
		case IsLate, IsDuplicate, IsMalformed:
		}
	}
}
