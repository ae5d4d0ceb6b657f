package market

import (
	"cmp"
	"time"

	"deliverystat/codecs"
)

// Rules are the settings that decide what events mean, as far as the model
// knows them.
type Rules struct {
	Lifecycle    *codecs.Lifecycle
	BySequence   bool          // the sequence comes first in the order key
	Lateness     time.Duration // how long a closed delivery is remembered
	AbandonAfter time.Duration // 0: deliveries are never abandoned
	MaxFuture    time.Duration // by how much an event time may exceed the record timestamp
	TerminalSkew time.Duration // added to the event time of terminal statuses in the order
	Dimensions   []codecs.Attribute
}

// DefaultRules are the settings of a service that was given none.
func DefaultRules() Rules {
	return Rules{
		Lifecycle:    codecs.BuiltinLifecycle(),
		Lateness:     24 * time.Hour,
		AbandonAfter: 168 * time.Hour,
		MaxFuture:    10 * time.Minute,
	}
}

// earliest is the first event time that is believed.
var earliest = time.Date(2015, time.January, 1, 0, 0, 0, 0, time.UTC).UnixNano()

// orderTime is the time at which e stands in the order of its delivery.
func (r *Rules) orderTime(e *codecs.Event) int64 {
	if r.Lifecycle.Terminal(e.Status) {
		return e.OccurredAt + int64(r.TerminalSkew)
	}
	return e.OccurredAt
}

// compare orders two events of one delivery: negative if b is newer, 0 if they
// are the same event.
func (r *Rules) compare(a, b *codecs.Event) int {
	bySequence := cmp.Compare(sequence(a), sequence(b))
	byTime := cmp.Compare(r.orderTime(a), r.orderTime(b))
	byRank := cmp.Compare(a.Status, b.Status)
	rest := cmp.Or(cmp.Compare(a.EventID, b.EventID), cmp.Compare(a.Hash, b.Hash))
	if r.BySequence {
		return cmp.Or(bySequence, byTime, byRank, rest)
	}
	return cmp.Or(byTime, byRank, bySequence, rest)
}

// sequence is the sequence of e, 0 if it has none.
func sequence(e *codecs.Event) int64 {
	if !e.Sequenced {
		return 0
	}
	return e.Sequence
}

var everything = []string{""}

// scopes names what a delivery with these attributes is counted in: "" for all
// deliveries, and one scope per dimension.
func (r *Rules) scopes(attributes [codecs.NumAttributes]string) []string {
	if len(r.Dimensions) == 0 {
		return everything
	}
	scopes := []string{""}
	for _, d := range r.Dimensions {
		scopes = append(scopes, d.String()+"="+attributes[d])
	}
	return scopes
}

// Entry is one record of a partition as the model reads it.
type Entry struct {
	Timestamp int64         // record timestamp, Unix nanoseconds
	Event     *codecs.Event // nil if the record was refused or ignored before its time was looked at
	Reason    codecs.Reason // why it was refused, "" if it was ignored; only without Event

	AcceptLate bool // marked to be applied even if it is late
}

// Result says what became of a record, in the words of the metrics.
type Result string

// The results.
const (
	Applied    Result = "applied"     // the event is the newest of its delivery
	Duplicate  Result = "duplicate"   // it equals the newest
	Stale      Result = "stale"       // older than the newest, merged
	Ignored    Result = "ignored"     // says nothing by design
	DeadLetter Result = "dead_letter" // refused
)

// Verdict is what became of one record.
type Verdict struct {
	Result Result
	Reason codecs.Reason // of a dead letter
}

// implausible gives the reason to refuse an event for what it says of itself.
func (r *Rules) implausible(e Entry) (codecs.Reason, bool) {
	switch {
	case e.Event.OccurredAt < earliest:
		return codecs.InvalidTime, true
	case e.Event.OccurredAt > e.Timestamp+int64(r.MaxFuture):
		return codecs.Future, true
	case r.BySequence && !e.Event.Sequenced:
		return codecs.NoSequence, true
	}
	return "", false
}
