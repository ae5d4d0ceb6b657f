package codecs_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
)

// placements are all the ways in which a format carries the native event v.
func placements() map[string]func(v string) (format, value string, headers []string) {
	return map[string]func(string) (string, string, []string){
		"bare":    func(v string) (string, string, []string) { return codecs.FormatNative, v, nil },
		"payload": func(v string) (string, string, []string) { return codecs.FormatOutbox, `{"payload":` + v + `}`, nil },
		"escaped": func(v string) (string, string, []string) { return codecs.FormatOutbox, quoteBytes(v), nil },
		"outbox row": func(v string) (string, string, []string) {
			return codecs.FormatChange, change("c", "null", outboxRow(v)), nil
		},
		"outbox text": func(v string) (string, string, []string) {
			return codecs.FormatChange, change("r", "null", outboxRow(quoteBytes(v))), nil
		},
		"delivery row": func(v string) (string, string, []string) { return codecs.FormatChange, change("u", "null", v), nil },
		"cloud data":   func(v string) (string, string, []string) { return codecs.FormatCloudEvents, cloud(`"data":` + v), nil },
		"debezium cloud": func(v string) (string, string, []string) {
			return codecs.FormatCloudEvents, cloudOfDebezium("u", `{"before":null,"after":`+v+`}`), nil
		},
		"cloud base64": func(v string) (string, string, []string) {
			return codecs.FormatCloudEvents, cloud(`"data_base64":"` + base64.StdEncoding.EncodeToString([]byte(v)) + `"`), nil
		},
		"binary cloud": func(v string) (string, string, []string) {
			return codecs.FormatCloudEvents, v, []string{"ce_specversion", "1.0", "ce_id", "e-1", "ce_source", "/s", "ce_type", "t"}
		},
	}
}

// quoteBytes is s as a JSON string that keeps what is not UTF-8, as a careless
// producer writes it.
func quoteBytes(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// What a hostile or broken producer sends has one stated outcome, in every
// format and in the automatic one, and a detail that fits a dead letter.
func TestHostileInput(t *testing.T) {
	const ignored, accepted = codecs.Reason("ignored"), codecs.Reason("")
	event := func(id, extra string) string {
		return `{"delivery_id":` + quoteJSON(id) + `,"status":"CREATED","occurred_at":1796032800` + extra + `}`
	}
	long := strings.Repeat("가", 85) // 255 bytes
	for name, c := range map[string]struct {
		key, value string
		want       codecs.Reason
	}{
		"5 MB in a field":             {"D-1", event("D-1", `,"x":"`+strings.Repeat("가나", 5<<20/6)+`"`), accepted},
		"5 MB of small values":        {"D-1", event("D-1", `,"x":[`+strings.Repeat(`{"a":[1]},`, 5<<20/10)+`0]`), accepted},
		"5 MB as status":              {"D-1", `{"delivery_id":"D-1","status":"` + strings.Repeat("x", 5<<20) + `","occurred_at":1796032800}`, codecs.WrongType},
		"100,000 levels":              {"D-1", event("D-1", `,"x":`+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)), codecs.Unreadable},
		"100,000 objects, not closed": {"D-1", strings.Repeat(`{"payload":`, 100_000), codecs.Unreadable},
		"NUL in the JSON":             {"D-1", event("D-1", ",\x00"), codecs.Unreadable},
		"NUL in the ID":               {"D\x00", event("D\x00", ""), codecs.InvalidID},
		"NUL in a status":             {"D-1", `{"delivery_id":"D-1","status":"A\u0000","occurred_at":1796032800}`, codecs.WrongType},
		"invalid UTF-8":               {"D-1", event("D-1", ",\"x\":\"\xff\""), codecs.Unreadable},
		"invalid UTF-8 as a key":      {"D-\xff", event("D-1", ""), codecs.KeyMismatch},
		"duplicate keys":              {"D-1", event("D-2", `,"delivery_id":"D-1","status":7,"status":"ASSIGNED"`), accepted},
		"a duplicate null":            {"D-1", event("D-1", `,"status":null`), codecs.MissingField},
		"time beyond int64":           {"D-1", event("D-1", `,"occurred_at":9223372036854775808`), codecs.InvalidTime},
		"sequence beyond int64":       {"D-1", event("D-1", `,"sequence":9223372036854775808`), codecs.WrongType},
		"a number beyond float64":     {"D-1", event("D-1", `,"x":1e999999,"y":-123456789012345678901234567890`), accepted},
		"400 kB region":               {"D-1", event("D-1", `,"region":"`+strings.Repeat("r", 400_000)+`"`), codecs.AttributeTooLong},
		"ID __offset":                 {"__offset", event("__offset", ""), accepted},
		"ID of 257 bytes":             {long + "xx", event(long+"xx", ""), codecs.InvalidID},
		"ID of 256 bytes":             {long + "x", event(long+"x", ""), accepted},
		"ID with slashes":             {"a/b/../c", event("a/b/../c", ""), accepted},
		"Korean ID":                   {"배달-0020", event("배달-0020", ""), accepted},
		"empty ID":                    {"", event("", ""), codecs.InvalidID},
		"empty key":                   {"", event("D-1", ""), codecs.KeyMismatch},
		"reserved key":                {codecs.ProgressKey, event("D-1", ""), codecs.KeyMismatch},
		"reserved ID":                 {codecs.ProgressKey, event(codecs.ProgressKey, ""), codecs.InvalidID},
		"null":                        {"D-1", `null`, ignored},
		"empty text":                  {"D-1", `""`, codecs.Unreadable},
		"nothing":                     {"D-1", ``, codecs.Unreadable},
		"an empty object":             {"D-1", `{}`, codecs.MissingField},
	} {
		for place, put := range placements() {
			if !strings.HasPrefix(c.value, "{") && (place == "delivery row" || place == "debezium cloud") {
				continue // a row is an object
			}
			format, value, headers := put(c.value)
			for _, format := range []string{format, codecs.FormatAuto} {
				out := decode(t, format, c.key, []byte(value), headers...)
				got := out.Reason
				if out.Outcome == codecs.IsIgnored {
					got = ignored
				}
				require.Equal(t, c.want, got, "%s, %s, %s: %s", name, place, format, out.Detail)
				require.Less(t, len(out.Detail), 2000)
				if c.want == accepted {
					require.Equal(t, c.key, out.Event.DeliveryID, "%s, %s", name, place)
				}
			}
		}
	}
	for _, format := range codecs.Formats() {
		require.Equal(t, codecs.IsIgnored, decode(t, format, "D-1", nil).Outcome, "%s: a null value", format)
		require.Equal(t, codecs.Unreadable, decode(t, format, "D-1", []byte{}).Reason, "%s: an empty value", format)
	}
}
