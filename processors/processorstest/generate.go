package processorstest

import (
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"

	"deliverystat/codecs"
	"deliverystat/processors/market"
)

// Start is second 0 of generated inputs.
var Start = time.Date(2026, time.November, 30, 1, 0, 0, 0, time.UTC)

// Record is one record to produce.
type Record struct {
	Key       string
	Value     []byte
	Timestamp time.Time // zero: when it is produced
}

// String shows the record on one line.
func (r Record) String() string {
	return fmt.Sprintf("%s %s %s", r.Timestamp.UTC().Format("15:04:05"), r.Key, r.Value)
}

// GoString is what reports of failures show of a drawn record.
func (r Record) GoString() string { return r.String() }

// Rules draws settings under which deliveries close, are abandoned and are
// forgotten within seconds, in either order, with and without dimensions.
func Rules() *rapid.Generator[market.Rules] {
	seconds := func(from, to int) *rapid.Generator[time.Duration] {
		return rapid.Map(rapid.IntRange(from, to), func(n int) time.Duration { return time.Duration(n) * time.Second })
	}
	return rapid.Custom(func(t *rapid.T) market.Rules {
		return market.Rules{
			Lifecycle:    codecs.BuiltinLifecycle(),
			BySequence:   rapid.IntRange(0, 3).Draw(t, "by sequence") == 3,
			Lateness:     seconds(1, 20).Draw(t, "lateness"),
			AbandonAfter: rapid.OneOf(rapid.Just(time.Duration(0)), seconds(1, 40)).Draw(t, "abandon after"),
			MaxFuture:    seconds(0, 5).Draw(t, "max future"),
			TerminalSkew: rapid.OneOf(rapid.Just(time.Duration(0)), seconds(1, 3)).Draw(t, "terminal skew"),
			Dimensions: rapid.SampledFrom([][]codecs.Attribute{
				nil, {codecs.Region}, {codecs.Region, codecs.Service},
			}).Draw(t, "dimensions"),
		}
	})
}

// traits are the freely drawn parts of one record. What depends on the records
// before it is worked out afterwards, so that leaving any record out gives a
// valid input again: that is how failures shrink.
type traits struct {
	kind     int // of record: see record
	step     int // seconds since the record before
	age      int // seconds from event time to record timestamp
	id       int
	status   string
	sequence int64
	region   string
	service  string
	event    string
	back     int // how far back the record is that is repeated
}

const (
	nothing = iota // the simplest record is none: to that a needless one shrinks
	anEvent
	aRepeat
	aTombstone
	garbage
)

// anyTraits draws the traits of one record. Low values are the plain ones.
func anyTraits() *rapid.Generator[traits] {
	kinds := []int{nothing, anEvent, anEvent, anEvent, anEvent, anEvent, anEvent, anEvent, aRepeat, aRepeat, aTombstone, garbage}
	steps := []int{0, 0, 1, 1, 2, 3, 8, 25, 120} // the last ones are clock jumps
	ages := []int{0, 0, 0, 1, 2, 5, 15, 40, 100, -2, -7}
	statuses := []string{
		"CREATED", "CREATED", "ASSIGNED", "PICKED_UP", "IN_TRANSIT", "RETURNING",
		"DELIVERED", "DELIVERED", "CANCELLED", "HUB_SCANNED", "SORTING", "ABANDONED",
	}
	return rapid.Custom(func(t *rapid.T) traits {
		return traits{
			kind:     rapid.SampledFrom(kinds).Draw(t, "kind"),
			step:     rapid.SampledFrom(steps).Draw(t, "step"),
			age:      rapid.SampledFrom(ages).Draw(t, "age"),
			id:       rapid.IntRange(0, 4).Draw(t, "delivery"),
			status:   rapid.SampledFrom(statuses).Draw(t, "status"),
			sequence: rapid.SampledFrom([]int64{0, 1, 2, 3, -1}).Draw(t, "sequence"),
			region:   rapid.SampledFrom([]string{"", "seoul", "busan"}).Draw(t, "region"),
			service:  rapid.SampledFrom([]string{"", "courier-a"}).Draw(t, "service"),
			event:    rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "event"),
			back:     rapid.IntRange(0, 9).Draw(t, "back"),
		}
	})
}

// Records draws up to n records of one partition in log order: events of few
// deliveries at few times, repeats, and records that are no events. Sequences
// are there or not; times run on in steps, some of which make everything due.
func Records(n int) *rapid.Generator[[]Record] {
	return rapid.Custom(func(t *rapid.T) []Record {
		// Left to itself, rapid draws short lists, in which little happens.
		least := rapid.SampledFrom([]int{0, n / 8, n / 4, n / 2, n / 2}).Draw(t, "least records")
		all := rapid.SliceOfN(anyTraits(), least, n).Draw(t, "records")
		var records []Record
		now := Start
		for _, tr := range all {
			if tr.kind == nothing {
				continue
			}
			now = now.Add(time.Duration(tr.step) * time.Second)
			records = append(records, tr.record(records, now))
		}
		return records
	})
}

func (tr *traits) record(before []Record, now time.Time) Record {
	key := fmt.Sprintf("d%d", tr.id)
	switch {
	case tr.kind == aRepeat && len(before) > 0:
		again := before[max(0, len(before)-1-tr.back)]
		again.Timestamp = now
		return again
	case tr.kind == aTombstone:
		return Record{Key: key, Timestamp: now}
	case tr.kind == garbage:
		return Record{Key: key, Value: []byte(`{"delivery_id":`), Timestamp: now}
	}
	return Record{Key: key, Value: market.Encode(tr.says(key, now), codecs.BuiltinLifecycle()), Timestamp: now}
}

// says is the event of tr.
func (tr *traits) says(id string, now time.Time) *codecs.Event {
	e := &codecs.Event{
		DeliveryID: id,
		EventID:    tr.event,
		RawStatus:  tr.status, // as sent; the decoder finds out what it means
		OccurredAt: now.Add(-time.Duration(tr.age) * time.Second).UnixNano(),
		Sequence:   tr.sequence,
		Sequenced:  tr.sequence >= 0,
	}
	e.Attributes[codecs.Region], e.Attributes[codecs.Service] = tr.region, tr.service
	return e
}

// Describe lists records for the report of a failure, one a line.
func Describe(records []Record) string {
	var s strings.Builder
	for i, r := range records {
		fmt.Fprintf(&s, "%3d %s\n", i, r)
	}
	return s.String()
}
