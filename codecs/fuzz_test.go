package codecs_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"deliverystat/codecs"
	"deliverystat/codecs/codecstest"
)

// FuzzDecodeEvent shows that decoding never panics, gives nothing but the
// outcomes and reasons that it may give, says of JSON what encoding/json says,
// and that an event encoded as native JSON decodes to the same event.
func FuzzDecodeEvent(f *testing.F) {
	f.Add("D-20261130-000042", []byte(nativeEvent), "")
	f.Add("D-1", []byte(payload), "1773453702123457")
	f.Add(`"D-1"`, []byte(quoteJSON(payload)), "x")
	f.Add(`{"schema":{},"payload":"D-1"}`, []byte(withSchema(quoteJSON(payload))), "")
	f.Add("D-1", []byte(`{"payload":`+bare+`,"occurredAt":1773453702123457,"sequence":6}`), "")
	f.Add("D-1", minimal("sequence", "-9223372036854775808"), "")
	f.Add("D-1", minimal("region", `"\ud800\u0041\ud83d\ude00"`), "")
	f.Add("", []byte(`{"delivery_id":"\u0000","delivery_id":null}`), `"`)
	for _, fixture := range codecstest.Fixtures() {
		shapes := map[string]bool{}
		for _, r := range fixture.Records {
			if op := gjson.GetBytes(r.Value, "[op,payload.op,iodebeziumop]").Raw; !shapes[op] && len(r.Value) < 20_000 {
				shapes[op] = true
				f.Add(string(r.Key), r.Value, "1773453702123457")
			}
		}
	}
	l := codecs.BuiltinLifecycle()
	decoders := map[string]*codecs.Decoder{}
	for _, format := range codecs.Formats() {
		d, err := codecs.NewDecoder(format, l)
		require.NoError(f, err)
		decoders[format] = d
	}
	reasons := codecs.Reasons()[:7] // those that decoding gives

	f.Fuzz(func(t *testing.T, key string, value []byte, header string) {
		anyKey := strings.HasPrefix(key, "{")
		for format, d := range decoders {
			if anyKey {
				d = d.AnyKey()
			}
			r := &codecs.Record{Key: key, Value: bytes.Clone(value)}
			if header != "" {
				r.Headers = func() []codecs.Header {
					h := []byte(header)
					return []codecs.Header{
						{"id", h},
						{"occurredAt", h},
						{"sequence", h},
						{"ce_specversion", []byte("1.0")},
						{"ce_id", h},
						{"ce_time", h},
						{"ce_subject", h},
						{"ce_" + header, h},
					}
				}
			}
			var out codecs.Decoded
			d.Decode(r, &out)
			require.Equal(t, value, r.Value, "the record is not changed")
			switch out.Outcome {
			case codecs.IsEvent:
				require.Empty(t, out.Reason)
				require.Empty(t, out.Detail)
			case codecs.IsIgnored:
				require.Equal(t, codecs.Decoded{Outcome: codecs.IsIgnored}, out)
				continue
			case codecs.IsRefused:
				require.Contains(t, reasons, out.Reason)
				require.NotEmpty(t, out.Detail)
				require.Equal(t, codecs.Event{}, out.Event)
				if json.Valid(value) && format == codecs.FormatNative && bytes.HasPrefix(bytes.TrimSpace(value), []byte("{")) {
					require.True(t, out.Reason != codecs.Unreadable || bytes.Count(value, []byte("{"))+bytes.Count(value, []byte("[")) > 1000 || strings.Contains(out.Detail, "UTF-8"), out.Detail)
				}
				continue
			default:
				t.Fatalf("outcome %d", out.Outcome)
			}
			e := out.Event
			require.True(t, codecs.ValidID(e.DeliveryID))
			require.GreaterOrEqual(t, e.OccurredAt, codecs.MinEventTime)
			require.Less(t, e.Status, l.Abandoned())
			require.True(t, e.Sequenced || e.Sequence == 0)
			if format == codecs.FormatNative {
				sameAsEncodingJSON(t, value, &e)
			}
			for again, value := range inEveryFormat(&e, l) {
				var second codecs.Decoded
				decoders[again].Decode(&codecs.Record{Key: e.DeliveryID, Value: value}, &second)
				require.Equal(t, out, second, again)
				second = codecs.Decoded{}
				decoders[codecs.FormatAuto].Decode(&codecs.Record{Key: e.DeliveryID, Value: value}, &second)
				require.Equal(t, out, second, again)
			}
		}
	})
}

// inEveryFormat returns e as each format has it.
func inEveryFormat(e *codecs.Event, l *codecs.Lifecycle) map[string][]byte {
	native := string(codecs.EncodeNative(e, l))
	row := `{"id":` + quoteJSON(e.EventID) + `,"aggregatetype":"delivery","aggregateid":` + quoteJSON(e.DeliveryID) + `,"payload":` + quoteJSON(native) + `}`
	change := `{"before":null,"after":` + row + `,"source":{"ts_ms":1796073891000},"op":"c","ts_ms":1796073891433}`
	cloud := `{"specversion":"1.0","id":` + quoteJSON(e.EventID) + `,"source":"/s","type":"t","time":"2020-01-01T00:00:00Z","data":` + native + `}`
	return map[string][]byte{
		codecs.FormatAuto:        []byte(native),
		codecs.FormatNative:      []byte(native),
		codecs.FormatOutbox:      []byte(quoteJSON(native)),
		codecs.FormatChange:      []byte(change),
		codecs.FormatCloudEvents: []byte(cloud),
	}
}

// sameAsEncodingJSON checks the texts of a native event.
func sameAsEncodingJSON(t *testing.T, value []byte, e *codecs.Event) {
	t.Helper()
	var members map[string]any
	require.NoError(t, json.Unmarshal(value, &members))
	text := func(names ...string) []string {
		var all []string
		for _, name := range names {
			if s, ok := members[name].(string); ok {
				all = append(all, s)
			}
		}
		return all
	}
	require.Contains(t, text("delivery_id", "deliveryId"), e.DeliveryID)
	name := e.RawStatus
	if name == "" {
		name = codecs.BuiltinLifecycle().Name(e.Status)
	}
	require.Equal(t, []string{name}, text("status"))
	if e.Attributes[codecs.Region] != "" {
		require.Equal(t, []string{e.Attributes[codecs.Region]}, text("region"))
	}
	if e.EventID != "" {
		require.Contains(t, text("event_id", "eventId"), e.EventID)
	}
}

// fuzzReader shows that reading never panics, and that what was read is written
// so that it reads the same.
func fuzzReader(f *testing.F, name string) {
	all := readers()
	r := all[slices.IndexFunc(all, func(r reader) bool { return r.name == name })]
	f.Add(r.bytes)
	f.Add(r.bytes[:len(r.bytes)/2])
	f.Add(interleave(r.bytes, []byte{0x78, 1}))
	f.Add([]byte{8, 1, 0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Add([]byte{8, 1, 0x13, 0x13, 0x14, 0x14})
	f.Fuzz(func(t *testing.T, b []byte) {
		input := bytes.Clone(b)
		again, err := r.again(b)
		require.Equal(t, input, b, "the input is not changed")
		if err != nil {
			require.ErrorContains(t, err, "reading "+name)
			return
		}
		twice, err := r.again(again)
		require.NoError(t, err)
		require.Equal(t, again, twice)
	})
}

func FuzzReadRow(f *testing.F)            { fuzzReader(f, "row") }
func FuzzReadProgress(f *testing.F)       { fuzzReader(f, "progress row") }
func FuzzReadCountsProgress(f *testing.F) { fuzzReader(f, "counts progress row") }
func FuzzReadTally(f *testing.F)          { fuzzReader(f, "tally") }
func FuzzReadCounts(f *testing.F)         { fuzzReader(f, "counts row") }

// FuzzParsePosition shows that a position that parses is written so that it
// parses to the same.
func FuzzParsePosition(f *testing.F) {
	f.Add("0:1042,1:998", 0)
	f.Add("3:17,1:2", 5)
	f.Add("00:01", 1)
	f.Fuzz(func(t *testing.T, text string, n int) {
		if n < 0 || n > 1000 {
			return
		}
		p, err := codecs.ParsePosition(text, n)
		if err != nil {
			return
		}
		again, err := codecs.ParsePosition(p.String(), n)
		require.NoError(t, err)
		require.Equal(t, p, again)
		require.True(t, p.Reaches(again))
	})
}
