package codecs

import (
	"strings"

	"github.com/tidwall/gjson"
)

// maxWraps is how often a value may be wrapped: a schema, an envelope and an
// escaped string are three, and one more does no harm.
const maxWraps = 4

// readOutbox reads what Debezium's outbox EventRouter makes of a payload, and
// the native event, which is the payload as it is. Each of these may be around
// it:
//
//	"{\"deliveryId\":…}"                 the payload as an escaped string
//	{"payload":…,"occurredAt":…}         an envelope with additional fields
//	{"schema":…,"payload":…}             the JSON converter with schemas
//
// What the payload says stands; what it does not say may stand beside it in an
// envelope. A payload that is null says nothing.
func (f *fields) readOutbox(text string) (content, string) {
	for range maxWraps + 1 {
		v := gjson.Parse(text)
		switch {
		case v.Type == gjson.Null:
			return nothing, ""
		case v.Type == gjson.String:
			text = v.Str
		case v.IsObject():
			inner := fields{mapping: f.mapping}
			inner.scan(v)
			f.within(&inner)
			if !inner.isEnvelope() {
				return inner.content(), ""
			}
			switch inner.payload.kind {
			case gjson.Null:
				return nothing, ""
			case gjson.String, gjson.JSON:
			default:
				return unknownShape, "payload is " + inner.payload.kindName() + ", not an object"
			}
			text = inner.payload.text
			if inner.payload.kind == gjson.JSON {
				f.outbox = true
				continue
			}
		default:
			return unknownShape, "value is " + fieldOf(v).kindName() + ", not an object"
		}
		f.outbox = true
		if fault := jsonFault(text); fault != "" {
			return unknownShape, strings.Replace(fault, "value", "text in the value", 1)
		}
	}
	return unknownShape, "value is wrapped too often"
}

// isEnvelope reports whether the event is in the payload. An event may itself
// have a field of that name, which is ignored like any other.
func (f *fields) isEnvelope() bool {
	return f.hasPayload && (f.deliveryID.absent() || f.status.absent())
}

// within adds what is further inside: it stands before what is outside.
func (f *fields) within(inner *fields) {
	add := func(to *field, from field) {
		if !from.absent() {
			*to = from
		}
	}
	add(&f.deliveryID, inner.deliveryID)
	add(&f.eventID, inner.eventID)
	add(&f.status, inner.status)
	add(&f.occurredAt, inner.occurredAt)
	add(&f.sequence, inner.sequence)
	for a := range inner.attributes {
		add(&f.attributes[a], inner.attributes[a])
	}
}

// incomplete reports whether headers may add to what the value says.
func (f *fields) incomplete() bool {
	return f.deliveryID.absent() || f.eventID.absent() || f.occurredAt.absent() || f.sequence.absent()
}

// readHeaders adds what the value does not say: id, occurredAt and sequence as
// the EventRouter names them. If a header occurs twice, the last one counts.
// Headers of other programs may have these names too, so an id or a sequence
// that is none says nothing.
func (f *fields) readHeaders(headers []Header) {
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
			if strings.HasPrefix(h.Key, "__debezium.") {
				f.outbox = true
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
