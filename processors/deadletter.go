package processors

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"deliverystat/codecs"
	"deliverystat/processors/exactlyonce"
)

// The headers of a dead letter, besides those of the record itself. The first
// four are spelled as Kafka Connect's dead letter queues spell them.
const (
	HeaderTopic     = "__connect.errors.topic"
	HeaderPartition = "__connect.errors.partition"
	HeaderOffset    = "__connect.errors.offset"
	HeaderMessage   = "__connect.errors.exception.message" // one sentence

	HeaderReason    = "deliverystat.reason"    // a codecs.Reason
	HeaderTimestamp = "deliverystat.timestamp" // of the record, Unix milliseconds

	// Only on a record too large to be kept whole: the length and the SHA-256
	// in hex of its value, of which a dead letter keeps the beginning.
	HeaderValueLength = "deliverystat.value.length"
	HeaderValueHash   = "deliverystat.value.sha256"
	// HeaderKeyLength is the length of a key of which only the beginning is kept.
	HeaderKeyLength = "deliverystat.key.length"
	// HeaderHeadersDropped is "true" if the record's own headers were too
	// large to be kept.
	HeaderHeadersDropped = "deliverystat.headers.dropped"
)

// HeaderAcceptLate on a record of the input says, if it is "true", that the event
// is to be applied even if it is late. Who sends a late dead letter back sets it,
// knowing the delivery; no producer should. It is looked at only where the event
// would be refused.
const HeaderAcceptLate = "deliverystat.accept_late"

// acceptsLate reports whether r carries HeaderAcceptLate.
func acceptsLate(r *codecs.Record) bool {
	if r.Headers == nil {
		return false
	}
	for _, h := range r.Headers() {
		if h.Key == HeaderAcceptLate && string(h.Value) == "true" {
			return true
		}
	}
	return false
}

// maxValueBytes is how much of a record's value, key and headers we write. It
// leaves room for our own headers.
const maxValueBytes = exactlyonce.MaxRecordBytes - 100_000

// deadLetter is a refused record with the reason.
type deadLetter struct {
	topic     string
	partition int32
	offset    int64
	timestamp int64 // milliseconds
	key       string
	value     []byte
	headers   []*exactlyonce.Header
	verdict   Verdict
}

// letterOf is the dead letter of r.
func letterOf(r *exactlyonce.Record, v Verdict) deadLetter {
	return deadLetter{
		topic:     r.Topic,
		partition: r.Partition,
		offset:    r.Offset,
		timestamp: r.Timestamp.UnixMilli(),
		key:       string(r.Key),
		value:     r.Value,
		headers:   r.Headers,
		verdict:   v,
	}
}

// record returns the dead letter as it is emitted. It can be sent back: key,
// value and headers are those of the record, unless it was too large.
func (d *deadLetter) record() (key string, value []byte, headers []exactlyonce.Header) {
	headers = make([]exactlyonce.Header, 0, len(d.headers)+8)
	add := func(name string, value []byte) {
		headers = append(headers, exactlyonce.Header{Key: []byte(name), Value: value})
	}
	size := len(d.key)
	for _, h := range d.headers {
		headers = append(headers, *h)
		size += len(h.Key) + len(h.Value) + 16
	}
	if size > maxValueBytes {
		headers = headers[:0]
		add(HeaderHeadersDropped, []byte("true"))
		size = len(d.key)
	}
	key, value = d.key, d.value
	if room := max(0, maxValueBytes-size); len(value) > room {
		sum := sha256.Sum256(value)
		add(HeaderValueLength, strconv.AppendInt(nil, int64(len(value)), 10))
		add(HeaderValueHash, []byte(hex.EncodeToString(sum[:])))
		value = value[:room]
	}
	if len(key) > maxValueBytes {
		add(HeaderKeyLength, strconv.AppendInt(nil, int64(len(key)), 10))
		key = key[:maxValueBytes]
	}
	add(HeaderTopic, []byte(d.topic))
	add(HeaderPartition, strconv.AppendInt(nil, int64(d.partition), 10))
	add(HeaderOffset, strconv.AppendInt(nil, d.offset, 10))
	add(HeaderMessage, []byte(d.verdict.Detail))
	add(HeaderReason, []byte(d.verdict.Reason))
	add(HeaderTimestamp, strconv.AppendInt(nil, d.timestamp, 10))
	return key, value, headers
}
