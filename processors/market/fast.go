package market

import (
	"container/heap"
	"math"

	"deliverystat/codecs"
)

// FastModel answers like [Model] for verdicts, clock, horizon and counts, at a
// cost per record that does not grow with what was read before. It is checked
// against Model by a property test, and is the model for long logs.
type FastModel struct {
	Rules Rules

	Clock       int64 // as in Model
	Horizon     int64
	FirstRecord int64
	LastRecord  int64

	rows    map[string]*fastRow
	due     dueHeap
	waiting []string // due to be forgotten, once enough of the log was read
	counts  map[string][]int32
	changed func(scope string, counts []int32) // may be nil
}

// fastRow is what is kept of one delivery.
type fastRow struct {
	horizon   int64
	newest    *codecs.Event
	carried   [codecs.NumAttributes]*codecs.Event // newest event with the attribute
	last      int64                               // greatest event time
	lastOrder int64                               // greatest order time
	counted   codecs.Status                       // the status it is counted in
	scopes    []string                            // the scopes it is counted in; nil: not counted
}

// NewFastModel returns the model of a partition that nothing was read from.
func NewFastModel(rules Rules) *FastModel {
	m := &FastModel{
		Rules: rules,
		Clock: codecs.None, Horizon: codecs.None, FirstRecord: codecs.None, LastRecord: codecs.None,
		rows: map[string]*fastRow{}, counts: map[string][]int32{},
	}
	m.counts[""] = make([]int32, rules.Lifecycle.Len())
	return m
}

// Apply reads the next record. It keeps the event, which must not change
// afterwards.
func (m *FastModel) Apply(e Entry) Verdict {
	if m.FirstRecord == codecs.None {
		m.FirstRecord = e.Timestamp
	}
	m.LastRecord = max(m.LastRecord, e.Timestamp)
	v := m.read(e)
	m.expire()
	return v
}

func (m *FastModel) read(e Entry) Verdict {
	if e.Event == nil && e.Reason == "" {
		return Verdict{Result: Ignored}
	}
	if e.Event == nil {
		return Verdict{DeadLetter, e.Reason}
	}
	if reason, refused := m.Rules.implausible(e); refused {
		return Verdict{DeadLetter, reason}
	}
	m.Clock = max(m.Clock, e.Event.OccurredAt)
	m.expire()
	return m.merge(e.Event, e.AcceptLate)
}

func (m *FastModel) merge(e *codecs.Event, acceptLate bool) Verdict {
	r := m.rows[e.DeliveryID]
	horizon := m.Horizon
	if r != nil {
		horizon = r.horizon
	}
	if !acceptLate && m.Rules.orderTime(e) <= horizon {
		return Verdict{DeadLetter, codecs.TooLate}
	}
	result := Applied
	if r == nil {
		r = &fastRow{horizon: horizon, last: e.OccurredAt, lastOrder: m.Rules.orderTime(e)}
		m.rows[e.DeliveryID] = r
	} else if c := m.Rules.compare(e, r.newest); c == 0 {
		result = Duplicate
	} else if c < 0 {
		result = Stale
	}
	if result == Applied {
		r.newest = e
	}
	for a := range codecs.NumAttributes {
		if e.Attributes[a] != "" && (r.carried[a] == nil || m.Rules.compare(e, r.carried[a]) > 0) {
			r.carried[a] = e
		}
	}
	r.last = max(r.last, e.OccurredAt)
	r.lastOrder = max(r.lastOrder, m.Rules.orderTime(e))
	m.place(e.DeliveryID, r)
	return Verdict{Result: result}
}

// closes says when r closes or closed, math.MaxInt64 if it never does.
func (m *FastModel) closes(r *fastRow) int64 {
	switch {
	case m.Rules.Lifecycle.Terminal(r.newest.Status):
		return r.newest.OccurredAt
	case m.Rules.AbandonAfter > 0:
		return r.last + int64(m.Rules.AbandonAfter)
	}
	return math.MaxInt64
}

// place counts r where it belongs under the present clock, or forgets it.
func (m *FastModel) place(id string, r *fastRow) {
	closes, status := m.closes(r), r.newest.Status
	if terminal := m.Rules.Lifecycle.Terminal(status); !terminal && closes >= m.Clock {
		m.count(r, status)
		m.wake(id, closes)
		return
	} else if !terminal {
		status = m.Rules.Lifecycle.Abandoned()
	}
	switch forgets := closes + int64(m.Rules.Lateness); {
	case forgets >= m.Clock:
		m.wake(id, forgets)
	case m.LastRecord < m.FirstRecord+int64(m.Rules.Lateness):
		m.waiting = append(m.waiting, id)
	default:
		m.uncount(r)
		delete(m.rows, id)
		m.Horizon = max(m.Horizon, r.lastOrder)
		return
	}
	m.count(r, status)
}

// wake has id looked at again when the clock exceeds at.
func (m *FastModel) wake(id string, at int64) {
	if at != math.MaxInt64 {
		heap.Push(&m.due, dueRow{at, id})
	}
}

// expire places anew every row whose time has come.
func (m *FastModel) expire() {
	for len(m.due) > 0 && m.due[0].at < m.Clock {
		id := heap.Pop(&m.due).(dueRow).id
		if r := m.rows[id]; r != nil {
			m.place(id, r)
		}
	}
	if len(m.waiting) > 0 && m.LastRecord >= m.FirstRecord+int64(m.Rules.Lateness) {
		waiting := m.waiting
		m.waiting = nil
		for _, id := range waiting {
			if r := m.rows[id]; r != nil {
				m.place(id, r)
			}
		}
	}
}

// count moves r to status and to the scopes of its attributes.
func (m *FastModel) count(r *fastRow, status codecs.Status) {
	var attributes [codecs.NumAttributes]string
	for a, e := range r.carried {
		if e != nil {
			attributes[a] = e.Attributes[a]
		}
	}
	if r.scopes != nil && r.counted == status && m.sameScopes(r, attributes) {
		return
	}
	m.uncount(r)
	r.counted, r.scopes = status, m.Rules.scopes(attributes)
	m.add(r, 1)
}

func (m *FastModel) sameScopes(r *fastRow, attributes [codecs.NumAttributes]string) bool {
	for i, d := range m.Rules.Dimensions {
		if r.scopes[i+1][len(d.String())+1:] != attributes[d] {
			return false
		}
	}
	return true
}

func (m *FastModel) uncount(r *fastRow) {
	m.add(r, -1)
	r.scopes = nil
}

func (m *FastModel) add(r *fastRow, n int32) {
	for _, scope := range r.scopes {
		counts := m.counts[scope]
		if counts == nil {
			counts = make([]int32, m.Rules.Lifecycle.Len())
			m.counts[scope] = counts
		}
		counts[r.counted] += n
		if m.changed != nil {
			m.changed(scope, counts)
		}
	}
}

// Counts returns the live and the closed deliveries of a scope by status name,
// every status named.
func (m *FastModel) Counts(scope string) (live, closed map[string]int) {
	return named(m.Rules.Lifecycle, m.counts[scope])
}

// named gives counts their names. A status is counted either as live or as
// closed, so one number per status is enough.
func named(l *codecs.Lifecycle, counts []int32) (live, closed map[string]int) {
	live, closed = zeros(l)
	for s, n := range counts {
		if info := l.Info(codecs.Status(s)); info.Terminal {
			closed[info.Name] = int(n)
		} else {
			live[info.Name] = int(n)
		}
	}
	return live, closed
}

// dueRow is a row to look at once the clock exceeds at. Rows that moved
// meanwhile are looked at in vain.
type dueRow struct {
	at int64
	id string
}

type dueHeap []dueRow

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h dueHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *dueHeap) Push(x any)        { *h = append(*h, x.(dueRow)) }
func (h *dueHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
