package codecs

import (
	"encoding/base64"
	"strings"

	"github.com/tidwall/gjson"
)

// A CloudEvent carries an event as its data. Structured, it is a JSON object
// around the data; binary, the value is the data and the attributes are headers
// whose names begin with ce_. Both are told by their shape, whatever the header
// content-type says. The data may itself be anything that a value may be.
//
// Of the attributes, time is the event time and id the event ID where the data
// has none of its own, and subject the delivery ID where it is the record key
// too. Extension attributes say nothing.
//
// https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/kafka-protocol-binding.md
const (
	cloudHeader = "ce_"

	// What Debezium's CloudEvents converter makes begins so: its extension
	// attributes, its type and its source. Its time is when a row was committed or
	// read, and its id a position in the log, so neither says anything of the event.
	debeziumAttribute = "iodebezium"
	debeziumType      = "io.debezium."
	debeziumSource    = "/debezium/"
)

// cloudEvent is what a CloudEvent says of the event that is its data.
type cloudEvent struct {
	id, time, subject string // "" if it says none
	op                string // of the change event that is its data
	debezium          bool   // made by Debezium's converter
}

func (e *envelope) isCloudEvent() bool {
	return e.specVersion.kind == gjson.String && e.id.kind == gjson.String &&
		e.kind.kind == gjson.String && e.source.kind == gjson.String
}

// openCloudEvent opens a structured CloudEvent. One without data is what in
// binary mode is a record without a value: no event, by design.
func (f *fields) openCloudEvent(e *envelope) opened {
	if !isVersion1(e.specVersion.text) {
		return opened{says: unknownShape, fault: "CloudEvent is not of version 1"}
	}
	f.seen |= cloudEvents
	f.cloud = cloudEvent{
		id: attribute(e.id), time: attribute(e.time), subject: attribute(e.subject), op: attribute(e.debeziumOp),
		debezium: e.debezium || strings.HasPrefix(e.kind.text, debeziumType) || strings.HasPrefix(e.source.text, debeziumSource),
	}
	if !e.data.absent() || e.dataBase64.absent() {
		return wrapper(e.data)
	}
	data, err := base64.StdEncoding.DecodeString(e.dataBase64.text)
	if err != nil || e.dataBase64.kind != gjson.String {
		return opened{says: unknownShape, fault: "data_base64 is not base64"}
	}
	return wrapper(field{kind: gjson.String, text: string(data)})
}

// attribute returns the text of an attribute, "" if it is not one that an event
// may have.
func attribute(v field) string {
	if v.kind != gjson.String || len(v.text) > maxText || !printable(v.text) {
		return ""
	}
	return v.text
}

// readCloudHeader notes an attribute of a binary CloudEvent.
func (f *fields) readCloudHeader(h *Header) {
	switch name := strings.TrimPrefix(h.Key, cloudHeader); name {
	case "specversion":
		if isVersion1(textOf(h.Value)) {
			f.seen |= cloudEvents
		}
	case "id":
		f.cloud.id = headerText(h.Value).text
	case "time":
		f.cloud.time = headerText(h.Value).text
	case "subject":
		f.cloud.subject = headerText(h.Value).text
	case "type":
		f.cloud.debezium = f.cloud.debezium || strings.HasPrefix(textOf(h.Value), debeziumType)
	case "source":
		f.cloud.debezium = f.cloud.debezium || strings.HasPrefix(textOf(h.Value), debeziumSource)
	default:
		f.cloud.debezium = f.cloud.debezium || strings.HasPrefix(name, debeziumAttribute)
	}
}

// addCloudEvent adds what the CloudEvent says and its data does not.
func (f *fields) addCloudEvent() {
	if f.seen&cloudEvents == 0 || f.cloud.debezium {
		return
	}
	if f.eventID.absent() && f.cloud.id != "" {
		f.eventID = field{kind: gjson.String, text: f.cloud.id}
	}
	if f.occurredAt.absent() && f.cloud.time != "" {
		f.occurredAt = field{kind: gjson.String, text: f.cloud.time}
	}
}

// isVersion1 reports whether a specversion is 1.0, or a later one that is
// compatible with it.
func isVersion1(version string) bool { return strings.HasPrefix(version, "1.") }
