package deadletters_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"deliverystat/cmd/deliverystat/internal/deadletters"
	"deliverystat/codecs"
)

// anyBytes draws text, bytes that are none, and nothing.
func anyBytes() *rapid.Generator[deadletters.Bytes] {
	return rapid.OneOf(
		rapid.Map(rapid.String(), func(s string) deadletters.Bytes { return deadletters.Bytes(s) }),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) deadletters.Bytes { return b }),
		rapid.SampledFrom([]deadletters.Bytes{nil, {}, deadletters.Bytes("<&>\u2028\x00\x1b[31m"), {0xff}}),
	)
}

// What list prints is one line, and replay reads it back to the byte.
func TestPropertyLettersSurviveJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.UnixMilli(rapid.Int64Range(0, 4e12).Draw(t, "at")).UTC()
		want := &deadletters.Letter{
			Time: at, Reason: codecs.Unreadable, Detail: rapid.String().Draw(t, "detail"),
			Source:    deadletters.Source{Topic: "delivery-events", Partition: 3, Offset: 7, Time: at},
			Partition: 1, Offset: 9,
			Key: anyBytes().Draw(t, "key"), Value: anyBytes().Draw(t, "value"),
			Headers: []deadletters.Header{{Key: "a", Value: anyBytes().Draw(t, "header")}, {Key: "a", Value: nil}},
		}
		var out bytes.Buffer
		require.NoError(t, deadletters.NewJSON(&out).Print(want))
		require.Equal(t, 1, strings.Count(out.String(), "\n"))

		got, err := deadletters.Parse(&out)

		require.NoError(t, err)
		require.Equal(t, []*deadletters.Letter{want}, got)
	})
}

func TestAFaultOfTheSecondLetterIsNamed(t *testing.T) {
	for fault, want := range map[string]string{
		`{"kye":"a"}`:                      `unknown field "kye"`,
		`{"key":7}`:                        `want a string, or {"base64":"…"}`,
		`{"value":{"base64":"!"}}`:         `want a string, or {"base64":"…"}`,
		`{"value":{"delivery_id":"D-1"}}`:  `want a string, or {"base64":"…"}`,
		`{"time":"yesterday"}`:             `yesterday`,
		`{"key":"a","value":"unterminated`: `unexpected EOF`,
	} {
		_, err := deadletters.Parse(strings.NewReader(`{"key":"a","value":"{}"}` + "\n" + fault))
		require.ErrorContains(t, err, "reading dead letter 2: ", fault)
		require.ErrorContains(t, err, want, fault)
	}
}

func TestHeadersOfOursAreTakenApart(t *testing.T) {
	m := &sarama.ConsumerMessage{
		Topic: "dead", Partition: 1, Offset: 9, Timestamp: time.UnixMilli(1_700_000_000_500), Key: []byte("k"), Value: []byte("xy"),
	}
	for _, h := range [][2]string{
		{"trace", "t1"},
		{"trace", "t2"},
		{"__connect.errors.topic", "delivery-events"},
		{"__connect.errors.partition", "3"},
		{"__connect.errors.offset", "77"},
		{"__connect.errors.exception.message", "no object"},
		{"deliverystat.reason", "unreadable"},
		{"deliverystat.timestamp", "1700000000123"},
		{"deliverystat.accept_late", "true"},
		{"__connect.errors.stage", "x"},
		{"deliverystat.value.length", "5000000"},
		{"deliverystat.value.sha256", "abc"},
		{"deliverystat.headers.dropped", "true"},
	} {
		m.Headers = append(m.Headers, &sarama.RecordHeader{Key: []byte(h[0]), Value: []byte(h[1])})
	}

	require.Equal(t, &deadletters.Letter{
		Time: time.UnixMilli(1_700_000_000_500).UTC(), Reason: codecs.Unreadable, Detail: "no object",
		Source:    deadletters.Source{Topic: "delivery-events", Partition: 3, Offset: 77, Time: time.UnixMilli(1_700_000_000_123).UTC()},
		Partition: 1, Offset: 9, Key: []byte("k"), Value: []byte("xy"),
		Headers:    []deadletters.Header{{Key: "trace", Value: []byte("t1")}, {Key: "trace", Value: []byte("t2")}, {Key: "__connect.errors.stage", Value: []byte("x")}},
		Incomplete: "its headers are not here; the value had 5000000 bytes, of which 2 are here (SHA-256 abc)",
	}, deadletters.FromRecord(m))
}

func TestFilters(t *testing.T) {
	decoder, err := codecs.NewDecoder(codecs.FormatAuto, codecs.BuiltinLifecycle())
	require.NoError(t, err)
	at := time.UnixMilli(1_700_000_000_000).UTC()
	l := &deadletters.Letter{
		Time: at, Reason: codecs.KeyMismatch, Key: []byte("k"), Value: []byte(`{"delivery_id":"D-1"}`),
		Source: deadletters.Source{Partition: 3},
	}
	for name, tt := range map[string]struct {
		filter deadletters.Filter
		want   bool
	}{
		"all":               {deadletters.Filter{Partition: -1}, true},
		"reason":            {deadletters.Filter{Partition: -1, Reasons: []codecs.Reason{codecs.TooLate, codecs.KeyMismatch}}, true},
		"another reason":    {deadletters.Filter{Partition: -1, Reasons: []codecs.Reason{codecs.TooLate}}, false},
		"key":               {deadletters.Filter{Partition: -1, Key: "k"}, true},
		"another key":       {deadletters.Filter{Partition: -1, Key: "D-1"}, false},
		"ID in the key":     {deadletters.Filter{Partition: -1, DeliveryID: "k"}, true},
		"ID in the value":   {deadletters.Filter{Partition: -1, DeliveryID: "D-1"}, true},
		"another ID":        {deadletters.Filter{Partition: -1, DeliveryID: "D-2"}, false},
		"since then":        {deadletters.Filter{Partition: -1, Since: at}, true},
		"since later":       {deadletters.Filter{Partition: -1, Since: at.Add(time.Millisecond)}, false},
		"partition":         {deadletters.Filter{Partition: 3}, true},
		"another partition": {deadletters.Filter{Partition: 0}, false},
	} {
		tt.filter.Decoder = decoder
		require.Equal(t, tt.want, tt.filter.Match(l), name)
	}
}
