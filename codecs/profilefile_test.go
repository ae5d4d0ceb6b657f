package codecs_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
)

func TestAProfileNamesAllItsFaultsAtOnce(t *testing.T) {
	const head = "name: x\n"
	const event = "event: {delivery_id: a, status: b, occurred_at: c}\n"
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", []string{"profile is empty"}},
		{"only a comment", "# x\n", []string{"profile is empty"}},
		{"no YAML", "name: [", []string{"line 1: not YAML: did not find expected node content"}},
		{"a list", "- name: x\n", []string{"line 1: the profile is a list, not names with values"}},
		{"two documents", head + event + "---\nname: y\n", []string{"line 3: a second document begins here; a profile is one"}},
		{"says nothing", head, []string{"line 1: none of lifecycle, aliases and event is there: the profile says nothing"}},
		{"no name", event, []string{"line 1: name is missing"}},
		{"unknown keys", "name: X!\ncolour: red\n" + event, []string{
			`line 1: name "X!" is not 1 to 64 characters of [a-z][a-z0-9-]*`,
			`line 2: unknown key "colour"; a profile has name, lifecycle, aliases and event`,
		}},
		{"a key twice", head + head + event, []string{"line 2: name of the profile is already in line 1"}},
		{"lifecycle and aliases", `name: {}
lifecycle:
  - name: NEW
    rank: 1
  - name: new
    terminal: perhaps
    labels: {english: New, ko: ""}
  - NEW
  - {terminal: true}
  - {name: UNKNOWN}
  - {name: NEW, aliases: [a]}
aliases:
  a: GONE
  b: UNKNOWN
  c: ABANDONED
  NEW: new
  d: [NEW]
  d: NEW
`, []string{
			"line 1: name is names with values, not a text",
			`line 4: unknown key "rank"; a status has name, terminal and labels`,
			`line 5: status name "new" is not 1 to 256 bytes of [A-Z][A-Z0-9_]*`,
			"line 6: terminal is not true or false",
			`line 7: "english" is not the code of a language, such as ko or en`,
			"line 7: label ko is empty, not a text",
			"line 8: a status is a plain value, not names with values such as {name: CREATED}",
			"line 9: a status has no name",
			"line 10: status UNKNOWN is part of every lifecycle and can not be defined",
			`line 11: aliases stand at the top of a profile, as "name that is sent: STATUS"`,
			"line 11: status NEW is defined twice",
			"line 13: alias a means GONE, which is no status of the lifecycle",
			"line 14: alias b means UNKNOWN, as every name does that is not given",
			"line 15: alias c means ABANDONED, which nobody can send",
			"line 16: alias NEW of new is the name of a status",
			"line 17: alias d is a list, not a text",
			"line 18: d of aliases is already in line 17",
		}},
		{"empty lifecycle", head + "lifecycle: []\n", []string{"line 2: lifecycle has no statuses"}},
		{"no lifecycle", head + "lifecycle: {NEW: 1}\n", []string{"line 2: lifecycle is names with values, not a list of statuses in rank order"}},
		{"an alias of a built-in status twice", head + "aliases: {IN_TRANSIT: CREATED}\n", []string{
			"line 2: alias IN_TRANSIT of DELIVERING is already an alias of CREATED",
		}},
		{"no event", head + "event: delivery_id\n", []string{"line 2: event is a plain value, not fields with paths"}},
		{"event", `name: x
event:
  delivery_id: data.@this.id
  status: [a..b, "c|d", []]
  occurred_at:
  sequence: a[0]
  event_id: '$.id'
  region: 'a\'
  service: ''
  store_id: []
  courier: x
  zone: Asia/Seoul
  only:
    a.#.b: [x]
    type: {}
`, []string{
			`line 3: delivery_id: path "data.@this.id" has '@' in it: a path is names with dots between them, as in data.items.0.id; a backslash before it makes it part of a name`,
			`line 4: status is a list, not a text`,
			`line 4: status: path "a..b" has an empty name in it`,
			`line 4: status: path "c|d" has '|' in it: a path is names with dots between them, as in data.items.0.id; a backslash before it makes it part of a name`,
			`line 5: occurred_at is empty, not a text`,
			`line 6: sequence: path "a[0]" has '[' in it: a path is names with dots between them, as in data.items.0.id; a backslash before it makes it part of a name`,
			`line 7: event_id: path "$.id" has '$' in it: a path is names with dots between them, as in data.items.0.id; a backslash before it makes it part of a name`,
			`line 8: region: path "a\\" ends in a backslash`,
			`line 9: service is empty, not a text`,
			`line 10: store_id is an empty list`,
			`line 11: unknown key "courier"; an event has delivery_id, status, occurred_at, sequence, event_id, order_id, store_id, region, service, zone and only`,
			`line 12: zone "Asia/Seoul" is not an offset from UTC such as "+09:00" or Z`,
			`line 14: only: path "a.#.b" has '#' in it: a path is names with dots between them, as in data.items.0.id; a backslash before it makes it part of a name`,
			`line 15: only type is names with values, not a text`,
		}},
		{"an event without its fields", head + "event: {region: x}\n", []string{
			"line 2: event has no path for delivery_id",
			"line 2: event has no path for status",
			"line 2: event has no path for occurred_at",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := codecs.ParseProfile([]byte(test.text))
			require.Nil(t, p)
			require.Error(t, err)
			require.Equal(t, test.want, strings.Split(err.Error(), "\n"))
		})
	}
}

func TestDescribeShowsAllOfAProfile(t *testing.T) {
	p := profile(t, acme)
	require.Equal(t, []string{
		"profile acme, lifecycle " + p.Lifecycle().Version(),
		"  status 0 UNKNOWN",
		"  status 1 NEW, also 10",
		"  status 2 GONE, terminal, also 배달완료",
		"  status 3 ABANDONED, terminal",
		"  delivery_id at data.id",
		"  status at data.state, else state",
		"  occurred_at at data.at",
		"  sequence at data.version",
		"  event_id at id",
		"  order_id at data.orders.0",
		"  store_id at data.orders.-1",
		`  region at data.a\.b`,
		"  service at carrier",
		"  times without zone are of zone +09:00",
		`  only with "changed" or "7" at type`,
	}, p.Describe())
	require.Equal(t, map[string]string{"ko": "접수", "en": "New"}, p.Lifecycle().Info(1).Labels)

	onlyNames := profile(t, "name: x\naliases: {go: CREATED}\n")
	require.False(t, onlyNames.Maps())
	require.Contains(t, onlyNames.Describe(), "  events are native ones")
	onlyPaths := profile(t, "name: x\nevent: {delivery_id: a, status: b, occurred_at: c}\n")
	require.True(t, onlyPaths.Maps())
	require.Equal(t, codecs.BuiltinLifecycle().Version(), onlyPaths.Lifecycle().Version())
}

// A replica that reads events from other places must not work on the same table.
func TestMappingTellsWhereEventsAreReadFrom(t *testing.T) {
	mapping := func(text string) string {
		d, err := profile(t, text).NewDecoder(codecs.FormatAuto)
		require.NoError(t, err)
		return d.Mapping()
	}
	const event = "event: {delivery_id: a, status: b, occurred_at: c"
	base := mapping("name: x\n" + event + "}")
	require.Regexp(t, "^[0-9a-f]{16}$", base)
	require.Equal(t, base, mapping("name: y\nlifecycle: [{name: A}]\nevent: {status: b, delivery_id: [a], occurred_at: c}"))
	require.Empty(t, mapping("name: x\nlifecycle: [{name: A}]"))
	seen := map[string]string{base: ""}
	for _, more := range []string{
		", region: d", ", service: d", `, region: 'd\.e'`, ", region: d.e", ", region: [d, e]", `, zone: "+09:00"`, ", zone: Z",
		", only: {d: e}", ", only: {d: [e, f]}", `, only: {d: 'e" or "f'}`, ", only: {e: d}",
	} {
		version := mapping("name: x\n" + event + more + "}")
		require.NotContains(t, seen, version, more)
		seen[version] = more
	}
}

func FuzzParseProfile(f *testing.F) {
	f.Add([]byte(acme))
	f.Add([]byte("a: &a [*a]\nlifecycle: *a\n"))
	f.Add([]byte("lifecycle: &l\n  - &s {name: A, labels: *s}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := codecs.ParseProfile(text)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		require.NotNil(t, p.Lifecycle())
		require.NotEmpty(t, p.Describe())
	})
}
