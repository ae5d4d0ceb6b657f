package market

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"

	"deliverystat/codecs"
)

// LiveOptions say what a [Live] market is like.
type LiveOptions struct {
	Seed uint64
	// Lifetime is about how long a delivery takes from its creation to its end;
	// default 90s, so that something happens on the board.
	Lifetime time.Duration

	Duplicates    float64 // shares of all records, as in Options
	OutOfOrder    float64
	Malformed     float64
	UnknownStatus float64
}

// Live is a delivery market without end. Its caller decides when the next
// record is produced, and thereby how many deliveries are under way: about a
// sixth of the records create one.
type Live struct {
	options   LiveOptions
	r         *rand.Rand
	l         *codecs.Lifecycle
	paths     [][]codecs.Status
	assigned  codecs.Status
	created   int
	pending   tripHeap
	overtaken []Record // held back until a newer event of the delivery was produced
	recent    []Record // what may be repeated
	faults    int
}

// liveTrip is a delivery under way: its next event is due.
type liveTrip struct {
	delivery
	path []codecs.Status
	next step
	due  int64
	held *Record // an event that the next one overtakes
}

// lostShare is the share of deliveries that nothing more is heard of.
const lostShare = 0.005

// NewLive begins a live market. It returns an error if the lifecycle lacks a
// status that is simulated.
func NewLive(o LiveOptions, l *codecs.Lifecycle) (*Live, error) {
	if o.Lifetime <= 0 {
		o.Lifetime = 90 * time.Second
	}
	all, err := paths(l)
	if err != nil {
		return nil, err
	}
	assigned, _ := l.Lookup("ASSIGNED")
	return &Live{
		options: o, l: l, paths: all, assigned: assigned,
		r: rand.New(rand.NewPCG(o.Seed, 0x6c697665)),
	}, nil
}

// Next returns the record to produce at now. Event times are at most now; calls
// must not go back in time.
func (v *Live) Next(now time.Time) Record {
	if n := len(v.overtaken); n > 0 {
		record := v.overtaken[n-1]
		v.overtaken = v.overtaken[:n-1]
		return v.remember(record)
	}
	switch draw := v.r.Float64(); {
	case draw < v.options.Malformed && len(v.recent) > 0:
		v.faults++
		good := v.recent[v.r.IntN(len(v.recent))]
		value := faults[v.faults%len(faults)].spoil(Encode(&good.Event, v.l))
		return Record{Key: good.Key, Value: value, Kind: IsMalformed}
	case draw < v.options.Malformed+v.options.Duplicates && len(v.recent) > 0:
		again := v.recent[v.r.IntN(len(v.recent))]
		again.Kind = IsDuplicate
		again.Value = slices.Clone(again.Value)
		return again
	}
	for {
		t := v.take(now.UnixNano())
		if t == nil {
			t = v.create(now)
		}
		record := v.emit(t)
		held := t.held
		t.held = nil
		goesOn := v.proceed(t)
		if goesOn {
			heap.Push(&v.pending, t)
		}
		if goesOn && held == nil && !v.l.Terminal(t.next.status) && v.r.Float64() < v.options.OutOfOrder {
			record.Kind = IsOutOfOrder
			t.held = &record // until the next event of t was produced
			continue
		}
		if held != nil {
			v.overtaken = append(v.overtaken, *held)
		}
		return v.remember(record)
	}
}

// remember keeps some records to repeat.
func (v *Live) remember(r Record) Record {
	if len(v.recent) < 64 {
		v.recent = append(v.recent, r)
	} else {
		v.recent[v.r.IntN(len(v.recent))] = r
	}
	return r
}

// take returns the trip whose event is due, if there is one.
func (v *Live) take(now int64) *liveTrip {
	if len(v.pending) == 0 || v.pending[0].due > now {
		return nil
	}
	return heap.Pop(&v.pending).(*liveTrip)
}

func (v *Live) create(now time.Time) *liveTrip {
	v.created++
	t := &liveTrip{
		delivery: newDelivery(v.r, v.created, now.UTC().Format("20060102")),
		path:     v.paths[v.r.IntN(len(v.paths))],
		due:      now.UnixNano(),
	}
	t.next = step{number: 1, status: t.path[0], region: t.region}
	return t
}

// emit writes the event of t that is due.
func (v *Live) emit(t *liveTrip) Record {
	s := &t.next
	unit := services[s.service].resolution
	if at := t.due / unit * unit; at > s.at {
		s.at = at
	} else {
		s.at += microsecond
	}
	s.unknown = 0
	if !v.l.Terminal(s.status) && v.r.Float64() < v.options.UnknownStatus {
		s.unknown = uint8(1 + v.r.IntN(len(unknownStatuses)))
	}
	e := s.event(&t.delivery, v.options.Seed, v.l)
	record := Record{Key: e.DeliveryID, Event: e}
	record.Value = appendEvent(make([]byte, 0, 320), &e, v.l, usual, services[s.service].unix)
	return record
}

// proceed makes the next event of t the one to come; false at the end.
func (v *Live) proceed(t *liveTrip) bool {
	s := &t.next
	if int(s.number) >= len(t.path) || v.r.Float64() < lostShare {
		return false
	}
	s.status = t.path[s.number]
	s.number++
	s.alias = v.r.IntN(10) == 0
	if s.status == v.assigned {
		s.service = uint8(1 + v.r.IntN(len(services)-1))
	}
	wait := (0.2 + 0.8*v.r.ExpFloat64()) * float64(v.options.Lifetime) / 5
	t.due += int64(wait)
	return true
}

type tripHeap []*liveTrip

func (h tripHeap) Len() int           { return len(h) }
func (h tripHeap) Less(i, j int) bool { return h[i].due < h[j].due }
func (h tripHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *tripHeap) Push(x any)        { *h = append(*h, x.(*liveTrip)) }
func (h *tripHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
