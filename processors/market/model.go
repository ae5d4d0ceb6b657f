package market

import (
	"slices"

	"deliverystat/codecs"
)

// Model is the dumb reference model of one partition. It is told the records in
// log order, keeps all events of each delivery's present life, and recomputes
// every answer from them. It is slow on purpose.
type Model struct {
	Rules    Rules
	Verdicts []Verdict // of every record, in log order

	Clock       int64 // greatest event time of any event not refused; codecs.None
	Horizon     int64 // greatest order time of any event of a forgotten life; codecs.None
	FirstRecord int64 // timestamp of the first record; codecs.None
	LastRecord  int64 // greatest record timestamp; codecs.None

	lives map[string]*life
}

// life is what is remembered of one delivery.
type life struct {
	horizon int64          // of the partition when the life began
	events  []codecs.Event // all that were merged, in order of arrival
}

// NewModel returns the model of a partition that nothing was read from.
func NewModel(rules Rules) *Model {
	return &Model{
		Rules: rules,
		Clock: codecs.None, Horizon: codecs.None, FirstRecord: codecs.None, LastRecord: codecs.None,
		lives: map[string]*life{},
	}
}

// Apply reads the next record.
func (m *Model) Apply(e Entry) Verdict {
	if m.FirstRecord == codecs.None {
		m.FirstRecord = e.Timestamp
	}
	m.LastRecord = max(m.LastRecord, e.Timestamp)
	v := m.read(e)
	m.forget()
	m.Verdicts = append(m.Verdicts, v)
	return v
}

func (m *Model) read(e Entry) Verdict {
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
	m.forget()
	return m.merge(e.Event, e.AcceptLate)
}

func (m *Model) merge(e *codecs.Event, acceptLate bool) Verdict {
	l := m.lives[e.DeliveryID]
	if l == nil {
		l = &life{horizon: m.Horizon}
	}
	if !acceptLate && l.horizon != codecs.None && m.Rules.orderTime(e) <= l.horizon {
		return Verdict{DeadLetter, codecs.TooLate}
	}
	result := Applied
	if len(l.events) > 0 {
		switch c := m.Rules.compare(e, m.newest(l, every)); {
		case c == 0:
			result = Duplicate
		case c < 0:
			result = Stale
		}
	}
	l.events = append(l.events, *e)
	m.lives[e.DeliveryID] = l
	return Verdict{Result: result}
}

// forget ends every life that is due.
func (m *Model) forget() {
	if m.FirstRecord == codecs.None || m.LastRecord < m.FirstRecord+int64(m.Rules.Lateness) {
		return
	}
	for id, l := range m.lives {
		d := m.delivery(id, l)
		if d.Closed && d.ClosedAt+int64(m.Rules.Lateness) < m.Clock {
			for _, e := range l.events {
				m.Horizon = max(m.Horizon, m.Rules.orderTime(&e))
			}
			delete(m.lives, id)
		}
	}
}

func every(*codecs.Event) bool { return true }

// newest finds the greatest event of l that satisfies ok, or nil.
func (m *Model) newest(l *life, ok func(*codecs.Event) bool) *codecs.Event {
	var newest *codecs.Event
	for i := range l.events {
		if e := &l.events[i]; ok(e) && (newest == nil || m.Rules.compare(e, newest) > 0) {
			newest = e
		}
	}
	return newest
}

// delivery works out where a delivery stands. An abandoned one has its
// abandonment as Since and keeps the event time of its newest event.
func (m *Model) delivery(id string, l *life) codecs.Delivery {
	newest := m.newest(l, every)
	d := codecs.Delivery{
		ID: id, Status: newest.Status, RawStatus: newest.RawStatus, OccurredAt: newest.OccurredAt,
		ClosedAt: codecs.None, Timeline: timeline(l.events),
	}
	d.Since = since(newest, l.events)
	for a := range codecs.NumAttributes {
		if e := m.newest(l, func(e *codecs.Event) bool { return e.Attributes[a] != "" }); e != nil {
			d.Attributes[a] = e.Attributes[a]
		}
	}
	if m.Rules.Lifecycle.Terminal(newest.Status) {
		d.Closed, d.ClosedAt = true, newest.OccurredAt
		return d
	}
	last := newest.OccurredAt
	for _, e := range l.events {
		last = max(last, e.OccurredAt)
	}
	if end := last + int64(m.Rules.AbandonAfter); m.Rules.AbandonAfter > 0 && end < m.Clock {
		d.Status = m.Rules.Lifecycle.Abandoned()
		d.Closed, d.ClosedAt, d.Since = true, end, end
	}
	return d
}

// since is the first time of the newest event's status, unless another status
// occurred after that: then it is the time of the newest event.
func since(newest *codecs.Event, events []codecs.Event) int64 {
	first := newest.OccurredAt
	for _, e := range events {
		if e.Status == newest.Status {
			first = min(first, e.OccurredAt)
		}
	}
	for _, e := range events {
		if e.Status != newest.Status && e.OccurredAt > first {
			return newest.OccurredAt
		}
	}
	return first
}

func timeline(events []codecs.Event) []codecs.StatusTimes {
	var times []codecs.StatusTimes
	for _, e := range events {
		i := slices.IndexFunc(times, func(t codecs.StatusTimes) bool { return t.Status == e.Status })
		if i < 0 {
			times = append(times, codecs.StatusTimes{Status: e.Status, First: e.OccurredAt, Last: e.OccurredAt})
			continue
		}
		times[i].First = min(times[i].First, e.OccurredAt)
		times[i].Last = max(times[i].Last, e.OccurredAt)
	}
	slices.SortFunc(times, func(a, b codecs.StatusTimes) int { return int(a.Status) - int(b.Status) })
	return times
}

// Rows returns every delivery that is not forgotten.
func (m *Model) Rows() map[string]codecs.Delivery {
	rows := map[string]codecs.Delivery{}
	for id, l := range m.lives {
		rows[id] = m.delivery(id, l)
	}
	return rows
}

// Counts recounts one scope: the live and the closed deliveries by status name,
// every status named.
func (m *Model) Counts(scope string) (live, closed map[string]int) {
	live, closed = zeros(m.Rules.Lifecycle)
	for _, d := range m.Rows() {
		if !slices.Contains(m.Rules.scopes(d.Attributes), scope) {
			continue
		}
		if name := m.Rules.Lifecycle.Name(d.Status); d.Closed {
			closed[name]++
		} else {
			live[name]++
		}
	}
	return live, closed
}

// Scopes returns the scopes of all deliveries that are not forgotten, sorted.
func (m *Model) Scopes() []string {
	scopes := []string{""}
	for _, d := range m.Rows() {
		scopes = append(scopes, m.Rules.scopes(d.Attributes)...)
	}
	slices.Sort(scopes)
	return slices.Compact(scopes)
}

// zeros returns a count of 0 for every live and every terminal status.
func zeros(l *codecs.Lifecycle) (live, closed map[string]int) {
	live, closed = map[string]int{}, map[string]int{}
	for s := range l.Len() {
		if info := l.Info(codecs.Status(s)); info.Terminal {
			closed[info.Name] = 0
		} else {
			live[info.Name] = 0
		}
	}
	return live, closed
}
