package processors

import (
	"math"

	"deliverystat/codecs"
)

// Stream is the part of the log read so far that decisions depend on: the
// clock, the horizon and the record times of one partition. It is a function of
// the records read, and of nothing else.
type Stream struct {
	Clock       int64 // greatest event time of any event not refused; codecs.None
	Horizon     int64 // greatest order time of any event merged into a forgotten row; codecs.None
	FirstRecord int64 // timestamp of the first record read; codecs.None
	LastRecord  int64 // greatest record timestamp read; codecs.None
}

// NewStream returns the stream of a partition that nothing was read from.
func NewStream() Stream {
	return Stream{codecs.None, codecs.None, codecs.None, codecs.None}
}

// StreamOf returns the stream that a progress row reflects.
func StreamOf(p *codecs.Progress) Stream {
	return Stream{p.Clock, p.Horizon, p.FirstRecord, p.LastRecord}
}

// record moves the record times by a record with timestamp t.
func (at *Stream) record(t int64) {
	if at.FirstRecord == codecs.None {
		at.FirstRecord = t
	}
	at.LastRecord = max(at.LastRecord, t)
}

// Forgets reports whether rows may be forgotten at all: the records read span
// more than the lateness. An initial snapshot comes in random order; until it
// must be over, what looks late may be in good order.
func (s *Settings) Forgets(at Stream) bool {
	return at.FirstRecord != codecs.None && at.LastRecord >= later(at.FirstRecord, s.Lateness)
}

// Standing is where a row stands at a given clock.
type Standing struct {
	Status    codecs.Status // ABANDONED included
	Closed    bool
	ClosedAt  int64 // codecs.None while live
	Due       int64 // the clock beyond which the standing changes next; math.MaxInt64 if never
	Forgotten bool  // the row is no row any more; its delete may not be written yet
}

// Standing derives where row stands from the partition's stream.
func (s *Settings) Standing(row *codecs.Row, at Stream) Standing {
	if s.Lifecycle.Terminal(row.Winner.Status) {
		return s.closed(row.Winner.Status, row.Winner.OccurredAt, at)
	}
	if s.AbandonAfter == 0 {
		return Standing{Status: row.Winner.Status, ClosedAt: codecs.None, Due: math.MaxInt64}
	}
	end := later(greatestTime(row), s.AbandonAfter)
	if end < at.Clock {
		return s.closed(s.Lifecycle.Abandoned(), end, at)
	}
	return Standing{Status: row.Winner.Status, ClosedAt: codecs.None, Due: end}
}

// closed is the standing of a row that was closed at closedAt.
func (s *Settings) closed(status codecs.Status, closedAt int64, at Stream) Standing {
	due := later(closedAt, s.Lateness)
	return Standing{
		Status:    status,
		Closed:    true,
		ClosedAt:  closedAt,
		Due:       due,
		Forgotten: due < at.Clock && s.Forgets(at),
	}
}
