package codecs

// Event is one decoded delivery event.
type Event struct {
	DeliveryID string // 1–256 bytes of UTF-8 without control characters
	EventID    string // "" if the source has none
	Status     Status
	RawStatus  string // the name as sent where it is not the canonical one, else ""
	OccurredAt int64  // event time, Unix nanoseconds
	Sequence   int64  // per delivery, 0 if missing
	Sequenced  bool   // the event carries a sequence
	Attributes [NumAttributes]string
	Hash       uint64 // of the canonical content: the last component of the order key
}
