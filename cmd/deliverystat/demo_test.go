package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var counted = regexp.MustCompile(`"CREATED":[1-9]`)

// The simulated market shows up in the counts; after the end nothing is left
// on disk.
func TestDemoCountsASimulatedMarketAndLeavesNothing(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	httpAddress, admin := freeAddress(t), freeAddress(t)

	out, stop := background(t, "demo", "--rate=500", "--seed=7", "--http-address="+httpAddress, "--admin-address="+admin)

	eventually(t, "deliveries are counted", func() (string, bool) {
		_, body := get(t, "http://"+httpAddress+"/v1/counts")
		return body, counted.MatchString(body)
	})
	eventually(t, "a delivery to ask for", func() (string, bool) {
		_, address, _ := strings.Cut(out.String(), "  one      curl -s ")
		if !strings.HasSuffix(address, "\n") {
			return out.String(), false
		}
		code, body := get(t, strings.TrimSpace(address))
		require.Contains(t, body, `"delivery_id":"D-`)
		return body, code == 200
	})
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Len(t, left, 1, "one directory while it runs")
	ended := stop()
	require.Equal(t, 0, ended.code)
	require.Empty(t, ended.stderr)
	require.Contains(t, out.String(), "http://"+httpAddress+"/\n")
	require.Contains(t, out.String(), "curl -s http://"+httpAddress+"/v1/counts\n")
	left, err = os.ReadDir(temp)
	require.NoError(t, err)
	require.Empty(t, left)
}

// One's own events, some of them broken: what was refused is said with the
// first line, and the service goes on serving.
func TestDemoTellsWhatBecameOfYourEvents(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	write(t, path, strings.Join([]string{
		`{"delivery_id":"D-1","status":"CREATED","occurred_at":"2026-11-30T10:00:00+09:00"}`,
		`{"delivery_id":"D-1","status":"PICKED_UP","occurred_at":"2026-11-30T10:05:00+09:00"}`,
		``,
		`delivered, thank you`,
		`{"delivery_id":"D-2","status":"CREATED"}`,
		`{"deliveryId":"D-3","status":"SOMETHING_NEW","occurredAt":1764496800000}`,
		`{"delivery_id":"D-1","status":"ASSIGNED","occurred_at":"2026-11-30T10:01:00+09:00"}`,
		`{"delivery_id":"D-1","status":"PICKED_UP","occurred_at":"2026-11-30T10:05:00+09:00"}`,
		`{"delivery_id":"D-4","status":"DELIVERED","occurred_at":"yesterday"}`,
		`{"delivery_id":"D-5"}`,
	}, "\n"))
	httpAddress, admin := freeAddress(t), freeAddress(t)

	out, stop := background(t, "demo", "--events="+path, "--http-address="+httpAddress, "--admin-address="+admin)

	eventually(t, "the report", func() (string, bool) {
		return out.String(), strings.Contains(out.String(), "SOMETHING_NEW")
	})
	_, report, _ := strings.Cut(out.String(), "/metrics\n")
	require.Equal(t, strings.Join([]string{
		"9 events read:",
		"  applied      3",
		"  duplicate    1",
		"  stale        1",
		"  ignored      0",
		"  dead_letter  4",
		"    missing_field: 2, the first in line 5: occurred_at is missing",
		"    invalid_time: 1, the first in line 9: DETAIL",
		"    unreadable: 1, the first in line 4: value is not valid JSON",
		"Statuses that are not known count as UNKNOWN (1 of them); a profile gives them a meaning (--profile, see profile check):",
		`    "SOMETHING_NEW": 1`,
		"",
	}, "\n"), regexp.MustCompile(`(line 9: ).*`).ReplaceAllString(report, "${1}DETAIL"))
	eventually(t, "the counts", func() (string, bool) {
		_, body := get(t, "http://"+httpAddress+"/v1/counts")
		return body, strings.Contains(body, `"UNKNOWN":1`) && strings.Contains(body, `"PICKED_UP":1`) && strings.Contains(body, `"live":2`)
	})
	eventually(t, "the list", func() (string, bool) {
		_, body := get(t, "http://"+httpAddress+"/v1/deliveries?status=UNKNOWN&older_than=1h")
		return body, strings.Contains(body, `"delivery_id":"D-3"`) && strings.Contains(body, `"total":1,`)
	})
	require.Equal(t, 0, stop().code)
}

func TestDemoNamesAFileThatIsNotThere(t *testing.T) {
	got := invoke(t, "demo", "--events=/none/at/all", "--http-address=127.0.0.1:0", "--admin-address=127.0.0.1:0")

	require.Equal(t, 2, got.code)
	require.Equal(t, []string{"deliverystat: --events: open /none/at/all: no such file or directory"}, got.lines())
}
