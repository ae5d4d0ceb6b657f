package codecs

import (
	"strings"

	"github.com/tidwall/gjson"
)

// maxWraps is how often a value may be wrapped: a CloudEvent, a schema and a change
// event are three, and one more does no harm.
const maxWraps = 4

// shapes is a set of what an event may be wrapped in.
type shapes uint8

const (
	payloads    shapes = 1 << iota // an escaped string, or an object with a payload: outbox.go
	changes                        // a change event of a table: change.go
	cloudEvents                    // a CloudEvent: cloudevent.go
)

// envelope are the members that tell what an object wraps, of all shapes.
type envelope struct {
	payload    field
	hasPayload bool // there is a key payload, also if it is null

	op, before, after, source field // of a change event

	id                                field // of a row or a CloudEvent
	aggregateID, timestamp, updatedAt field // of a row

	specVersion, kind, subject, time, data, dataBase64, debeziumOp field // of a CloudEvent
	debezium                                                       bool  // it has an attribute of Debezium's converter
}

// scan notes the members of object. It is a pass of its own, which an event that
// nothing is around does not need.
func (e *envelope) scan(object gjson.Result) {
	object.ForEach(func(key, value gjson.Result) bool {
		if to := e.named(key.Str); to != nil {
			*to = fieldOf(value)
		}
		return true
	})
}

// named returns the field that key means.
func (e *envelope) named(key string) *field {
	switch key {
	case "payload":
		e.hasPayload = true
		return &e.payload
	case "op":
		return &e.op
	case "before":
		return &e.before
	case "after":
		return &e.after
	case "source":
		return &e.source
	case "id":
		return &e.id
	case "aggregateid", "aggregate_id", "aggregateId":
		return &e.aggregateID
	case "timestamp":
		return &e.timestamp
	case "updated_at", "updatedAt":
		return &e.updatedAt
	case "specversion":
		return &e.specVersion
	case "type":
		return &e.kind
	case "subject":
		return &e.subject
	case "time":
		return &e.time
	case "data":
		return &e.data
	case "data_base64":
		return &e.dataBase64
	}
	if strings.HasPrefix(key, debeziumAttribute) {
		e.debezium = true
		if key == debeziumAttribute+"op" {
			return &e.debeziumOp
		}
	}
	return nil
}

// opened is what an object turned out to be: a wrapper, or content.
type opened struct {
	wraps  bool
	inside field // what is next to read, if it wraps
	says   content
	fault  string // if unknownShape
}

// wrapper is the way to what is inside of one.
func wrapper(inside field) opened { return opened{wraps: true, inside: inside} }

// read reads an event that may be wrapped in shapes, one in another. What is
// further inside stands; what it does not say may stand around it. Where a
// wrapper holds null there is no event, by design.
func (f *fields) read(text string, in shapes) (content, string) {
	for range maxWraps + 1 {
		v := gjson.Parse(text)
		var next opened
		switch {
		case v.Type == gjson.Null:
			return nothing, ""
		case v.Type == gjson.String && in&payloads != 0:
			f.outbox = true
			next = wrapper(fieldOf(v))
		case v.IsObject():
			next = f.open(v, in)
		default:
			return unknownShape, "value is " + fieldOf(v).kindName() + ", not an object"
		}
		if !next.wraps {
			return next.says, next.fault
		}
		switch text = next.inside.text; next.inside.kind {
		case gjson.Null:
			return nothing, ""
		case gjson.JSON:
		case gjson.String:
			if fault := jsonFault(text); fault != "" {
				return unknownShape, strings.Replace(fault, "value", "text in the value", 1)
			}
		default:
			return unknownShape, "wrapped value is " + next.inside.kindName() + ", not an object"
		}
	}
	return unknownShape, "value is wrapped too often"
}

// open tells what object is. An event may have any other members, which are
// ignored: what is an event wraps none.
func (f *fields) open(object gjson.Result, in shapes) opened {
	inner := fields{mapping: f.mapping}
	inner.scan(object)
	if in == 0 || inner.isEvent() {
		f.within(&inner)
		return opened{says: inner.content()}
	}
	var e envelope
	e.scan(object)
	switch {
	case in&cloudEvents != 0 && e.isCloudEvent():
		return f.openCloudEvent(&e)
	case in&changes != 0 && e.isChange(f.cloud.op):
		return f.openChange(&e)
	case in&payloads != 0 && e.hasPayload:
		f.outbox = true
		f.within(f.beside(object, &inner))
		return wrapper(e.payload)
	}
	f.within(&inner)
	return opened{says: inner.content()}
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
