package codecs

import (
	"fmt"

	"github.com/tidwall/gjson"
)

// isChange reports whether e is a change event of a table as Debezium's
// connectors write it:
//
//	{"before":…,"after":…,"source":{…},"op":"c","ts_ms":…}
//
// fromCloud is the op that a CloudEvent around it has in its stead, or "".
//
// https://debezium.io/documentation/reference/stable/connectors/mysql.html#mysql-events
func (e *envelope) isChange(fromCloud string) bool {
	row := e.before.isObject() || e.after.isObject()
	return e.op.kind == gjson.String && (row || e.source.isObject()) || fromCloud != "" && row
}

// openChange opens a change event. A row that was created (c), read by a snapshot
// (r) or updated (u) is one of two things.
//
// A row of an outbox (columns aggregateid and payload) holds the event in its
// payload, JSON as text or not. What that does not say the row may say: the
// columns id (the event ID), aggregateid (the delivery ID), occurred_at or else
// timestamp, sequence and the attributes; never the status, since a column of
// that name tells how far the row was sent. Such a row does not change: an update
// is ignored.
//
// Any other row is the delivery itself, in columns named as the fields of the
// native event, or as a profile says. The event time is the column occurred_at, or
// else updated_at.
//
// The times of the envelope (source.ts_ms, ts_ms) say when the row was committed
// and when Debezium read it, and never stand in for an event time: a snapshot
// stamps them anew. A column of a time without zone holds what Debezium takes for
// UTC.
//
// Ignored are a deleted row (d), for a deletion is a clean-up and no step of a
// delivery, and tells neither a status nor a time of its own (PostgreSQL does not
// even send the row); a truncation (t); and a message in the log (m).
func (f *fields) openChange(e *envelope) opened {
	op := f.cloud.op
	if e.op.kind == gjson.String {
		op = e.op.text
	}
	f.seen |= changes
	f.cloud.op = ""
	switch op {
	case "c", "r", "u":
	case "d", "t", "m":
		return opened{says: nothing}
	default:
		return opened{says: unknownShape, fault: fmt.Sprintf("op %.64q of a change event is not c, r, u, d, t or m", op)}
	}
	if !e.after.isObject() {
		return opened{says: unknownShape, fault: "change event with op " + op + " has no row after it"}
	}
	object := gjson.Parse(e.after.text)
	row := fields{mapping: f.mapping}
	row.scan(object)
	var columns envelope
	columns.scan(object)
	switch {
	case !columns.isOutboxRow(&row):
		if f.mapping == nil {
			setAbsent(&row.occurredAt, columns.updatedAt)
		}
		f.within(&row)
		return opened{says: row.content()}
	case op == "u":
		return opened{says: nothing}
	}
	beside := f.beside(object, &row)
	beside.status = field{}
	setAbsent(&beside.eventID, columns.id.integerAsText())
	setAbsent(&beside.deliveryID, columns.aggregateID.integerAsText())
	setAbsent(&beside.occurredAt, columns.timestamp)
	f.within(beside)
	return wrapper(columns.payload)
}

func (e *envelope) isOutboxRow(row *fields) bool {
	return e.hasPayload && (!e.aggregateID.absent() || !row.isEvent())
}

func setAbsent(to *field, value field) {
	if to.absent() {
		*to = value
	}
}

// keyedByColumn reports whether the record of a change event has id as its key: a
// struct of the key columns, which are that one.
//
//	{"delivery_id":"D-1"}
//	{"schema":…,"payload":{"delivery_id":"D-1"}}
func (f *fields) keyedByColumn(key, id string) bool {
	if f.seen&changes == 0 || key == "" || key[0] != '{' || jsonFault(key) != "" {
		return false
	}
	columns := gjson.Parse(key)
	var e envelope
	if e.scan(columns); e.payload.isObject() {
		columns = gjson.Parse(e.payload.text)
	}
	var only field
	n := 0
	columns.ForEach(func(_, value gjson.Result) bool {
		only = fieldOf(value).integerAsText()
		n++
		return true
	})
	return n == 1 && only.kind == gjson.String && only.text == id
}
