package codecs_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"deliverystat/codecs"
)

// nativeEvent is the example of the contract.
const nativeEvent = `{"event_id":"0b6e5f0a-53a1-4c1e-8f0a-2f6f0f1b7c11","delivery_id":"D-20261130-000042","status":"PICKED_UP",` +
	`"occurred_at":"2026-11-30T10:00:00.123456+09:00","sequence":4,"order_id":"O-77","region":"seoul","service":"courier-a","store_id":"S-9"}`

// bareFormats are the formats that take a native event with nothing around it.
var bareFormats = []string{codecs.FormatAuto, codecs.FormatNative, codecs.FormatOutbox}

// quoteJSON returns s as a JSON string.
func quoteJSON(s string) string { return string(gjson.AppendJSONString(nil, s)) }

// decode decodes one record with headers given as pairs of key and value.
func decode(t testing.TB, format, key string, value []byte, headers ...string) codecs.Decoded {
	t.Helper()
	d, err := codecs.NewDecoder(format, codecs.BuiltinLifecycle())
	require.NoError(t, err)
	r := &codecs.Record{Key: key, Value: value, Timestamp: 1_796_073_884_947_000_000}
	if len(headers) > 0 {
		r.Headers = func() []codecs.Header {
			var all []codecs.Header
			for i := 0; i < len(headers); i += 2 {
				all = append(all, codecs.Header{Key: headers[i], Value: []byte(headers[i+1])})
			}
			return all
		}
	}
	out := codecs.Decoded{Reason: "left over", Detail: "left over", Event: codecs.Event{DeliveryID: "left over", RawStatus: "left over", Sequence: 7}}
	d.Decode(r, &out)
	return out
}
