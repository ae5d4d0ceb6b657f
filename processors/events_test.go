package processors_test

import (
	"encoding/json"
	"time"

	"deliverystat/codecs"
	"deliverystat/processors"
)

// epochStart is second 0 of the tests.
var epochStart = time.Date(2026, time.November, 30, 10, 0, 0, 0, time.UTC)

// sec is a time in seconds since epochStart, as decisions use it.
func sec(n float64) int64 { return epochStart.UnixNano() + int64(n*float64(time.Second)) }

// shortSettings live and forget within seconds.
func shortSettings() *processors.Settings {
	return &processors.Settings{
		Lifecycle:    codecs.BuiltinLifecycle(),
		OrderBy:      processors.ByEventTime,
		Lateness:     5 * time.Second,
		AbandonAfter: 20 * time.Second,
		MaxFuture:    time.Hour,
		Dimensions:   []codecs.Attribute{codecs.Region},
	}
}

// eternalSettings never abandon and do not forget within a test.
func eternalSettings() *processors.Settings {
	s := shortSettings()
	s.Lateness, s.AbandonAfter = 24*time.Hour, 0
	return s
}

func status(name string) codecs.Status {
	s, ok := codecs.BuiltinLifecycle().Lookup(name)
	if !ok {
		panic("no status " + name)
	}
	return s
}

// change alters an event of a test.
type change func(*codecs.Event)

func region(v string) change  { return func(e *codecs.Event) { e.Attributes[codecs.Region] = v } }
func service(v string) change { return func(e *codecs.Event) { e.Attributes[codecs.Service] = v } }
func eventID(v string) change { return func(e *codecs.Event) { e.EventID = v } }
func hash(v uint64) change    { return func(e *codecs.Event) { e.Hash = v } }
func rawStatus(v string) change {
	return func(e *codecs.Event) { e.RawStatus = v }
}

func sequence(v int64) change {
	return func(e *codecs.Event) { e.Sequence, e.Sequenced = v, true }
}

// event is an event of delivery D in status at a second.
func event(name string, at float64, changes ...change) *codecs.Event {
	e := &codecs.Event{DeliveryID: "D", Status: status(name), OccurredAt: sec(at)}
	for _, c := range changes {
		c(e)
	}
	return e
}

// fold observes events one after the other in an unchanging stream.
func fold(s *processors.Settings, events ...*codecs.Event) *codecs.Row {
	var row *codecs.Row
	for _, e := range events {
		row = s.Observe(row, e, processors.NewStream()).Row
	}
	return row
}

// wire is a record of the input: an event of delivery id as a producer sends it.
func wire(id, status string, at float64, more ...string) fakeRecord {
	fields := map[string]string{
		"delivery_id": id,
		"status":      status,
		"occurred_at": time.Unix(0, sec(at)).UTC().Format(time.RFC3339Nano),
	}
	for i := 0; i < len(more); i += 2 {
		fields[more[i]] = more[i+1]
	}
	value, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return fakeRecord{key: id, value: value, timestamp: time.Unix(0, sec(at)).UTC()}
}

// arriving gives a record another timestamp than its event time.
func (r fakeRecord) arriving(at float64) fakeRecord {
	r.timestamp = time.Unix(0, sec(at)).UTC()
	return r
}
