package codecs

import (
	"strconv"
	"time"
)

// EncodeNative returns e as the JSON of a native event. Decoding it gives e
// again, its hash included. The time is written in UTC.
func EncodeNative(e *Event, l *Lifecycle) []byte {
	b := make([]byte, 0, 256)
	b = append(b, '{')
	if e.EventID != "" {
		b = appendMember(b, "event_id", e.EventID)
	}
	b = appendMember(b, "delivery_id", e.DeliveryID)
	b = appendMember(b, "status", l.sentName(e))
	b = append(b, `"occurred_at":"`...)
	b = time.Unix(0, e.OccurredAt).UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, `",`...)
	if e.Sequenced {
		b = append(b, `"sequence":`...)
		b = strconv.AppendInt(b, e.Sequence, 10)
		b = append(b, ',')
	}
	for a, v := range e.Attributes {
		if v != "" {
			b = appendMember(b, Attribute(a).String(), v)
		}
	}
	b[len(b)-1] = '}' // in place of the last comma
	return b
}
