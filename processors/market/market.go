package market

import (
	"math/rand/v2"
)

// Market produces the records of a simulated delivery market. It is an
// iterator: equal options give equal records, byte for byte.
type Market struct {
	options    Options
	deliveries []delivery
	steps      []step
	arrivals   []arrival
	next       int
	planned    Summary
	produced   Summary
	model      *FastModel
}

// Summary counts records by what they show.
type Summary struct {
	Events        int
	Duplicates    int
	OutOfOrder    int
	Late          int
	Malformed     int
	UnknownStatus int // without duplicates of such events
}

// New plans a market. All faults of the options are reported at once.
func New(o Options) (*Market, error) {
	if err := o.normalize(); err != nil {
		return nil, err
	}
	m := &Market{options: o, model: NewFastModel(*o.Rules)}
	r := rand.New(rand.NewPCG(o.Seed, 0x6d61726b6574))
	if err := m.travel(r); err != nil {
		return nil, err
	}
	m.arrive(r)
	for _, a := range m.arrivals {
		m.planned.count(a.kind, m.unknown(a))
	}
	return m, nil
}

func (m *Market) unknown(a arrival) bool {
	return a.kind != IsMalformed && m.steps[a.step].unknown != 0
}

func (s *Summary) count(k Kind, unknown bool) {
	s.Events++
	switch k {
	case InOrder:
	case IsOutOfOrder:
		s.OutOfOrder++
	case IsLate:
		s.Late++
	case IsDuplicate:
		s.Duplicates++
	case IsMalformed:
		s.Malformed++
	}
	if unknown && k != IsDuplicate {
		s.UnknownStatus++
	}
}

// Planned says what all records together will show: less than was asked for if
// not enough events qualify.
func (m *Market) Planned() Summary { return m.planned }

// Produced says what the records that Next returned so far show.
func (m *Market) Produced() Summary { return m.produced }

// Next returns the next record, and false at the end.
func (m *Market) Next() (Record, bool) {
	if m.next == len(m.arrivals) {
		return Record{}, false
	}
	a := m.arrivals[m.next]
	m.next++
	m.produced.count(a.kind, m.unknown(a))
	s := &m.steps[a.step]
	e := s.event(&m.deliveries[s.delivery], m.options.Seed, m.options.Rules.Lifecycle)
	record := Record{Key: e.DeliveryID, Kind: a.kind}
	now := m.options.End.UnixNano()
	if a.kind == IsMalformed {
		good := appendEvent(make([]byte, 0, 320), &e, m.options.Rules.Lifecycle, usual, false)
		f := faults[a.variant]
		record.Value = f.spoil(good)
		m.model.Apply(Entry{Timestamp: now, Reason: f.reason})
		return record, true
	}
	record.Event = e
	record.Value = appendEvent(make([]byte, 0, 320), &e, m.options.Rules.Lifecycle, spelling(a.variant), services[s.service].unix)
	m.model.Apply(Entry{Timestamp: now, Event: &e})
	return record, true
}

// travel draws the deliveries and their events, in the order in which they
// happen.
func (m *Market) travel(r *rand.Rand) error {
	o := &m.options
	date := o.End.UTC().Format("20060102")
	all, err := paths(o.Rules.Lifecycle)
	if err != nil {
		return err
	}
	m.deliveries = make([]delivery, o.Deliveries)
	trips := make([]trip, o.Deliveries)
	for i := range trips {
		m.deliveries[i] = newDelivery(r, max(o.FirstNumber, 1)+i, date)
		trips[i] = newTrip(r, all[r.IntN(len(all))])
	}
	fit(r, trips, o.fresh())
	assigned, _ := o.Rules.Lifecycle.Lookup("ASSIGNED")
	m.steps = make([]step, 0, o.fresh())
	for i := range trips {
		m.steps = trips[i].appendSteps(r, m.steps, int32(i), m.deliveries[i].region, assigned)
	}
	m.misname(r)
	c := newClocks(r, o)
	for from := 0; from < len(m.steps); {
		to := from + 1
		for to < len(m.steps) && m.steps[to].delivery == m.steps[from].delivery {
			to++
		}
		c.stamp(r, m.steps[from:to], o.Rules.Lifecycle)
		from = to
	}
	return nil
}

// misname gives the share of unknown statuses a name that nobody knows.
func (m *Market) misname(r *rand.Rand) {
	var open []int32
	for i := range m.steps {
		if !m.terminal(i) {
			open = append(open, int32(i))
		}
	}
	for _, i := range pick(r, open, m.options.number(m.options.UnknownStatus)) {
		m.steps[i].unknown = uint8(1 + r.IntN(len(unknownStatuses)))
	}
}

func (m *Market) terminal(i int) bool {
	return m.options.Rules.Lifecycle.Terminal(m.steps[i].status)
}
