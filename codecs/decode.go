package codecs

import (
	"fmt"
	"strings"
	"unsafe"
)

// The input formats that NewDecoder knows.
const (
	FormatAuto        = "auto"            // the shape of each record tells
	FormatNative      = "native"          // the native event, nothing around it
	FormatOutbox      = "debezium-outbox" // what Debezium's outbox EventRouter makes
	FormatChange      = "debezium-change" // Debezium's change events, of an outbox or of a table of deliveries
	FormatCloudEvents = "cloudevents"     // CloudEvents 1.0, structured or binary
)

// Formats returns the names of the input formats.
func Formats() []string {
	return []string{FormatAuto, FormatNative, FormatOutbox, FormatChange, FormatCloudEvents}
}

// Decoder decodes the records of one input. It has no state: any number of
// goroutines may use one.
type Decoder struct {
	lifecycle *Lifecycle
	format    string
	in        shapes // what an event may be wrapped in
	must      shapes // what it must be wrapped in
	anyKey    bool
	mapping   *mapping // nil for the fields of the native event

	// statuses says what the names of a source mean in the lifecycle, where that
	// does not know them.
	statuses map[string]string
}

// NewDecoder returns a decoder for one of Formats. [Profile.NewDecoder] returns
// one for events that look otherwise.
func NewDecoder(format string, lifecycle *Lifecycle) (*Decoder, error) {
	d := &Decoder{lifecycle: lifecycle, format: format}
	switch format {
	case FormatAuto:
		d.in = payloads | changes | cloudEvents
	case FormatNative:
	case FormatOutbox:
		d.in = payloads
	case FormatChange:
		d.in, d.must = payloads|changes, changes
	case FormatCloudEvents:
		d.in, d.must = payloads|changes|cloudEvents, cloudEvents
	default:
		return nil, fmt.Errorf("unknown events format %q, want one of %s", format, strings.Join(Formats(), ", "))
	}
	return d, nil
}

// AnyKey returns a decoder like d for records whose key need not be the delivery
// ID.
func (d *Decoder) AnyKey() *Decoder {
	other := *d
	other.anyKey = true
	return &other
}

// Native returns a decoder like d for native events, whatever the profile says of
// where their fields are.
func (d *Decoder) Native() *Decoder {
	other := *d
	other.mapping = nil
	return &other
}

// Mapping identifies the mapping of the profile that d decodes by: equal texts
// mean that events are read from the same places. It is "" for native events.
func (d *Decoder) Mapping() string {
	if d.mapping == nil {
		return ""
	}
	return d.mapping.version()
}

// Decode never fails and never panics. out is overwritten. The strings of an
// event are parts of r's key and value where they stand there as they are: the
// event is valid as long as those are not changed, and keeps them in memory.
//
// If a record has several faults, the reason is that of the first in this
// order: the value as a whole, the delivery ID, the record key, status, event
// time, sequence, event ID, attributes. Where a JSON object has a key twice (in
// whatever spelling), the last one counts.
func (d *Decoder) Decode(r *Record, out *Decoded) {
	if r.Value == nil {
		*out = Decoded{Outcome: IsIgnored}
		return
	}
	*out = Decoded{}
	var f fields
	text := textOf(r.Value)
	if d.mapping == nil && f.scanFlat(text) && (f.isEvent() || d.in == 0) {
		d.complete(r, &f, out)
		return
	}
	f = fields{mapping: d.mapping}
	if fault := jsonFault(text); fault != "" {
		out.refuse(Unreadable, fault)
		return
	}
	switch says, fault := f.read(text, d.in); says {
	case nothing:
		*out = Decoded{Outcome: IsIgnored}
	case unknownShape:
		out.refuse(Unreadable, fault)
	case event:
		d.complete(r, &f, out)
	}
}

// complete adds what the record's headers say and checks the whole.
func (d *Decoder) complete(r *Record, f *fields, out *Decoded) {
	if d.format == FormatOutbox {
		f.outbox = true
	}
	if d.in != 0 && (f.incomplete() || d.must&^f.seen != 0) && r.Headers != nil {
		f.readHeaders(r.Headers())
	}
	f.addCloudEvent()
	switch d.must &^ f.seen {
	case changes:
		out.refuse(Unreadable, "value is not a change event")
	case cloudEvents:
		out.refuse(Unreadable, "neither value nor headers are those of a CloudEvent 1.0")
	default:
		d.check(r, f, out)
	}
}

// content is what the shape of a value says it holds.
type content uint8

const (
	event        content = iota // the fields of an event
	nothing                     // null, by design
	unknownShape                // JSON, but of no known shape
)

// textOf is b as a string without a copy. It is valid only as long as b is not
// changed, and who keeps a part of it keeps all of it in memory.
func textOf(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b)) //nolint:gosec // a copy of each value would cost more than reading it
}
