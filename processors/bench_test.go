package processors_test

import (
	"fmt"
	"testing"
	"time"

	"deliverystat/codecs"
	"deliverystat/processors"
)

// BenchmarkObserve is the pure decision for an event that wins over a row of
// four statuses.
func BenchmarkObserve(b *testing.B) {
	s := processors.DefaultSettings()
	row := fold(s, event("CREATED", 1, region("seoul")), event("ASSIGNED", 2), event("PICKUP_REQUESTED", 3), event("PICKED_UP", 4))
	next := event("DELIVERING", 5, region("seoul"))
	at := processors.NewStream()
	b.ReportAllocs()
	for b.Loop() {
		if s.Observe(row, next, at).Result != processors.Applied {
			b.Fatal("not applied")
		}
	}
}

// BenchmarkDeliveryStateEvent is everything that the callback does for an event
// that is applied, decoding included: 50,000 deliveries go through six statuses,
// cut every 5,000 events. What the epoch writes is not measured.
func BenchmarkDeliveryStateEvent(b *testing.B) {
	s := processors.DefaultSettings()
	s.Dimensions = []codecs.Attribute{codecs.Region}
	const deliveries = 50_000
	names := []string{"CREATED", "ASSIGNED", "PICKUP_REQUESTED", "PICKED_UP", "DELIVERING", "DELIVERED"}
	var records []fakeRecord
	for i, name := range names {
		for d := range deliveries {
			rec := wire(fmt.Sprintf("D-20261130-%06d", d), name, float64(i)+float64(d)/deliveries,
				"event_id", fmt.Sprintf("0b6e4b9a-5f5b-4b0a-8d5e-%012d", i*deliveries+d),
				"region", fmt.Sprintf("region-%d", d%20), "service", "courier-a", "order_id", fmt.Sprintf("O-%d", d))
			rec.value = append([]byte(fmt.Sprintf(`{"sequence":%d,`, i)), rec.value[1:]...)
			records = append(records, rec)
		}
	}
	f := newFirstStage(b, s, records...)
	f.cfg.CachedRows = 2 * deliveries
	f.cfg.Now = time.Now
	f.assign()
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if n%5_000 == 0 && n > 0 {
			b.StopTimer()
			f.cut()
			f.commit()
			if f.next == f.input.end() {
				f.restart()
			}
			b.StartTimer()
		}
		f.consume(1)
	}
}

// restart makes the partition anew, to be read from the beginning.
func (r *fakeRuntime) restart() {
	clear(r.table)
	r.log, r.emitted, r.committed = nil, nil, -1
	r.assign()
}
