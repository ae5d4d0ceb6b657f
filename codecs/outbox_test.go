package codecs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
)

const (
	payload     = `{"eventId":"e-1","deliveryId":"D-1","orderId":"O-7","status":"ASSIGNED","occurredAt":"2026-03-14T11:01:42.123456+09:00","store":"한빛분식","fee":3040}`
	bare        = `{"status":"ASSIGNED"}`
	payloadTime = 1_773_453_702_123_456_000
)

func outboxEvent(change func(*codecs.Event)) codecs.Event {
	e := codecs.Event{
		DeliveryID: "D-1", EventID: "e-1", Status: 2, OccurredAt: payloadTime,
		Attributes: [codecs.NumAttributes]string{codecs.OrderID: "O-7"},
	}
	if change != nil {
		change(&e)
	}
	e.Hash = codecs.BuiltinLifecycle().HashEvent(&e)
	return e
}

func withSchema(payload string) string {
	return `{"schema":{"type":"struct","fields":[{"type":"string","optional":true,"field":"payload"}],"optional":true,"name":"status"},"payload":` + payload + `}`
}

func TestOutboxShapes(t *testing.T) {
	for name, value := range map[string]string{
		"expanded":                     payload,
		"escaped":                      quoteJSON(payload),
		"escaped four times":           quoteJSON(quoteJSON(quoteJSON(quoteJSON(payload)))),
		"enveloped":                    `{"payload":` + payload + `,"eventType":"DeliveryAssigned","occurredAt":1}`,
		"enveloped, escaped":           `{"eventType":"DeliveryAssigned","payload":` + quoteJSON(payload) + `}`,
		"schema, expanded":             withSchema(payload),
		"schema, escaped":              withSchema(quoteJSON(payload)),
		"schema, enveloped":            withSchema(`{"payload":` + payload + `,"occurredAt":1}`),
		"schema, enveloped, escaped":   withSchema(`{"payload":` + quoteJSON(payload) + `}`),
		"what is outside counts less":  `{"status":"DELIVERED","orderId":"O-8","payload":` + payload + `}`,
		"an event's payload is no one": strings.Replace(payload, `"fee":3040`, `"payload":{"status":"DELIVERED"}`, 1),
	} {
		for _, format := range []string{codecs.FormatAuto, codecs.FormatOutbox} {
			for _, key := range []string{"D-1", `"D-1"`, `{"schema":{"type":"string","optional":false},"payload":"D-1"}`} {
				out := decode(t, format, key, []byte(value), "id", "another", "sequence", "none")
				require.Equal(t, codecs.Decoded{Event: outboxEvent(nil)}, out, "%s, key %s", name, key)
			}
		}
	}
}

func TestEnvelopeAndHeadersAddWhatThePayloadDoesNotSay(t *testing.T) {
	later := func(e *codecs.Event) { e.OccurredAt += 1000 }
	for _, c := range []struct {
		name, value string
		headers     []string
		want        func(*codecs.Event)
	}{
		{
			"time and sequence in the envelope", `{"payload":{"eventId":"e-1","deliveryId":"D-1","orderId":"O-7","status":"ASSIGNED"},"occurredAt":1773453702123457,"sequence":6}`, nil,
			func(e *codecs.Event) { later(e); e.Sequence, e.Sequenced = 6, true },
		},
		{
			"all in headers", bare,
			[]string{"id", "e-1", "occurredAt", "1773453702123457", "sequence", "6"},
			func(e *codecs.Event) {
				later(e)
				e.Sequence, e.Sequenced = 6, true
				e.Attributes = [codecs.NumAttributes]string{}
			},
		},
		{
			"headers as JSON", bare,
			[]string{"id", `"e-1"`, "occurredAt", `{"schema":{"type":"int64"},"payload":1773453702123457}`, "sequence", `{"schema":{"type":"int64"},"payload":-6}`},
			func(e *codecs.Event) {
				later(e)
				e.Sequence, e.Sequenced = -6, true
				e.Attributes = [codecs.NumAttributes]string{}
			},
		},
		{
			"time with zone in a header", bare,
			[]string{"id", "e-1", "occurredAt", "2026-03-14T11:01:42.123457+09:00"},
			func(e *codecs.Event) { later(e); e.Attributes = [codecs.NumAttributes]string{} },
		},
		{
			"the envelope before headers", `{"payload":` + bare + `,"occurredAt":1773453702123457,"sequence":6,"event_id":"e-1","orderId":"O-7"}`,
			[]string{"id", "e-2", "occurredAt", "1", "sequence", "9"},
			func(e *codecs.Event) { later(e); e.Sequence, e.Sequenced = 6, true },
		},
		{
			"the last of equal headers", `{"orderId":"O-7","status":"ASSIGNED"}`,
			[]string{"id", "e-0", "sequence", "5", "occurredAt", "1", "sequence", "6", "occurredAt", "1773453702123457", "id", "e-1"},
			func(e *codecs.Event) { later(e); e.Sequence, e.Sequenced = 6, true },
		},
		{"headers that are no such thing", payload, []string{"sequence", "six", "sequence", "", "sequence", "1.5", "sequence", "\xff"}, nil},
	} {
		out := decode(t, codecs.FormatAuto, "D-1", []byte(c.value), c.headers...)
		require.Equal(t, codecs.Decoded{Event: outboxEvent(c.want)}, out, c.name)
	}
}

// Only an outbox may leave the ID to the key.
func TestKeyIsTheIDOfAnOutboxRecordThatHasNone(t *testing.T) {
	value := []byte(`{"status":"ASSIGNED","occurredAt":1773453702123456}`)
	for _, c := range []struct {
		name, format string
		value        []byte
		headers      []string
		want         bool
	}{
		{"nothing tells that it is an outbox", codecs.FormatAuto, value, nil, false},
		{"other headers", codecs.FormatAuto, value, []string{"traceparent", "00-1"}, false},
		{"header id", codecs.FormatAuto, value, []string{"id", "e-1"}, true},
		{"Debezium's headers", codecs.FormatAuto, value, []string{"__debezium.context.taskId", "0"}, true},
		{"escaped", codecs.FormatAuto, []byte(quoteJSON(string(value))), nil, true},
		{"enveloped", codecs.FormatAuto, []byte(`{"payload":` + string(value) + `}`), nil, true},
		{"format given", codecs.FormatOutbox, value, nil, true},
		{"native", codecs.FormatNative, value, []string{"id", "e-1"}, false},
	} {
		for _, key := range []string{"D-1", `"D-1"`, `{"schema":{"type":"string"},"payload":"D-1"}`} {
			out := decode(t, c.format, key, c.value, c.headers...)
			if c.want {
				require.Equal(t, codecs.IsEvent, out.Outcome, "%s: %s", c.name, out.Detail)
				require.Equal(t, "D-1", out.Event.DeliveryID, c.name)
			} else {
				require.Equal(t, codecs.MissingField, out.Reason, c.name)
			}
		}
	}
	require.Equal(t, codecs.MissingField, decode(t, codecs.FormatOutbox, "", value).Reason)
	require.Equal(t, codecs.InvalidID, decode(t, codecs.FormatOutbox, "a\x00", value).Reason)
	require.Equal(t, codecs.InvalidID, decode(t, codecs.FormatOutbox, codecs.ProgressKey, value).Reason)
}

func TestNothingIsIgnored(t *testing.T) {
	for _, value := range []string{
		`null`, ` null `, `{"payload":null}`, `{"schema":{"type":"string","optional":true},"payload":null}`,
		`{"payload":null,"eventType":"DeliveryAssigned","occurredAt":1773453711123469}`, `"null"`, withSchema(`{"payload":null}`),
	} {
		require.Equal(t, codecs.Decoded{Outcome: codecs.IsIgnored}, decode(t, codecs.FormatAuto, "D-1", []byte(value), "id", "e-1"), value)
	}
	for _, format := range codecs.Formats() {
		require.Equal(t, codecs.Decoded{Outcome: codecs.IsIgnored}, decode(t, format, "D-1", nil, "id", "e-1", "occurredAt", "1773453711123469"), format)
		require.Equal(t, codecs.Decoded{Outcome: codecs.IsIgnored}, decode(t, format, "D-1", []byte("null")), format)
	}
}

func TestUnreadable(t *testing.T) {
	for _, value := range []string{
		``, ` `, `""`, `"\""`, `{`, `{}}`, `{"status":"CREATED"`, payload[:len(payload)-3], `nul`, `7`, `true`, `[]`, `["a"]`, `"7"`, `"[]"`,
		`plain text`, `"plain text"`, `{"payload":7}`, `{"payload":true}`, `{"payload":[1]}`, `{"payload":"not JSON"}`, `{"payload":""}`,
		quoteJSON(payload[:20]), withSchema(quoteJSON(payload[:20])), quoteJSON(quoteJSON(quoteJSON(quoteJSON(quoteJSON(payload))))),
		"{\"deliveryId\":\"D-1\xff\",\"status\":\"CREATED\",\"occurredAt\":1796032800}", "\ufeff" + payload, payload + "\x00",
		"{\"a\":\"tab\t\"}", `{'a':1}`, `{"a":01}`, `{"a":NaN}`, `{"a":"\x"}`, `{"a":"\u12"}`, "\x00\x01\x02",
	} {
		out := decode(t, codecs.FormatAuto, "D-1", []byte(value), "id", "e-1")
		require.Equal(t, codecs.IsRefused, out.Outcome, value)
		require.Equal(t, codecs.Unreadable, out.Reason, value)
		require.NotEmpty(t, out.Detail)
	}
}

func TestEventTimeIsNeverTheRecordTimestamp(t *testing.T) {
	out := decode(t, codecs.FormatAuto, "D-1", []byte(`{"payload":{"deliveryId":"D-1","status":"CREATED"}}`), "id", "e-1")
	require.Equal(t, codecs.MissingField, out.Reason)
	require.Contains(t, out.Detail, "occurred_at")
	require.Equal(t, codecs.InvalidTime, decode(t, codecs.FormatAuto, "D-1", []byte(bare), "id", "e-1", "occurredAt", "yesterday").Reason)
	require.Equal(t, codecs.InvalidTime, decode(t, codecs.FormatAuto, "D-1", []byte(bare), "id", "e-1", "occurredAt", "1420070399").Reason)
}

func TestKeyMustBeTheDeliveryID(t *testing.T) {
	for _, key := range []string{
		"", "D-2", " D-1", "D-1\x00", `"D-2"`, `"D-1`, `{"payload":"D-2"}`, `{"payload":{"payload":"D-1"}}`, `{"id":"D-1"}`, `{"payload":"D-1"`,
		codecs.ProgressKey, "\xff", strings.Repeat(`{"payload":`, 100_000), strings.Repeat("x", 1<<20),
	} {
		for _, format := range bareFormats {
			out := decode(t, format, key, minimal("", ""))
			require.Equal(t, codecs.KeyMismatch, out.Reason, "%.50q", key)
			require.Less(t, len(out.Detail), 4000)
		}
	}
}

// Values that cost too much where each level or byte is handled dearly.
func TestHugeValues(t *testing.T) {
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	big := strings.Repeat(`{"a":["b"]},`, 5<<20/12)
	event := func(extra string) string {
		return `{"extra":` + extra + `,"delivery_id":"D-1","status":"CREATED","occurred_at":1796032800}`
	}
	within := func(levels int) string {
		return event(`[],"more":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1))
	}
	for name, c := range map[string]struct {
		value string
		want  codecs.Reason
	}{
		"100,000 deep":           {deep, codecs.Unreadable},
		"100,000 objects deep":   {strings.Repeat(`{"a":`, 100_000), codecs.Unreadable},
		"deep in a field":        {event(deep), codecs.Unreadable},
		"deep in a string":       {quoteJSON(event(deep)), codecs.Unreadable},
		"deep in a payload":      {`{"payload":` + quoteJSON(deep) + `}`, codecs.Unreadable},
		"wrapped 100,000 times":  {strings.Repeat(`{"payload":`, 100_000) + "1" + strings.Repeat("}", 100_000), codecs.Unreadable},
		"1001 levels":            {within(1001), codecs.Unreadable},
		"1000 levels":            {within(1000), ""},
		"brackets in a string":   {event(quoteJSON("\"" + deep)), ""},
		"5 MB wide":              {event(`[` + big + `0]`), ""},
		"5 MB text":              {event(quoteJSON(strings.Repeat("x\n가", 1<<20))), ""},
		"5 MB of digits":         {event(strings.Repeat("1", 5<<20)), ""},
		"5 MB of keys":           {`{` + strings.Repeat(`"status":"ASSIGNED",`, 5<<20/20) + minimalMembers + `}`, ""},
		"5 MB of quotes":         {strings.Repeat(`"`, 5<<20), codecs.Unreadable},
		"5 MB of backslashes":    {`"` + strings.Repeat(`\\`, 5<<19) + `"`, codecs.Unreadable},
		"5 MB of open brackets":  {strings.Repeat(`[{"`, 5<<20/3), codecs.Unreadable},
		"5 MB as delivery ID":    {`{"delivery_id":"` + strings.Repeat("x", 5<<20) + `"}`, codecs.InvalidID},
		"a 5 MB integer as time": {`{"delivery_id":"D-1","status":"A","occurred_at":` + strings.Repeat("1", 5<<20) + `}`, codecs.InvalidTime},
	} {
		out := decode(t, codecs.FormatAuto, "D-1", []byte(c.value))
		if c.want == "" {
			require.Equal(t, codecs.IsEvent, out.Outcome, "%s: %s", name, out.Detail)
		}
		require.Equal(t, c.want, out.Reason, "%s: %s", name, out.Detail)
		require.Less(t, len(out.Detail), 1000, name)
	}
}

const minimalMembers = `"delivery_id":"D-1","status":"CREATED","occurred_at":1796032800`

// A value that tells all does not make the caller collect headers.
func TestHeadersAreReadOnlyIfNeeded(t *testing.T) {
	d, err := codecs.NewDecoder(codecs.FormatAuto, codecs.BuiltinLifecycle())
	require.NoError(t, err)
	var out codecs.Decoded
	r := &codecs.Record{
		Key: "D-20261130-000042", Value: []byte(nativeEvent), Timestamp: time.Now().UnixNano(),
		Headers: func() []codecs.Header { t.Fatal("headers were read"); return nil },
	}
	d.Decode(r, &out)
	require.Equal(t, codecs.IsEvent, out.Outcome, out.Detail)
}
