package market

import (
	"errors"
	"fmt"
	"math"
	"time"

	"deliverystat/codecs"
)

// Options say what a [Market] produces. Shares are of Events, from 0 to 1, and
// are met exactly as long as there are enough events that qualify: an event can
// only be late if its delivery was completed. Without ClockSkew, every event
// that counts as late or out of order really is older than one before it.
type Options struct {
	Events     int // records in all, malformed ones and duplicates included
	Deliveries int // deliveries that the events are about
	Seed       uint64

	Duplicates    float64 // repeats of an earlier event, some of them in another spelling
	OutOfOrder    float64 // first arrival after a newer event of the same open delivery
	Late          float64 // first arrival after the event that completed the delivery
	Malformed     float64 // records that are no events
	UnknownStatus float64 // events whose status no lifecycle has
	ClockSkew     time.Duration

	// End is the latest event time, to the second; all event times lie within
	// Span before it. The market reads no clock, so End must be given.
	End  time.Time
	Span time.Duration // default 1h, at least 1m
	// FirstNumber is the number of the first delivery, so that two markets of
	// one day can have different deliveries.
	FirstNumber int

	// Rules decide the truth; the default is DefaultRules.
	Rules *Rules
}

// Validate reports all that is wrong with the options, as [New] does, and plans
// nothing.
func (o Options) Validate() error { return o.normalize() }

// normalize fills in defaults and reports all faults at once.
func (o *Options) normalize() error {
	if o.Span == 0 {
		o.Span = time.Hour
	}
	if o.Rules == nil {
		rules := DefaultRules()
		o.Rules = &rules
	}
	o.End, o.Span = o.End.Truncate(time.Second), o.Span.Truncate(time.Second)
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	shares := []struct {
		name  string
		value float64
	}{
		{"duplicates", o.Duplicates},
		{"out-of-order", o.OutOfOrder},
		{"late", o.Late},
		{"malformed", o.Malformed},
		{"unknown-status", o.UnknownStatus},
	}
	for _, s := range shares {
		if !(s.value >= 0 && s.value <= 1) {
			fault("%s %v: not a share from 0 to 1", s.name, s.value)
		}
	}
	if o.Events < 1 || o.Events > math.MaxInt32 {
		fault("events %d: not from 1 to %d", o.Events, math.MaxInt32)
	}
	if o.Deliveries < 1 {
		fault("deliveries %d: not at least 1", o.Deliveries)
	}
	if o.End.Before(time.Unix(0, earliest).Add(o.Span)) {
		fault("end %s: before 2015", o.End.Format(time.RFC3339))
	}
	if o.Span < time.Minute {
		fault("span %s: not at least 1m", o.Span)
	}
	if o.ClockSkew < 0 || o.ClockSkew > o.Span/4 {
		fault("clock-skew %s: not from 0 to %s, a quarter of the time that is simulated", o.ClockSkew, o.Span/4)
	}
	if len(faults) == 0 && o.fresh() < o.Deliveries {
		fault("deliveries %d: more than the %d events that are neither duplicates nor malformed", o.Deliveries, o.fresh())
	}
	return errors.Join(faults...)
}

// number is the number of events that a share stands for.
func (o *Options) number(share float64) int { return int(math.Round(share * float64(o.Events))) }

// fresh is the number of records that are an event for the first time.
func (o *Options) fresh() int {
	return o.Events - o.number(o.Duplicates) - o.number(o.Malformed)
}

// Kind says which trait of real inputs a record shows.
type Kind uint8

// The kinds of records. A record has one; UnknownStatus is told by the event.
const (
	InOrder Kind = iota
	IsOutOfOrder
	IsLate
	IsDuplicate
	IsMalformed
)

// Record is one record to produce.
type Record struct {
	Key   string // the delivery ID, valid also if the record is malformed
	Value []byte // the caller's to keep
	Kind  Kind
	Event codecs.Event // what Value says; zero if malformed, without content hash
}
