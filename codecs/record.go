package codecs

// Header is one record header.
type Header struct {
	Key   string
	Value []byte
}

// Record is one record of an input topic as Kafka delivered it.
type Record struct {
	Key   string
	Value []byte // nil for a tombstone
	// Headers returns the record's headers. It is called only if the value
	// alone does not tell the event. It may be nil if there are none.
	Headers   func() []Header
	Timestamp int64 // record timestamp, Unix nanoseconds; never the event time
}

// Outcome says what a record is.
type Outcome uint8

// The outcomes of decoding a record.
const (
	IsEvent   Outcome = iota
	IsIgnored         // by design says nothing: a null value, an op u or d of an outbox
	IsRefused         // a dead letter, with a Reason
)

// Reason says why a record was refused. The set is closed: it is a metric label.
type Reason string

// The reasons. Those below the blank line are given by package processors.
const (
	Unreadable       Reason = "unreadable"         // no JSON, or not of a known shape
	WrongType        Reason = "wrong_type"         // a field has another type than the format says
	MissingField     Reason = "missing_field"      // delivery_id, status or occurred_at is not there
	InvalidID        Reason = "invalid_id"         // not 1–256 bytes of UTF-8 without control characters
	InvalidTime      Reason = "invalid_time"       // not a time, or before 2015
	AttributeTooLong Reason = "attribute_too_long" // more than 256 bytes
	KeyMismatch      Reason = "key_mismatch"       // the record key is not the delivery ID

	NoSequence     Reason = "no_sequence" // --order-by=sequence and the event has none
	WrongPartition Reason = "wrong_partition"
	Future         Reason = "future" // later than the record's timestamp + max-future
	TooLate        Reason = "late"
)

// Reasons returns all reasons.
func Reasons() []Reason {
	return []Reason{
		Unreadable, WrongType, MissingField, InvalidID, InvalidTime, AttributeTooLong, KeyMismatch,
		NoSequence, WrongPartition, Future, TooLate,
	}
}

// Decoded is what a record turned out to be.
type Decoded struct {
	Outcome Outcome
	Event   Event  // if IsEvent
	Reason  Reason // if IsRefused
	Detail  string // one sentence for the dead letter, if IsRefused
}

func (d *Decoded) refuse(reason Reason, detail string) {
	*d = Decoded{Outcome: IsRefused, Reason: reason, Detail: detail}
}
