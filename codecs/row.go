package codecs

import "math"

// None is the value of a time or horizon that does not exist yet.
const None = math.MinInt64

// OrderKey holds the facts by which the events of one delivery are totally
// ordered. How they compare depends on settings: see processors.Settings.
type OrderKey struct {
	OccurredAt int64 // event time, Unix nanoseconds
	Status     Status
	Sequence   int64
	EventID    string
	Hash       uint64
}

// AttributeValue is the value of an attribute and the greatest event that
// carried it. Key is nil if that event is the row's winner.
type AttributeValue struct {
	Value string // "" = no event carried it
	Key   *OrderKey
}

// StatusTimes holds the first and the last event time at which a delivery was
// said to have a status.
type StatusTimes struct {
	Status      Status
	First, Last int64
}

// Closing is how a delivery was closed, and when. The zero Closing is none.
type Closing struct {
	Status   Status // terminal, or ABANDONED
	ClosedAt int64
}

// Row is the value of one delivery in the table latest-delivery. It stores
// facts: of the events merged into it, and of what was told about it. Nothing in
// it is derived from settings or from the clock. A Row is immutable once it is
// shared.
type Row struct {
	Winner     OrderKey
	RawStatus  string // of the winner, as Event.RawStatus
	Attributes [NumAttributes]AttributeValue
	Timeline   []StatusTimes // ordered by Status, one entry per status seen
	Horizon    int64         // of the partition when the row was created; None if there was none
	Summarized Closing       // in the last summary sent; none if there was none or it said REOPENED
}
