package processors

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/lovoo/goka"

	"deliverystat/codecs"
	"deliverystat/processors/exactlyonce"
)

// The headers of a dead letter, besides those of the record itself. The first
// four are spelled as Kafka Connect's dead letter queues spell them.
//
// What begins with HeaderPrefix or HeaderConnectPrefix is ours: the rest are the
// record's own.
const (
	HeaderPrefix        = "deliverystat."
	HeaderConnectPrefix = "__connect.errors."

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
const HeaderAcceptLate = HeaderPrefix + "accept_late"

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
	headers   goka.Headers
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
		headers:   goka.HeadersFromSarama(r.Headers),
		verdict:   v,
	}
}

// record returns the dead letter as it is emitted. It can be replayed: key,
// value and headers are those of the record, unless it was too large.
func (d *deadLetter) record() (key string, value []byte, headers goka.Headers) {
	headers = make(goka.Headers, len(d.headers)+8)
	size := len(d.key)
	for name, v := range d.headers {
		headers[name] = v
		size += len(name) + len(v) + 16
	}
	if size > maxValueBytes {
		clear(headers)
		headers[HeaderHeadersDropped] = []byte("true")
		size = len(d.key)
	}
	key, value = d.key, d.value
	if room := max(0, maxValueBytes-size); len(value) > room {
		sum := sha256.Sum256(value)
		headers[HeaderValueLength] = strconv.AppendInt(nil, int64(len(value)), 10)
		headers[HeaderValueHash] = []byte(hex.EncodeToString(sum[:]))
		value = value[:room]
	}
	if len(key) > maxValueBytes {
		headers[HeaderKeyLength] = strconv.AppendInt(nil, int64(len(key)), 10)
		key = key[:maxValueBytes]
	}
	headers[HeaderTopic] = []byte(d.topic)
	headers[HeaderPartition] = strconv.AppendInt(nil, int64(d.partition), 10)
	headers[HeaderOffset] = strconv.AppendInt(nil, d.offset, 10)
	headers[HeaderMessage] = []byte(d.verdict.Detail)
	headers[HeaderReason] = []byte(d.verdict.Reason)
	headers[HeaderTimestamp] = strconv.AppendInt(nil, d.timestamp, 10)
	return key, value, headers
}
