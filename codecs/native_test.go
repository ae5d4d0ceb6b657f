package codecs_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"deliverystat/codecs"
)

func TestNativeEvent(t *testing.T) {
	l := codecs.BuiltinLifecycle()
	pickedUp, _ := l.Lookup("PICKED_UP")
	want := codecs.Event{
		DeliveryID: "D-20261130-000042", EventID: "0b6e5f0a-53a1-4c1e-8f0a-2f6f0f1b7c11", Status: pickedUp,
		OccurredAt: time.Date(2026, 11, 30, 1, 0, 0, 123456000, time.UTC).UnixNano(),
		Sequence:   4, Sequenced: true,
		Attributes: [codecs.NumAttributes]string{codecs.OrderID: "O-77", codecs.StoreID: "S-9", codecs.Region: "seoul", codecs.Service: "courier-a"},
	}
	want.Hash = l.HashEvent(&want)
	camel := strings.NewReplacer("event_id", "eventId", "delivery_id", "deliveryId", "occurred_at", "occurredAt",
		"order_id", "orderId", "store_id", "storeId").Replace(nativeEvent)
	for _, value := range []string{nativeEvent, camel, " \r\n\t" + nativeEvent + "\n"} {
		for _, format := range bareFormats {
			require.Equal(t, codecs.Decoded{Event: want}, decode(t, format, "D-20261130-000042", []byte(value)), format)
		}
	}
}

// minimal returns a native event D-1 with one field set or, if raw is "", left
// out.
func minimal(name, raw string) []byte {
	var b strings.Builder
	b.WriteString(`{"unknown":{"status":[1.5e3,true,null]}`)
	for _, member := range [][2]string{{"delivery_id", `"D-1"`}, {"status", `"CREATED"`}, {"occurred_at", `"2026-11-30T10:00:00Z"`}} {
		if member[0] != name {
			b.WriteString(`,"` + member[0] + `":` + member[1])
		}
	}
	if raw != "" {
		b.WriteString(`,"` + name + `":` + raw)
	}
	b.WriteByte('}')
	return []byte(b.String())
}

func TestEventTime(t *testing.T) {
	second := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC).UnixNano()
	for raw, want := range map[string]int64{
		`"2026-11-30T10:00:00Z"`:                second,
		`"2026-11-30T19:00:00+09:00"`:           second,
		`"2026-11-30T04:30:00.000000001-05:30"`: second + 1,
		`"2026-11-30T10:00:00.123456Z"`:         second + 123_456_000,
		`"2026-11-30T10:00:00.123456789Z"`:      second + 123_456_789,
		`"2026-11-30T10:00:00.1234567899Z"`:     second + 123_456_789,
		`"\u0032026-11-30T10:00:00Z"`:           second,
		`1796032800`:                            second,
		`1796032800123`:                         second + 123_000_000,
		`1796032800123456`:                      second + 123_456_000,
		`1796032800123457`:                      second + 123_457_000,
		`1796032800123456789`:                   second + 123_456_789,
		`1420070400`:                            codecs.MinEventTime,
		`"2015-01-01T00:00:00Z"`:                codecs.MinEventTime,
		`99999999999`:                           0, // 5138, but not in an int64 of nanoseconds
		`"2261-12-31T23:59:59.999999999Z"`:      time.Date(2261, 12, 31, 23, 59, 59, 999999999, time.UTC).UnixNano(),
		`9223372036854775807`:                   math.MaxInt64,
	} {
		out := decode(t, codecs.FormatNative, "D-1", minimal("occurred_at", raw))
		if want == 0 {
			require.Equal(t, codecs.InvalidTime, out.Reason, raw)
			continue
		}
		require.Equal(t, codecs.IsEvent, out.Outcome, "%s: %s", raw, out.Detail)
		require.Equal(t, want, out.Event.OccurredAt, raw)
	}
}

func TestEventTimeInAnyZoneAndPrecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nanos := rapid.Int64Range(codecs.MinEventTime, time.Date(2261, 12, 30, 0, 0, 0, 0, time.UTC).UnixNano()).Draw(t, "nanos")
		minutes := rapid.IntRange(-23*60-59, 23*60+59).Draw(t, "zone")
		digits := rapid.IntRange(0, 9).Draw(t, "digits")
		at := time.Unix(0, nanos).Truncate(time.Duration(math.Pow10(9 - digits)))
		text := at.In(time.FixedZone("", minutes*60)).Format(time.RFC3339Nano)
		if rapid.Bool().Draw(t, "lower case") {
			text = strings.ToLower(text)
		}
		var out codecs.Decoded
		d, err := codecs.NewDecoder(codecs.FormatNative, codecs.BuiltinLifecycle())
		if err != nil {
			t.Fatal(err)
		}
		d.Decode(&codecs.Record{Key: "D-1", Value: minimal("occurred_at", `"`+text+`"`)}, &out)
		if at.UnixNano() < codecs.MinEventTime {
			return
		}
		if out.Outcome != codecs.IsEvent || out.Event.OccurredAt != at.UnixNano() {
			t.Fatalf("%s is %d, got %d %s", text, at.UnixNano(), out.Event.OccurredAt, out.Detail)
		}
	})
}

func TestRefusals(t *testing.T) {
	long := strings.Repeat("x", 257)
	for _, c := range []struct {
		name, raw string
		want      codecs.Reason
	}{
		{"delivery_id", ``, codecs.MissingField},
		{"delivery_id", `null`, codecs.MissingField},
		{"delivery_id", `7`, codecs.WrongType},
		{"delivery_id", `{"id":"D-1"}`, codecs.WrongType},
		{"delivery_id", `["D-1"]`, codecs.WrongType},
		{"delivery_id", `true`, codecs.WrongType},
		{"delivery_id", `""`, codecs.InvalidID},
		{"delivery_id", `"` + long + `"`, codecs.InvalidID},
		{"delivery_id", `"D\u00001"`, codecs.InvalidID},
		{"delivery_id", `"\u0000progress"`, codecs.InvalidID},
		{"delivery_id", `"D\n1"`, codecs.InvalidID},
		{"delivery_id", `"D\u007f1"`, codecs.InvalidID},
		{"delivery_id", `"D\u00851"`, codecs.InvalidID},
		{"delivery_id", "\"D\u00851\"", codecs.InvalidID},
		{"delivery_id", `"D-2"`, codecs.KeyMismatch},

		{"status", ``, codecs.MissingField},
		{"status", `null`, codecs.MissingField},
		{"status", `""`, codecs.MissingField},
		{"status", `3`, codecs.WrongType},
		{"status", `false`, codecs.WrongType},
		{"status", `"` + long + `"`, codecs.WrongType},
		{"status", `"A\tB"`, codecs.WrongType},

		{"occurred_at", ``, codecs.MissingField},
		{"occurred_at", `null`, codecs.MissingField},
		{"occurred_at", `true`, codecs.WrongType},
		{"occurred_at", `{}`, codecs.WrongType},
		{"occurred_at", `1796032800.5`, codecs.WrongType},
		{"occurred_at", `1.7960328e9`, codecs.WrongType},
		{"occurred_at", `1e3`, codecs.WrongType},
		{"occurred_at", `""`, codecs.InvalidTime},
		{"occurred_at", `"1796032800"`, codecs.InvalidTime},
		{"occurred_at", `"2026-11-30T10:00:00"`, codecs.InvalidTime},
		{"occurred_at", `"2026-11-30 10:00:00Z"`, codecs.InvalidTime},
		{"occurred_at", `"2026-11-30T1:00:00Z"`, codecs.InvalidTime},
		{"occurred_at", `"2026-11-30T10:00:00,5Z"`, codecs.InvalidTime},
		{"occurred_at", `"2026-11-30T10:00Z"`, codecs.InvalidTime},
		{"occurred_at", `"2026-11-30T10:00:00.Z"`, codecs.InvalidTime},
		{"occurred_at", `"2026-11-30T10:60:00Z"`, codecs.InvalidTime},
		{"occurred_at", `"2026-11-30T10:00:60Z"`, codecs.InvalidTime},
		{"occurred_at", `"2026-13-30T10:00:00Z"`, codecs.InvalidTime},
		{"occurred_at", `"2026-00-30T10:00:00Z"`, codecs.InvalidTime},
		{"occurred_at", `"2026-02-29T10:00:00Z"`, codecs.InvalidTime},
		{"occurred_at", `"2026-11-00T10:00:00Z"`, codecs.InvalidTime},
		{"occurred_at", `"2026-11-30T10:00:00+0900"`, codecs.InvalidTime},
		{"occurred_at", `"2026-11-30T10:00:00+09"`, codecs.InvalidTime},
		{"occurred_at", `"2026-11-30T10:00:00+09:60"`, codecs.InvalidTime},
		{"occurred_at", `"2026-11-30T10:00:00*09:00"`, codecs.InvalidTime},
		{"occurred_at", `"2026-11-30T10:00:00ZZ"`, codecs.InvalidTime},
		{"occurred_at", `"+026-11-30T10:00:00Z"`, codecs.InvalidTime},
		{"occurred_at", `"2026-11-30T10:00: 0Z"`, codecs.InvalidTime},
		{"occurred_at", `"2026/11/30T10:00:00Z"`, codecs.InvalidTime},
		{"occurred_at", `"2026-11-30T10.00.00Z"`, codecs.InvalidTime},
		{"occurred_at", `"20261130T100000Z"`, codecs.InvalidTime},
		{"occurred_at", `"2026-11-31T10:00:00Z"`, codecs.InvalidTime},
		{"occurred_at", `"2026-11-30T24:00:00Z"`, codecs.InvalidTime},
		{"occurred_at", `"2026-11-30T10:00:00+25:00"`, codecs.InvalidTime},
		{"occurred_at", `"` + long + `"`, codecs.InvalidTime},
		{"occurred_at", `"2014-12-31T23:59:59.999999999Z"`, codecs.InvalidTime},
		{"occurred_at", `"0001-01-01T00:00:00Z"`, codecs.InvalidTime},
		{"occurred_at", `"9999-01-01T00:00:00Z"`, codecs.InvalidTime},
		{"occurred_at", `0`, codecs.InvalidTime},
		{"occurred_at", `-1`, codecs.InvalidTime},
		{"occurred_at", `1420070399`, codecs.InvalidTime},
		{"occurred_at", `9223372036854775808`, codecs.InvalidTime},
		{"occurred_at", `100000000000000000000000000000`, codecs.InvalidTime},

		{"sequence", `"4"`, codecs.WrongType},
		{"sequence", `4.0`, codecs.WrongType},
		{"sequence", `4e0`, codecs.WrongType},
		{"sequence", `[4]`, codecs.WrongType},
		{"sequence", `9223372036854775808`, codecs.WrongType},
		{"sequence", `-9223372036854775809`, codecs.WrongType},

		{"event_id", `7`, codecs.WrongType},
		{"event_id", `"a\u0000b"`, codecs.WrongType},
		{"event_id", `"` + long + `"`, codecs.AttributeTooLong},
		{"region", `7`, codecs.WrongType},
		{"region", `"seo\rul"`, codecs.WrongType},
		{"region", `"` + long + `"`, codecs.AttributeTooLong},
		{"region", `"` + strings.Repeat("x", 400_000) + `"`, codecs.AttributeTooLong},
		{"service", `["a"]`, codecs.WrongType},
		{"order_id", `1.5`, codecs.WrongType},
		{"store_id", `"` + long + `"`, codecs.AttributeTooLong},
	} {
		value := minimal(c.name, c.raw)
		for _, format := range []string{codecs.FormatNative, codecs.FormatAuto} {
			out := decode(t, format, "D-1", value)
			require.Equal(t, codecs.IsRefused, out.Outcome, "%s %.80s", c.name, c.raw)
			require.Equal(t, c.want, out.Reason, "%s %.80s: %s", c.name, c.raw, out.Detail)
			require.NotEmpty(t, out.Detail)
			require.Less(t, len(out.Detail), 2000)
			require.Equal(t, codecs.Event{}, out.Event)
		}
	}
}

func TestAcceptedOddities(t *testing.T) {
	long := strings.Repeat("가", 85) + "x" // 256 bytes
	for _, c := range []struct {
		name, raw string
		want      func(*codecs.Event)
	}{
		{"sequence", `null`, func(*codecs.Event) {}},
		{"sequence", `0`, func(e *codecs.Event) { e.Sequenced = true }},
		{"sequence", `-0`, func(e *codecs.Event) { e.Sequenced = true }},
		{"sequence", `9223372036854775807`, func(e *codecs.Event) { e.Sequence, e.Sequenced = math.MaxInt64, true }},
		{"sequence", `-9223372036854775808`, func(e *codecs.Event) { e.Sequence, e.Sequenced = math.MinInt64, true }},
		{"sequence", `9007199254740993`, func(e *codecs.Event) { e.Sequence, e.Sequenced = 9007199254740993, true }},
		{"event_id", `null`, func(*codecs.Event) {}},
		{"event_id", `""`, func(*codecs.Event) {}},
		{"region", `null`, func(*codecs.Event) {}},
		{"region", `""`, func(*codecs.Event) {}},
		{"region", `"` + long + `"`, func(e *codecs.Event) { e.Attributes[codecs.Region] = long }},
		{"region", `"\uc11c\uc6b8\/\""`, func(e *codecs.Event) { e.Attributes[codecs.Region] = `서울/"` }},
		{"\\u0072egion", `"seoul"`, func(e *codecs.Event) { e.Attributes[codecs.Region] = "seoul" }},
		{"Region", `7`, func(*codecs.Event) {}},
		{"store", `7`, func(*codecs.Event) {}},
		{"payload", `{"status":"DELIVERED"}`, func(*codecs.Event) {}},
		{"status", `"IN_TRANSIT"`, func(e *codecs.Event) { e.Status, e.RawStatus = 5, "IN_TRANSIT" }},
		{"status", `"DELIVERING"`, func(e *codecs.Event) { e.Status = 5 }},
		{"status", `"picked_up"`, func(e *codecs.Event) { e.Status, e.RawStatus = codecs.Unknown, "picked_up" }},
		{"status", `" CREATED"`, func(e *codecs.Event) { e.Status, e.RawStatus = codecs.Unknown, " CREATED" }},
		{"status", `"UNKNOWN"`, func(e *codecs.Event) { e.Status = codecs.Unknown }},
		{"status", `"ABANDONED"`, func(e *codecs.Event) { e.Status, e.RawStatus = codecs.Unknown, "ABANDONED" }},
		{"status", `"` + long + `"`, func(e *codecs.Event) { e.Status, e.RawStatus = codecs.Unknown, long }},
	} {
		l := codecs.BuiltinLifecycle()
		want := codecs.Event{DeliveryID: "D-1", Status: 1, OccurredAt: time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC).UnixNano()}
		c.want(&want)
		want.Hash = l.HashEvent(&want)
		for _, format := range []string{codecs.FormatNative, codecs.FormatAuto} {
			out := decode(t, format, "D-1", minimal(c.name, c.raw))
			require.Equal(t, codecs.Decoded{Event: want}, out, "%s %.80s", c.name, c.raw)
		}
	}
}

func TestIDs(t *testing.T) {
	for _, id := range []string{"__offset", "a/b/../c", "배달-0020", " ", "\u00a0", strings.Repeat("x", 256), `"quoted"`, `{"payload":1}`, "🛵", "\ufffd", "null", "0"} {
		require.True(t, codecs.ValidID(id), "%q", id)
		for _, format := range bareFormats {
			out := decode(t, format, id, []byte(`{"delivery_id":`+quoteJSON(id)+`,"status":"CREATED","occurred_at":1796032800}`))
			require.Equal(t, codecs.IsEvent, out.Outcome, "%q: %s", id, out.Detail)
			require.Equal(t, id, out.Event.DeliveryID)
		}
	}
	for _, id := range []string{"", strings.Repeat("x", 257), "a\x00", codecs.ProgressKey, "\x1f", "\x7f", "\u0080", "\u009f", "a\xff", "\xed\xa0\x80"} {
		require.False(t, codecs.ValidID(id), "%q", id)
	}
}

func TestLastOfEqualKeysCounts(t *testing.T) {
	for value, want := range map[string]string{
		`{"delivery_id":"D-1","status":"CREATED","occurred_at":1796032800,"status":"ASSIGNED"}`:                              "ASSIGNED",
		`{"deliveryId":"D-2","delivery_id":"D-1","status":7,"status":"ASSIGNED","occurredAt":true,"occurred_at":1796032800}`: "ASSIGNED",
	} {
		out := decode(t, codecs.FormatNative, "D-1", []byte(value))
		require.Equal(t, codecs.IsEvent, out.Outcome, out.Detail)
		require.Equal(t, codecs.Status(2), out.Event.Status, want)
	}
	out := decode(t, codecs.FormatNative, "D-1", []byte(`{"delivery_id":"D-1","status":"CREATED","occurred_at":1796032800,"status":null}`))
	require.Equal(t, codecs.MissingField, out.Reason)
}

// What only an outbox may send is no native event.
func TestNativeFormatTakesNothingElse(t *testing.T) {
	for value, want := range map[string]codecs.Reason{
		quoteJSON(nativeEvent):                          codecs.Unreadable,
		`{"payload":` + nativeEvent + `}`:               codecs.MissingField,
		`[` + nativeEvent + `]`:                         codecs.Unreadable,
		`{"status":"CREATED","occurred_at":1796032800}`: codecs.MissingField,
	} {
		out := decode(t, codecs.FormatNative, "D-20261130-000042", []byte(value), "id", "e-1", "__debezium.context.taskId", "0")
		require.Equal(t, want, out.Reason, value)
	}
	out := decode(t, codecs.FormatNative, "D-1", minimal("event_id", ""), "id", "e-1", "sequence", "4")
	require.Empty(t, out.Event.EventID)
	require.False(t, out.Event.Sequenced)
}
