package processors

import (
	"fmt"
	"time"

	"deliverystat/codecs"
)

// earliestTime is the first event time that is believed: 2015-01-01 UTC.
const earliestTime = 1_420_070_400 * int64(time.Second)

// Verdict says what became of a record, and why it was refused if it was, or why
// it was not though it is late.
type Verdict struct {
	Result Result
	Reason codecs.Reason // the label of the dead letter; "" unless Late or Refused
	Detail string        // one sentence for people
}

// Admit decides whether what a record was decoded to is an event that can be
// believed. timestamp is the record's, and misplaced says that its key belongs
// to another partition. It looks at nothing but the record.
func (s *Settings) Admit(d *codecs.Decoded, timestamp int64, misplaced bool) Verdict {
	switch d.Outcome {
	case codecs.IsIgnored:
		return Verdict{Result: Ignored}
	case codecs.IsRefused:
		return Verdict{Refused, d.Reason, d.Detail}
	case codecs.IsEvent:
	}
	e := &d.Event
	switch {
	case misplaced:
		return Verdict{Refused, codecs.WrongPartition, "the hash of the record key belongs to another partition"}
	case e.OccurredAt < earliestTime:
		return Verdict{Refused, codecs.InvalidTime, fmt.Sprintf("the event time %s is before 2015", written(e.OccurredAt))}
	case e.OccurredAt > later(timestamp, s.MaxFuture):
		return Verdict{Refused, codecs.Future, fmt.Sprintf("the event time %s is later than the record's timestamp %s + %s", written(e.OccurredAt), written(timestamp), s.MaxFuture)}
	case s.OrderBy == BySequence && !e.Sequenced:
		return Verdict{Refused, codecs.NoSequence, "events are ordered by sequence, and this one has none"}
	}
	return Verdict{}
}

// written is a time as dead letters show it.
func written(t int64) string {
	if t == codecs.None {
		return "none"
	}
	return time.Unix(0, t).UTC().Format(time.RFC3339Nano)
}
