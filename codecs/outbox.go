package codecs

import (
	"strings"

	"github.com/tidwall/gjson"
)

// Debezium's outbox EventRouter makes of a row's payload one of
//
//	{"deliveryId":…}                     the payload as it is: a native event
//	"{\"deliveryId\":…}"                 the payload as an escaped string
//	{"payload":…,"occurredAt":…}         an envelope with additional fields
//	{"schema":…,"payload":…}             the JSON converter with schemas
//
// and of the row's other columns the record key (the delivery ID) and headers.

// beside returns what counts of an object beside the payload that it holds: all
// that the native event has or, where a mapping is for the payload, what the
// EventRouter puts there. inner is the object as f is read.
func (f *fields) beside(object gjson.Result, inner *fields) *fields {
	if f.mapping == nil {
		return inner
	}
	var native fields
	native.scanNative(object)
	return &fields{eventID: native.eventID, occurredAt: native.occurredAt, sequence: native.sequence}
}

// incomplete reports whether headers may add to what the value says.
func (f *fields) incomplete() bool {
	return f.deliveryID.absent() || f.eventID.absent() || f.occurredAt.absent() || f.sequence.absent()
}

// readHeaders adds what the value does not say: id, occurredAt and sequence as
// the EventRouter names them. If a header occurs twice, the last one counts.
// Headers of other programs may have these names too, so an id or a sequence
// that is none says nothing. The attributes of a binary CloudEvent are noted.
func (f *fields) readHeaders(headers []Header) {
	structured := f.seen&cloudEvents != 0
	noEventID, noTime, noSequence := f.eventID.absent(), f.occurredAt.absent(), f.sequence.absent()
	for i := range headers {
		h := &headers[i]
		switch h.Key {
		case "id":
			f.outbox = true
			if noEventID {
				f.eventID = headerText(h.Value)
			}
		case "occurredAt", "occurred_at":
			if noTime {
				f.occurredAt = headerText(h.Value)
				f.timeAsText = true
			}
		case "sequence":
			if noSequence {
				f.sequence = headerInteger(h.Value)
			}
		default:
			switch {
			case strings.HasPrefix(h.Key, "__debezium."):
				f.outbox = true
			case !structured && strings.HasPrefix(h.Key, cloudHeader):
				f.readCloudHeader(h)
			}
		}
	}
}

// headerText reads a header value as text: plain, quoted or with a schema.
func headerText(b []byte) field {
	text := unwrapText(textOf(b))
	if text == "" || len(text) > maxText || !printable(text) {
		return field{}
	}
	return field{kind: gjson.String, text: text}
}

// headerInteger reads a header value as an integer.
func headerInteger(b []byte) field {
	text := headerText(b).text
	if _, ok := parseInteger(text); !ok {
		return field{}
	}
	return field{kind: gjson.Number, text: text}
}

// unwrapText returns the text that a Connect converter wrote: plain, as a JSON
// string, or in an object with its schema. What is none of these is returned as
// it is.
func unwrapText(text string) string {
	if text == "" || text[0] != '"' && text[0] != '{' || jsonFault(text) != "" {
		return text
	}
	v := gjson.Parse(text)
	if v.Type == gjson.String {
		return v.Str
	}
	var wrapped field
	v.ForEach(func(key, value gjson.Result) bool {
		if key.Str == "payload" {
			wrapped = fieldOf(value)
		}
		return true
	})
	switch wrapped.kind {
	case gjson.String, gjson.Number:
		return wrapped.text
	default:
		return text
	}
}
