package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProfileCheckNamesAllFaults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine.yaml")
	write(t, path, "name: Mine\nlifecycle:\n  - {name: new}\naliases: {접수: NEW}\nevent: {delivery_id: a|b, status: s, occurred_at: at}\n")

	got := invoke(t, "profile", "check", path)

	require.Equal(t, 1, got.code)
	require.Equal(t, []string{
		path + `:1: name "Mine" is not 1 to 64 characters of [a-z][a-z0-9-]*`,
		path + `:3: status name "new" is not 1 to 256 bytes of [A-Z][A-Z0-9_]*`,
		path + `:4: alias 접수 means NEW, which is no status of the lifecycle`,
		path + `:5: delivery_id: path "a|b" has '|' in it: a path is names with dots between them, as in data.items.0.id; a backslash before it makes it part of a name`,
	}, strings.Split(strings.TrimSpace(got.stdout), "\n"))
	require.Equal(t, []string{"deliverystat: profile " + path + " is not as it must be: 4 faults"}, got.lines())
}

func TestProfileCheckNamesAFileThatIsNotThere(t *testing.T) {
	got := invoke(t, "profile", "check", "/none/at/all.yaml")

	require.Equal(t, 2, got.code)
	require.Len(t, got.lines(), 1)
	require.Contains(t, got.stderr, "open /none/at/all.yaml: no such file or directory")

	got = invoke(t, "profile", "check", "korean", "--sample=/none/at/all.jsonl")
	require.Equal(t, 2, got.code)
	require.Contains(t, got.stderr, "--sample: open /none/at/all.jsonl")
}

func TestProfileCheckShowsWhatASampleIsReadAs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sample.jsonl")
	write(t, path, strings.Join([]string{
		`{"delivery_id":"D-1","status":"배차완료","occurred_at":"2026-11-30T10:00:00+09:00","event_id":"e","sequence":4,"region":"서울"}`,
		``,
		`{"delivery_id":"D-1","status":"DELIVERED","occurred_at":1796000400}`,
		`null`,
		`{"delivery_id":"D-1","status":"DELIVERED","occurred_at":"2026-11-30T10:00:00"}`,
	}, "\n"))

	got := invoke(t, "profile", "check", "korean", "--sample="+path)

	require.Equal(t, 1, got.code)
	require.Equal(t, []string{"deliverystat: 1 of 5 lines are refused"}, got.lines())
	_, shown, _ := strings.Cut(got.stdout, "native ones\n")
	require.Equal(t, strings.Join([]string{
		`line 1: D-1 ASSIGNED at 2026-11-30T01:00:00Z, sent as 배차완료, event_id e, sequence 4, region 서울`,
		`line 3: D-1 DELIVERED at 2026-11-30T01:00:00Z`,
		`line 4: ignored`,
		`line 5: refused, invalid_time: occurred_at "2026-11-30T10:00:00" is not a time with zone (RFC 3339) or integer Unix time`,
		``,
	}, "\n"), shown)

	good := invoke(t, "profile", "check", "built-in")
	require.Equal(t, 0, good.code)
	require.Empty(t, good.stderr)
	require.Contains(t, good.stdout, "profile built-in, lifecycle ")
}

// The README shows how to write a profile: what it shows is one, and reads the
// event that it shows.
func TestTheProfileOfTheReadmeIsOne(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(readme), "## Other events, other statuses")
	block := func(language string) string {
		_, after, found := strings.Cut(rest, "```"+language+"\n")
		require.True(t, found, language)
		text, _, _ := strings.Cut(after, "```")
		return text
	}
	dir := t.TempDir()
	profile, sample := filepath.Join(dir, "acme.yaml"), filepath.Join(dir, "sample.jsonl")
	write(t, profile, block("yaml"))
	write(t, sample, block("json"))

	got := invoke(t, "profile", "check", profile, "--sample="+sample)

	require.Equal(t, 0, got.code, got.stderr+got.stdout)
	require.Contains(t, got.stdout, "\nline 1: 7731 ON_THE_WAY at 2026-11-30T01:05:00Z, sent as 배달중, event_id e-9, region seoul\n")
}

// The events of a vendor and the statuses of its profile, in the whole service.
func TestDemoTakesAProfile(t *testing.T) {
	dir := t.TempDir()
	events := filepath.Join(dir, "events.jsonl")
	const easypost = `{"description":"KIND","id":"evt_N","result":{"id":"trk_ID","status":"STATUS","updated_at":"2024-04-26T19:2N:46Z","carrier":"UPS"}}`
	line := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(easypost) }
	write(t, events, strings.Join([]string{
		line("KIND", "tracker.created", "ID", "1", "STATUS", "unknown", "N", "1"),
		line("KIND", "tracker.updated", "ID", "1", "STATUS", "out_for_delivery", "N", "3"),
		line("KIND", "tracker.updated", "ID", "1", "STATUS", "in_transit", "N", "2"),
		line("KIND", "tracker.updated", "ID", "2", "STATUS", "return_to_sender", "N", "1"),
		line("KIND", "batch.updated", "ID", "2", "STATUS", "purchased", "N", "2"),
		`{"description":"tracker.updated","result":{"id":"trk_3"}}`,
	}, "\n"))
	config := filepath.Join(dir, "config.yaml")
	write(t, config, "profile: easypost\nevents: "+events+"\n")
	httpAddress := freeAddress(t)

	out, stop := background(t, "demo", "--config="+config, "--http-address="+httpAddress, "--admin-address="+freeAddress(t))

	eventually(t, "the report", func() (string, bool) {
		return out.String(), strings.Contains(out.String(), "missing_field: 1, the first in line 6: status is missing")
	})
	for _, want := range []string{"applied      3", "stale        1", "ignored      1", "dead_letter  1"} {
		require.Contains(t, out.String(), want)
	}
	eventually(t, "the counts", func() (string, bool) {
		_, body := get(t, "http://"+httpAddress+"/v1/counts")
		return body, strings.Contains(body, `{"counts":{"UNKNOWN":0,"PRE_TRANSIT":0,"IN_TRANSIT":0,"OUT_FOR_DELIVERY":1,"AVAILABLE_FOR_PICKUP":0},"live":1,`+
			`"closed":{"DELIVERED":0,"RETURN_TO_SENDER":1,"FAILURE":0,"CANCELLED":0,"ERROR":0,"ABANDONED":0}`)
	})
	_, body := get(t, "http://"+httpAddress+"/v1/statuses")
	var answer struct {
		Statuses []struct {
			Name    string
			Aliases []string
			Labels  map[string]string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &answer))
	require.Len(t, answer.Statuses, 11)
	require.Equal(t, "OUT_FOR_DELIVERY", answer.Statuses[3].Name)
	require.Equal(t, []string{"out_for_delivery"}, answer.Statuses[3].Aliases)
	require.Equal(t, "배송 출발", answer.Statuses[3].Labels["ko"])
	require.Equal(t, 0, stop().code)
}

// Simulated events fit a profile that only adds other names.
func TestDemoSimulatesUnderAProfileWithTheSameStatuses(t *testing.T) {
	httpAddress := freeAddress(t)

	_, stop := background(t, "demo", "--profile=korean", "--rate=500", "--http-address="+httpAddress, "--admin-address="+freeAddress(t))

	eventually(t, "deliveries are counted", func() (string, bool) {
		_, body := get(t, "http://"+httpAddress+"/v1/counts")
		return body, counted.MatchString(body)
	})
	_, body := get(t, "http://"+httpAddress+"/v1/statuses")
	require.Contains(t, body, `"배차완료"`)
	require.Equal(t, 0, stop().code)
}
