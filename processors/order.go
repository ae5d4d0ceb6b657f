package processors

import (
	"cmp"
	"math"
	"time"

	"deliverystat/codecs"
)

// later adds d to the time t. None stays None, and the sum stays within the
// range of times, so that an absurd record timestamp decides nothing by
// overflow.
func later(t int64, d time.Duration) int64 {
	switch sum := t + int64(d); {
	case t == codecs.None:
		return codecs.None
	case d > 0 && sum < t:
		return math.MaxInt64
	default:
		return sum
	}
}

// OrderTime is the time at which an event of status s, or a row entry of it,
// stands in the order of its delivery: the event time, plus the terminal skew if
// the status is terminal.
func (s *Settings) OrderTime(occurredAt int64, status codecs.Status) int64 {
	if s.Lifecycle.Terminal(status) {
		return later(occurredAt, s.TerminalSkew)
	}
	return occurredAt
}

// Compare orders two events of one delivery: negative if a is smaller, 0 if
// they are the same event. The order is total, so the greatest of a set does not
// depend on the order in which its members arrive.
func (s *Settings) Compare(a, b *codecs.OrderKey) int {
	if s.OrderBy == BySequence {
		if c := cmp.Compare(a.Sequence, b.Sequence); c != 0 {
			return c
		}
	}
	if c := cmp.Compare(s.OrderTime(a.OccurredAt, a.Status), s.OrderTime(b.OccurredAt, b.Status)); c != 0 {
		return c
	}
	if c := cmp.Compare(a.Status, b.Status); c != 0 {
		return c
	}
	if c := cmp.Compare(a.Sequence, b.Sequence); c != 0 {
		return c
	}
	if c := cmp.Compare(a.EventID, b.EventID); c != 0 {
		return c
	}
	return cmp.Compare(a.Hash, b.Hash)
}

// KeyOf returns the order key of e.
func KeyOf(e *codecs.Event) codecs.OrderKey {
	return codecs.OrderKey{
		OccurredAt: e.OccurredAt,
		Status:     e.Status,
		Sequence:   e.Sequence,
		EventID:    e.EventID,
		Hash:       e.Hash,
	}
}

// greatestTime is the greatest event time merged into row.
func greatestTime(row *codecs.Row) int64 {
	greatest := int64(codecs.None)
	for i := range row.Timeline {
		greatest = max(greatest, row.Timeline[i].Last)
	}
	return greatest
}

// GreatestOrderTime is the greatest order time of any event merged into row:
// what its forgetting raises the horizon to.
func (s *Settings) GreatestOrderTime(row *codecs.Row) int64 {
	greatest := int64(codecs.None)
	for i := range row.Timeline {
		t := &row.Timeline[i]
		greatest = max(greatest, s.OrderTime(t.Last, t.Status))
	}
	return greatest
}
