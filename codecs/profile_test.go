package codecs_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"deliverystat/codecs"
)

func profile(t testing.TB, text string) *codecs.Profile {
	t.Helper()
	p, err := codecs.ParseProfile([]byte(text))
	require.NoError(t, err)
	return p
}

// acme is a profile with everything in it.
const acme = `
name: acme
lifecycle:
  - {name: NEW, labels: {ko: 접수, en: New}}
  - name: GONE
    terminal: true
aliases:
  배달완료: GONE
  10: NEW
event:
  delivery_id: data.id
  status: [data.state, state]
  occurred_at: data.at
  sequence: data.version
  event_id: id
  order_id: data.orders.0
  store_id: data.orders.-1
  region: data.a\.b
  service: carrier
  zone: "+09:00"
  only: {type: [changed, 7]}
`

// What is put where a profile says, is read from there: whatever the lifecycle,
// the paths and the event.
func TestPropertyAMappedEventIsReadFromItsPaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[A-Z][A-Z0-9_]{0,6}`), 1, 6, rapid.ID).Filter(func(names []string) bool {
			for _, n := range names {
				if n == codecs.UnknownName || n == codecs.AbandonedName {
					return false
				}
			}
			return true
		}).Draw(t, "names")
		var text strings.Builder
		text.WriteString("name: random\nlifecycle:\n")
		for _, name := range names {
			fmt.Fprintf(&text, "  - {name: %q, terminal: %t}\n", name, rapid.Bool().Draw(t, "terminal"))
		}
		text.WriteString("aliases:\n")
		aliases := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z가-힣]{1,5}`), 1, 4, rapid.ID).Draw(t, "aliases")
		meaning := map[string]string{}
		for _, alias := range aliases {
			meaning[alias] = rapid.SampledFrom(names).Draw(t, "means")
			fmt.Fprintf(&text, "  %q: %s\n", alias, meaning[alias])
		}
		for _, name := range names {
			meaning[name] = name
		}

		// The keys of a level are never those of another, so that no path ends
		// where another one goes on.
		at := map[string][]string{}
		taken := map[string]bool{}
		text.WriteString("event:\n")
		for _, field := range []string{"delivery_id", "status", "occurred_at", "sequence", "event_id", "order_id", "store_id", "region", "service"} {
			path := rapid.Custom(func(t *rapid.T) []string {
				depth := rapid.IntRange(1, 3).Draw(t, "depth")
				var path []string
				for level := range depth {
					last := map[bool]string{true: "v", false: "n"}[level == depth-1]
					path = append(path, last+strconv.Itoa(level)+rapid.StringMatching(`[a-z.*@가-힣]{1,3}`).Draw(t, "key"))
				}
				return path
			}).Filter(func(path []string) bool { return !taken[strings.Join(path, "\x00")] }).Draw(t, field)
			taken[strings.Join(path, "\x00")] = true
			at[field] = path
			var escaped []string
			for _, name := range path {
				escaped = append(escaped, strings.NewReplacer(".", `\.`, "*", `\*`, "@", `\@`).Replace(name))
			}
			fmt.Fprintf(&text, "  %s: [%q, never.there]\n", field, strings.Join(escaped, "."))
		}
		p, err := codecs.ParseProfile([]byte(text.String()))
		if err != nil {
			t.Fatalf("%v\n%s", err, text.String())
		}

		value := map[string]any{}
		put := func(field string, v any) {
			into := value
			path := at[field]
			for _, name := range path[:len(path)-1] {
				if into[name] == nil {
					into[name] = map[string]any{}
				}
				into, _ = into[name].(map[string]any)
			}
			into[path[len(path)-1]] = v
		}
		known := slices.Concat(names, aliases, []string{"NOBODY KNOWS"})
		sent := rapid.SampledFrom(known).Draw(t, "sent")
		want := codecs.Event{
			DeliveryID: strconv.Itoa(rapid.IntRange(1, 1<<50).Draw(t, "id")),
			EventID:    rapid.StringMatching(`[a-z0-9가-힣-]{0,12}`).Draw(t, "event"),
			OccurredAt: rapid.Int64Range(codecs.MinEventTime, 4e18).Draw(t, "at"),
			Sequence:   rapid.Int64().Draw(t, "sequence"),
			Sequenced:  true,
		}
		want.Status, _ = p.Lifecycle().Lookup(meaning[sent])
		if meaning[sent] != sent {
			want.RawStatus = sent
		}
		for a := range want.Attributes {
			want.Attributes[a] = rapid.StringMatching(`[a-zA-Z가-힣 ]{0,8}`).Draw(t, "attribute")
			put(codecs.Attribute(a).String(), want.Attributes[a])
		}
		want.Hash = p.Lifecycle().HashEvent(&want)
		if rapid.Bool().Draw(t, "numeric") {
			put("delivery_id", json.Number(want.DeliveryID))
		} else {
			put("delivery_id", want.DeliveryID)
		}
		put("status", sent)
		put("occurred_at", time.Unix(0, want.OccurredAt).UTC().Format(time.RFC3339Nano))
		put("sequence", want.Sequence)
		put("event_id", want.EventID)
		body, err := json.Marshal(value)
		require.NoError(t, err)

		for _, format := range []string{codecs.FormatNative, codecs.FormatAuto} {
			d, err := p.NewDecoder(format)
			require.NoError(t, err)
			var out codecs.Decoded
			d.Decode(&codecs.Record{Key: want.DeliveryID, Value: body}, &out)
			require.Equal(t, codecs.Decoded{Event: want}, out, "%s\n%s", text.String(), body)
			id, ok := d.DeliveryID(body)
			require.True(t, ok)
			require.Equal(t, want.DeliveryID, id)
		}
	})
}

func TestMappedFields(t *testing.T) {
	p := profile(t, acme)
	nanos := func(s string) int64 {
		at, err := time.Parse(time.RFC3339Nano, s)
		require.NoError(t, err)
		return at.UnixNano()
	}
	minimal := codecs.Event{DeliveryID: "7", Status: 1, OccurredAt: nanos("2026-11-30T01:00:00Z")}
	change := func(f func(*codecs.Event)) codecs.Event {
		e := minimal
		f(&e)
		return e
	}
	for _, test := range []struct {
		name, value string
		want        codecs.Event
	}{
		{"least", `{"data":{"id":"7","state":"NEW","at":"2026-11-30T10:00:00+09:00"}}`, minimal},
		{"integers as IDs and status", `{"id":1e0,"id":12,"data":{"id":7,"state":10,"at":1796000400,"orders":[5,"x",99]}}`, change(func(e *codecs.Event) {
			e.EventID, e.RawStatus = "12", "10"
			e.Attributes[codecs.OrderID], e.Attributes[codecs.StoreID] = "5", "99"
		})},
		{"an integer beyond 64 bits", `{"data":{"id":"7","state":"NEW","at":1796000400},"id":123456789012345678901234567890}`, change(func(e *codecs.Event) {
			e.EventID = "123456789012345678901234567890"
		})},
		{"an empty array", `{"data":{"id":"7","state":"NEW","at":1796000400,"orders":[]}}`, minimal},
		{"one element", `{"data":{"id":"7","state":"NEW","at":1796000400,"orders":[[],"x"]},"data":{"id":"7","state":"NEW","at":1796000400,"orders":["x"]}}`, change(func(e *codecs.Event) {
			e.Attributes[codecs.OrderID], e.Attributes[codecs.StoreID] = "x", "x"
		})},
		{"second path", `{"state":"GONE","data":{"id":"7","at":1796000400,"state":null}}`, change(func(e *codecs.Event) { e.Status = 2 })},
		{"first path first", `{"state":"GONE","data":{"id":"7","at":1796000400,"state":"NEW"}}`, minimal},
		{"the last of two keys", `{"data":{"id":"6"},"data":{"id":"5","id":"7","state":"NEW","at":1796000400}}`, minimal},
		{"a dot in a key", `{"data":{"id":"7","state":"NEW","at":1796000400,"a.b":"seoul","a":{"b":"no"}}}`, change(func(e *codecs.Event) {
			e.Attributes[codecs.Region] = "seoul"
		})},
		{"an alias", `{"data":{"id":"7","state":"배달완료","at":1796000400}}`, change(func(e *codecs.Event) { e.Status, e.RawStatus = 2, "배달완료" })},
		{"the zone of the profile", `{"data":{"id":"7","state":"NEW","at":"2026-11-30T10:00:00"}}`, minimal},
		{"a space before the hour", `{"data":{"id":"7","state":"NEW","at":"2026-11-30 10:00:00.000"}}`, minimal},
		{"its own zone", `{"data":{"id":"7","state":"NEW","at":"2026-11-30 01:00:00Z"}}`, minimal},
		{"a native event's fields say nothing", `{"delivery_id":"8","status":"GONE","occurred_at":"2026-11-30T10:00:00Z","sequence":3,"region":"x","data":{"id":"7","state":"NEW","at":1796000400}}`, minimal},
		{"a payload of its own", `{"payload":{"state":"GONE"},"data":{"id":"7","state":"NEW","at":1796000400}}`, minimal},
		{"a wanted type", `{"type":"changed","data":{"id":"7","state":"NEW","at":1796000400}}`, minimal},
		{"a wanted type that is a number", `{"type":7,"data":{"id":"7","state":"NEW","at":1796000400}}`, minimal},
		{"in a string", quoteJSON(`{"data":{"id":"7","state":"NEW","at":1796000400}}`), minimal},
		{
			"in an envelope that knows the rest", `{"payload":{"data":{"id":"7","state":"NEW"}},"occurredAt":1796000400000,"eventId":"e","sequence":2,"status":"GONE","region":"x"}`,
			change(func(e *codecs.Event) { e.EventID, e.Sequence, e.Sequenced = "e", 2, true }),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.want.Hash = p.Lifecycle().HashEvent(&test.want)
			require.Equal(t, codecs.Decoded{Event: test.want}, decodeAs(t, p, codecs.FormatAuto, "7", test.value))
		})
	}
}

func TestMappedFaults(t *testing.T) {
	p := profile(t, acme)
	for _, test := range []struct {
		name, value string
		reason      codecs.Reason
		detail      string
	}{
		{"no ID", `{"data":{"state":"NEW","at":1796000400}}`, codecs.MissingField, "delivery_id is missing"},
		{"nothing", `{}`, codecs.MissingField, "delivery_id is missing"},
		{"a native event", nativeEvent, codecs.MissingField, "delivery_id is missing"},
		{"no number of an ID", `{"data":{"id":7.0,"state":"NEW","at":1796000400}}`, codecs.WrongType, "delivery_id is a number, not a string"},
		{"a truth as an ID", `{"data":{"id":true,"state":"NEW","at":1796000400}}`, codecs.WrongType, "delivery_id is a boolean, not a string"},
		{"an object as a status", `{"data":{"id":"7","state":{},"at":1796000400}}`, codecs.WrongType, "status is an object, not a string"},
		{"another key", `{"data":{"id":"8","state":"NEW","at":1796000400}}`, codecs.KeyMismatch, `record key "7" is not the delivery_id "8"`},
		{
			"a time as text", `{"data":{"id":"7","state":"NEW","at":"1796000400"}}`, codecs.InvalidTime,
			`occurred_at "1796000400" is not a time with zone (RFC 3339) or integer Unix time`,
		},
		{"a sequence as text", `{"data":{"id":"7","state":"NEW","at":1796000400,"version":"4"}}`, codecs.WrongType, "sequence is a string, not an integer"},
		{"a path through a text", `{"data":"{}"}`, codecs.MissingField, "delivery_id is missing"},
		{"a broken event of the wanted type", `{"type":"changed","data":{}}`, codecs.MissingField, "delivery_id is missing"},
		{"half an event beside a payload", `{"data":{"id":"7","at":1796000400},"payload":{"data":{"id":"7","state":"GONE"}}}`, codecs.MissingField, "status is missing"},
		{"an array", `[]`, codecs.Unreadable, "value is an array, not an object"},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, codecs.Decoded{Outcome: codecs.IsRefused, Reason: test.reason, Detail: test.detail},
				decodeAs(t, p, codecs.FormatAuto, "7", test.value))
		})
	}
	require.Equal(t, codecs.Decoded{Outcome: codecs.IsIgnored}, decodeAs(t, p, codecs.FormatAuto, "7", `{"type":"moved","data":{}}`))
}

func TestATimeWithoutZoneNeedsAProfileThatNamesOne(t *testing.T) {
	const body = `{"data":{"id":"7","state":"NEW","at":"2026-11-30T10:00:00"}}`
	none := profile(t, strings.Replace(acme, `  zone: "+09:00"`, "", 1))
	require.Equal(t, codecs.InvalidTime, decodeAs(t, none, codecs.FormatAuto, "7", body).Reason)
	west := profile(t, strings.Replace(acme, "+09:00", "-03:30", 1))
	require.Equal(t, time.Date(2026, 11, 30, 13, 30, 0, 0, time.UTC).UnixNano(), decodeAs(t, west, codecs.FormatAuto, "7", body).Event.OccurredAt)
}

// A source of a deployment whose lifecycle is another.
func TestASourceOnlyMaps(t *testing.T) {
	source := profile(t, `
name: source
lifecycle: [{name: ASSIGNED}, {name: ON_A_BOAT}, {name: DELIVERED}]
aliases: {assigned: ASSIGNED, at_sea: ON_A_BOAT, done: DELIVERED, IN_TRANSIT: ASSIGNED, 배차완료: DELIVERED}
event: {delivery_id: id, status: s, occurred_at: at}
`)
	deployment := builtin(t, "korean").Lifecycle()
	d, err := source.NewSourceDecoder(codecs.FormatAuto, deployment)
	require.NoError(t, err)
	for sent, want := range map[string][2]string{
		"assigned":   {"ASSIGNED", ""},             // the source's alias of a name that the deployment has
		"done":       {"DELIVERED", ""},            // terminal, as the deployment says
		"배차완료":       {"ASSIGNED", "배차완료"},         // the deployment's aliases stand first
		"IN_TRANSIT": {"DELIVERING", "IN_TRANSIT"}, // as above
		"CREATED":    {"CREATED", ""},
		"at_sea":     {"UNKNOWN", "at_sea"}, // the deployment has no such status
		"ON_A_BOAT":  {"UNKNOWN", "ON_A_BOAT"},
		"?":          {"UNKNOWN", "?"},
	} {
		var out codecs.Decoded
		d.Decode(&codecs.Record{Key: "7", Value: []byte(`{"id":7,"at":1796000400,"s":` + quoteJSON(sent) + `}`)}, &out)
		require.Equal(t, codecs.IsEvent, out.Outcome, out.Detail)
		require.Equal(t, want, [2]string{deployment.Name(out.Event.Status), out.Event.RawStatus}, sent)

		// Republished as a native event it says the same in the deployment.
		again := decodeAs(t, builtin(t, "korean"), codecs.FormatNative, "7", string(codecs.EncodeNative(&out.Event, deployment)))
		require.Equal(t, out, again)
	}
}

// Decoding with a mapping never panics and gives nothing but what it may give;
// what it gives is the same event when it comes as a native one.
func FuzzDecodeMapped(f *testing.F) {
	f.Add("7", []byte(`{"type":"changed","data":{"id":7,"state":10,"at":"2026-11-30 10:00:00","orders":[5,"x",99]}}`))
	f.Add("7", []byte(`{"payload":{"data":{"id":"7","state":"NEW"}},"occurredAt":1796000400000,"eventId":"e","sequence":2}`))
	f.Add("", []byte(`{"data":[{"id":1}],"state":{"data":[]}}`))
	f.Add("7", []byte(change("c", "null", `{"id":5,"aggregateid":7,"timestamp":1796000400,"payload":{"data":{"state":"NEW"}}}`)))
	f.Add("7", []byte(cloud(`"data":{"data":{"id":"7","state":"NEW"}}`)))
	p := profile(f, acme)
	l := p.Lifecycle()
	native, err := codecs.NewDecoder(codecs.FormatNative, l)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		for _, format := range codecs.Formats() {
			out := decodeAs(t, p, format, key, string(value))
			switch out.Outcome {
			case codecs.IsEvent:
				var again codecs.Decoded
				native.Decode(&codecs.Record{Key: out.Event.DeliveryID, Value: codecs.EncodeNative(&out.Event, l)}, &again)
				require.Equal(t, out, again)
			case codecs.IsIgnored:
				require.Equal(t, codecs.Decoded{Outcome: codecs.IsIgnored}, out)
			case codecs.IsRefused:
				require.Contains(t, codecs.Reasons(), out.Reason)
				require.NotEmpty(t, out.Detail)
			}
		}
	})
}
