package codecs

import "github.com/tidwall/gjson"

// fields are what a value, the envelopes around it and the record's headers say
// of an event, not yet checked.
type fields struct {
	mapping  *mapping // where a profile says that the fields are, nil for the native ones
	unwanted bool     // the mapping says that this is no event

	deliveryID, eventID, status, occurredAt, sequence field
	attributes                                        [NumAttributes]field

	outbox     bool // the record comes from an outbox router: its key is the delivery ID
	timeAsText bool // occurredAt is from a header: integers are text there

	seen  shapes     // changes and cloudEvents, where it is one
	cloud cloudEvent // what the CloudEvent around it says, if there is one
}

// isEvent reports whether the object of f is the event itself, whatever else it
// holds: it names a delivery and its status or, where a mapping says where to
// look for them, one of both.
func (f *fields) isEvent() bool {
	if f.mapping != nil {
		return !f.deliveryID.absent() || !f.status.absent()
	}
	return !f.deliveryID.absent() && !f.status.absent()
}

// content is what an object says that is no envelope.
func (f *fields) content() content {
	if f.unwanted {
		return nothing
	}
	return event
}

// scan notes the known fields of object.
func (f *fields) scan(object gjson.Result) {
	if f.mapping != nil {
		f.mapping.read(object, f)
		return
	}
	f.scanNative(object)
}

// scanNative notes the fields of the native event in one pass.
func (f *fields) scanNative(object gjson.Result) {
	object.ForEach(func(key, value gjson.Result) bool {
		if to := f.named(key.Str); to != nil {
			*to = fieldOf(value)
		}
		return true
	})
}

// named returns the field that key, in snake_case or camelCase, means.
func (f *fields) named(key string) *field {
	switch key {
	case "delivery_id", "deliveryId":
		return &f.deliveryID
	case "status":
		return &f.status
	case "occurred_at", "occurredAt":
		return &f.occurredAt
	case "event_id", "eventId":
		return &f.eventID
	case "sequence":
		return &f.sequence
	case "order_id", "orderId":
		return &f.attributes[OrderID]
	case "store_id", "storeId":
		return &f.attributes[StoreID]
	case "region":
		return &f.attributes[Region]
	case "service":
		return &f.attributes[Service]
	}
	return nil
}
