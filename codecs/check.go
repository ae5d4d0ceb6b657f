package codecs

import (
	"fmt"

	"github.com/tidwall/gjson"
)

// check makes an event of the fields of record r, or refuses it.
func (d *Decoder) check(r *Record, f *fields, out *Decoded) {
	id, ok := f.checkID(r.Key, d.anyKey, out)
	if !ok {
		return
	}
	name, ok := f.checkStatus(out)
	if !ok {
		return
	}
	if known, ok := d.statuses[name]; ok {
		name = known
	}
	at, ok := f.checkTime(out)
	if !ok {
		return
	}
	sequence, sequenced, ok := f.checkSequence(out)
	if !ok || !checkText("event_id", f.eventID, out) {
		return
	}
	for a := range f.attributes {
		if !checkText(Attribute(a).String(), f.attributes[a], out) {
			return
		}
	}

	e := &out.Event
	e.DeliveryID, e.EventID = id, f.eventID.text
	e.OccurredAt, e.Sequence, e.Sequenced = at, sequence, sequenced
	e.Status, _ = d.lifecycle.Parse(name)
	if d.lifecycle.Name(e.Status) != name {
		e.RawStatus = name
	}
	for a := range f.attributes {
		e.Attributes[a] = f.attributes[a].text
	}
	e.Hash = d.lifecycle.HashEvent(e)
}

func (f *fields) checkID(key string, anyKey bool, out *Decoded) (string, bool) {
	id := f.deliveryID.text
	switch {
	case f.deliveryID.absent() && f.keyIsID(key):
		id = unwrapText(key)
	case f.deliveryID.absent():
		out.refuse(MissingField, "delivery_id is missing")
		return "", false
	case f.deliveryID.kind != gjson.String:
		out.refuse(WrongType, "delivery_id is "+f.deliveryID.kindName()+", not a string")
		return "", false
	}
	if !ValidID(id) {
		out.refuse(InvalidID, fmt.Sprintf("delivery_id %.64q of %d bytes is not 1 to 256 bytes of UTF-8 without control characters", id, len(id)))
		return "", false
	}
	if !anyKey && key != id && unwrapText(key) != id && !f.keyedByColumn(key, id) {
		out.refuse(KeyMismatch, fmt.Sprintf("record key %.300q is not the delivery_id %.300q", key, id))
		return "", false
	}
	return id, true
}

// keyIsID reports whether the key of the record tells the delivery ID that the
// value does not: in the records of an outbox router, whose key it is, and where
// a CloudEvent has it as its subject too. The key of a change event is that of
// its row.
func (f *fields) keyIsID(key string) bool {
	if key == "" || f.seen&changes != 0 {
		return false
	}
	return f.outbox || f.seen&cloudEvents != 0 && f.cloud.subject != "" && f.cloud.subject == unwrapText(key)
}

func (f *fields) checkStatus(out *Decoded) (string, bool) {
	switch {
	case f.status.absent(), f.status.kind == gjson.String && f.status.text == "":
		out.refuse(MissingField, "status is missing")
		return "", false
	case f.status.kind != gjson.String:
		out.refuse(WrongType, "status is "+f.status.kindName()+", not a string")
		return "", false
	case len(f.status.text) > maxText:
		out.refuse(WrongType, fmt.Sprintf("status has %d bytes, more than 256", len(f.status.text)))
		return "", false
	case !f.status.plain && !printable(f.status.text):
		out.refuse(WrongType, "status has control characters")
		return "", false
	}
	return f.status.text, true
}

func (f *fields) checkSequence(out *Decoded) (sequence int64, sequenced, ok bool) {
	if f.sequence.absent() {
		return 0, false, true
	}
	if !f.sequence.isInteger() {
		out.refuse(WrongType, "sequence is "+f.sequence.kindName()+", not an integer")
		return 0, false, false
	}
	sequence, ok = parseInteger(f.sequence.text)
	if !ok {
		out.refuse(WrongType, "sequence does not fit 64 bits")
	}
	return sequence, true, ok
}

// checkText checks an optional text: at most 256 bytes, no control characters.
func checkText(name string, v field, out *Decoded) bool {
	switch {
	case v.absent():
		return true
	case v.kind != gjson.String:
		out.refuse(WrongType, name+" is "+v.kindName()+", not a string")
	case len(v.text) > maxText:
		out.refuse(AttributeTooLong, fmt.Sprintf("%s has %d bytes, more than 256", name, len(v.text)))
	case !v.plain && !printable(v.text):
		out.refuse(WrongType, name+" has control characters")
	default:
		return true
	}
	return false
}
