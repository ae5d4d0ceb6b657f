package codecstest

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"time"

	"deliverystat/codecs"
)

// Fixture is the content of one captured topic, or that of some of its
// deliveries.
type Fixture struct {
	Name    string   // of the file, without its extension
	Records []Record // by partition and offset, as they lay in the topic
	Format  string   // the fixed input format that it has
	// OtherKeys says that the record keys are not the delivery IDs, so that only
	// a decoder for any key takes the records.
	OtherKeys bool

	// Want holds the final status of each delivery, by delivery ID, in order of
	// event time. A delivery that no readable record tells of is not in it.
	Want map[string]string
	// WantBySequence is the same in order of sequence; nil if the records have
	// none.
	WantBySequence map[string]string
	// Winners holds more of the events that Want is made of.
	Winners map[string]Winner
	// WinnersBySequence holds more of the events that WantBySequence is made of.
	WinnersBySequence map[string]Winner
}

// Winner is the event that a delivery's final status comes from.
type Winner struct {
	Status     string
	EventID    string
	OccurredAt int64 // Unix nanoseconds
	Sequence   int64 // 0 if it has none
}

// Record is one captured record. Its partition is that of its key among eight.
type Record struct {
	Partition int32
	Offset    int64 // with gaps where markers or other deliveries lay
	Timestamp time.Time
	Key       []byte
	Value     []byte // nil for a tombstone
	Headers   []codecs.Header
}

// Input returns r as a decoder takes it.
func (r *Record) Input() *codecs.Record {
	return &codecs.Record{
		Key:       string(r.Key),
		Value:     r.Value,
		Headers:   func() []codecs.Header { return r.Headers },
		Timestamp: r.Timestamp.UnixNano(),
	}
}

// shape returns the format of a file, and whether its keys are not the delivery
// IDs.
func shape(name string) (format string, otherKeys bool) {
	switch {
	case strings.HasPrefix(name, "mariadb-f2-"): // a key column was chosen
		return codecs.FormatChange, false
	case strings.HasPrefix(name, "mariadb-f-"):
		return codecs.FormatChange, true
	case strings.HasPrefix(name, "mariadb-h-"):
		return codecs.FormatCloudEvents, true
	}
	return codecs.FormatOutbox, false
}

// tables returns which tables of expected.json hold for a file: by event time,
// and by sequence if its records have one.
func tables(name string) (byTime, bySequence string) {
	switch {
	case strings.HasPrefix(name, "mariadb-g2-"), strings.HasPrefix(name, "mariadb-k-"):
		return "bulk_by_event_time", ""
	case strings.HasPrefix(name, "mariadb-s-"), strings.HasPrefix(name, "postgres-s-"):
		return "sequence_by_event_time_only", "sequence_by_sequence_then_event_time"
	case strings.HasPrefix(name, "mariadb-h3-"): // every value is null
		return "", ""
	}
	return "main_by_event_time", ""
}

// exceptions returns the last events of deliveries of which expected.json does
// not speak, or of which a capture has only a part.
func exceptions(name string) map[string]Winner {
	switch name {
	case "mariadb-f-resnapshot.subset": // an updated row is read again
		return map[string]Winner{"dlv-0018": {
			Status: "CANCELLED", EventID: "2ebaf73a-9681-387e-b06d-dfb0101913c3",
			OccurredAt: time.Date(2026, 3, 14, 2, 2, 46, 123474000, time.UTC).UnixNano(),
		}}
	case "mariadb-poison-expanded-stops":
		return map[string]Winner{"dlv-0021": {
			Status: "CREATED", EventID: "288f4cff-a326-3ed8-972e-0d80b2c04a24",
			OccurredAt: time.Date(2026, 3, 14, 2, 2, 27, 123456000, time.UTC).UnixNano(),
		}}
	case "mariadb-poison-escaped-passes":
		return map[string]Winner{"dlv-0021": {
			Status: "CANCELLED", EventID: "b65619d8-130f-3e2c-a602-d4118ed22ee8",
			OccurredAt: time.Date(2026, 3, 14, 2, 2, 47, 123456000, time.UTC).UnixNano(),
		}}
	case "postgres-s-sequence-table.subset": // the first two of four events
		return map[string]Winner{"dlv-1003": {
			Status: "ASSIGNED", EventID: "573526f6-7bde-380d-9248-5f41587d63f2", Sequence: 2,
			OccurredAt: time.Date(2026, 3, 14, 3, 57, 11, 13000, time.UTC).UnixNano(),
		}}
	}
	return nil
}

// Fixtures returns all fixtures, by name.
func Fixtures() []Fixture {
	expected := readExpected()
	var fixtures []Fixture
	for _, name := range fileNames() {
		f := Fixture{Name: name, Records: readRecords(name)}
		f.Format, f.OtherKeys = shape(name)
		byTime, bySequence := tables(name)
		f.Winners = f.only(expected[byTime])
		maps.Copy(f.Winners, exceptions(name))
		f.Want = statuses(f.Winners)
		if bySequence != "" {
			f.WinnersBySequence = f.only(expected[bySequence])
			maps.Copy(f.WinnersBySequence, exceptions(name))
			f.WantBySequence = statuses(f.WinnersBySequence)
		}
		fixtures = append(fixtures, f)
	}
	return fixtures
}

// only returns those of winners whose deliveries are in f.
func (f *Fixture) only(winners map[string]Winner) map[string]Winner {
	present := map[string]Winner{}
	for id, w := range winners {
		if slices.ContainsFunc(f.Records, func(r Record) bool {
			return bytes.Contains(r.Key, []byte(id)) || f.OtherKeys && bytes.Contains(r.Value, []byte(id))
		}) {
			present[id] = w
		}
	}
	return present
}

func statuses(winners map[string]Winner) map[string]string {
	names := make(map[string]string, len(winners))
	for id, w := range winners {
		names[id] = w.Status
	}
	return names
}
