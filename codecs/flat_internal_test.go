package codecs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

// FuzzScanFlat shows that what the one-pass scanner takes is JSON, and that it
// says of it what the general scanner says.
func FuzzScanFlat(f *testing.F) {
	for _, seed := range append(flatTexts, notFlatTexts...) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var fast fields
		if !fast.scanFlat(text) {
			return
		}
		require.Empty(t, jsonFault(text))
		var general fields
		require.True(t, gjson.Parse(text).IsObject())
		general.scan(gjson.Parse(text))
		for _, v := range fast.all() {
			if v.plain {
				require.Equal(t, gjson.String, v.kind)
				require.True(t, printable(v.text))
			}
			v.plain = false
		}
		require.Equal(t, general, fast)
	})
}

func (f *fields) all() []*field {
	all := []*field{&f.deliveryID, &f.eventID, &f.status, &f.occurredAt, &f.sequence}
	for a := range f.attributes {
		all = append(all, &f.attributes[a])
	}
	return all
}

var flatTexts = []string{
	`{}`, " {\t}\r\n", `{"status":"A"}`, `{"status" : "배차완료" , "x":1}`,
	`{"delivery_id":"D-1","status":"PICKED_UP","occurred_at":"2026-11-30T10:00:00.123456+09:00","sequence":4}`,
	`{"sequence":-0,"occurredAt":1.5e+10,"region":true,"service":false,"order_id":null,"payload":0}`,
	`{"status":"A","status":"B"}`, "{\"status\":\"\x7f\"}", `{"sequence":123456789012345678901234567890}`,
}

var notFlatTexts = []string{
	"", " ", "null", `"x"`, "[]", "{", `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{a:1}`, `{"a" 1}`, `{"a":1}x`, `{"a":1 "b":2}`,
	`{"a":"\n"}`, "{\"a\":\"\n\"}", "{\"a\":\"\xff\"}", `{"a":{}}`, `{"a":[]}`, `{"a\u0062":1}`, `{"a":"x`, `{"a":"12345678`,
	`{"a":01}`, `{"a":-}`, `{"a":1.}`, `{"a":.5}`, `{"a":1e}`, `{"a":1e+}`, `{"a":+1}`, `{"a":tru}`, `{"a":nul}`, `{"a":falsy}`, `{"a":NaN}`,
}

func TestTheFlatScannerTakesFlatObjects(t *testing.T) {
	for _, text := range flatTexts {
		var f fields
		require.True(t, f.scanFlat(text), text)
	}
	for _, text := range notFlatTexts {
		var f fields
		require.False(t, f.scanFlat(text), text)
	}
}

// Each place of a string is looked at, whatever its offset within 8 bytes.
func TestTheFlatScannerSeesEveryByte(t *testing.T) {
	for length := range 40 {
		for at := range length {
			for _, c := range []string{`"`, `\`, "\x00", "\x1f", "\x7f", "\x80", "\xff"} {
				content := strings.Repeat("a", at) + c + strings.Repeat("~", length-at-1)
				s, _, plain := flatString(`"`+content+`"`, 0)
				switch c {
				case `"`:
					require.Equal(t, content[:at], s)
					require.True(t, plain)
				case "\x7f", "\x80", "\xff":
					require.Equal(t, content, s)
					require.False(t, plain)
				default:
					require.Empty(t, s)
				}
			}
		}
	}
}
