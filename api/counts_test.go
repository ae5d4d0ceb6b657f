package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
)

func TestCountsHaveEveryStatusInLifecycleOrder(t *testing.T) {
	t.Parallel()
	a := get(t, newWorld(t).api(t), "/v1/counts")
	require.Equal(t, http.StatusOK, a.StatusCode)
	//nolint:testifylint // the bytes: statuses keep the order of the lifecycle
	require.Equal(t, `{"counts":{"UNKNOWN":0,"CREATED":3,"ASSIGNED":0,"PICKUP_REQUESTED":0,"PICKED_UP":1,"DELIVERING":0,"RETURNING":0},`+
		`"live":4,"closed":{"DELIVERED":10,"CANCELLED":1,"RETURNED":0,"FAILED":0,"ABANDONED":0},"closed_window_seconds":86400,`+
		`"as_of":{"position":"0:1042,1:998,2:17","event_time":"2026-11-30T01:00:00.123456Z","lag_records":0,"staleness_seconds":0.04,`+
		`"stale":false,"replica":"deliverystat-0"}}`+"\n", string(a.body))
	require.Equal(t, "application/json", a.Header.Get("Content-Type"))
	require.Equal(t, "0.04", a.Header.Get("Deliverystat-Staleness-Seconds"))
	require.Equal(t, "no-cache", a.Header.Get("Cache-Control"))
	require.Equal(t, "nosniff", a.Header.Get("X-Content-Type-Options"))
}

func TestCountsOfOneValue(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		query, counts string
	}{
		{"region=seoul", `"CREATED":2,"ASSIGNED":0,"PICKUP_REQUESTED":0,"PICKED_UP":0,"DELIVERING":0,"RETURNING":0},"live":2,"closed":{"DELIVERED":9,"CANCELLED":0,`},
		{"region=busan+%26+%EB%B6%80%EC%82%B0", `"CREATED":0,"ASSIGNED":0,"PICKUP_REQUESTED":0,"PICKED_UP":1,"DELIVERING":0,"RETURNING":0},"live":1,"closed":{"DELIVERED":1,"CANCELLED":1,`},
		{"region=", `"CREATED":1,"ASSIGNED":0,"PICKUP_REQUESTED":0,"PICKED_UP":0,"DELIVERING":0,"RETURNING":0},"live":1,"closed":{"DELIVERED":0,"CANCELLED":0,`},
		{"region=atlantis", `"CREATED":0,"ASSIGNED":0,"PICKUP_REQUESTED":0,"PICKED_UP":0,"DELIVERING":0,"RETURNING":0},"live":0,"closed":{"DELIVERED":0,"CANCELLED":0,`},
		{"service=seoul", `"CREATED":0,"ASSIGNED":0,"PICKUP_REQUESTED":0,"PICKED_UP":0,"DELIVERING":0,"RETURNING":0},"live":0,"closed":{"DELIVERED":0,"CANCELLED":0,`},
	} {
		a := get(t, newWorld(t).api(t), "/v1/counts?"+tt.query)
		require.Equal(t, http.StatusOK, a.StatusCode, tt.query)
		require.True(t, strings.HasPrefix(string(a.body), `{"counts":{"UNKNOWN":0,`+tt.counts), "%s: %s", tt.query, a.body)
	}
}

func TestGroupsAddUpToTheTotal(t *testing.T) {
	t.Parallel()
	object := get(t, newWorld(t).api(t), "/v1/counts?by=region").object(t)
	groups := object["groups"].([]any)
	var values []string
	sum := map[string]float64{}
	add := func(object map[string]any) {
		for _, member := range []string{"counts", "closed"} {
			for status, n := range object[member].(map[string]any) {
				sum[status] += n.(float64)
			}
		}
		sum["live"] += object["live"].(float64)
	}
	for _, g := range groups {
		add(g.(map[string]any))
		values = append(values, g.(map[string]any)["region"].(string))
	}
	require.Equal(t, []string{"", "busan & 부산", "seoul"}, values)
	groupSum := sum
	sum = map[string]float64{}
	add(object)
	require.Equal(t, groupSum, sum)
	require.Equal(t, map[string]float64{
		"UNKNOWN": 0, "CREATED": 3, "ASSIGNED": 0, "PICKUP_REQUESTED": 0, "PICKED_UP": 1, "DELIVERING": 0, "RETURNING": 0,
		"DELIVERED": 10, "CANCELLED": 1, "RETURNED": 0, "FAILED": 0, "ABANDONED": 0, "live": 4,
	}, sum)

	require.Empty(t, get(t, newWorld(t).api(t), "/v1/counts?by=service").object(t)["groups"])
}

func TestGroupsNeedEqualSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mixed := snapshot()
	mixed.Uniform = false
	w.counts.set(mixed)
	for _, query := range []string{"?by=region", "?region=seoul", "/CREATED?region=seoul"} {
		requireProblem(t, get(t, w.api(t), "/v1/counts"+query), "groups-unavailable")
	}
	require.Equal(t, http.StatusOK, get(t, w.api(t), "/v1/counts").StatusCode)
}

func TestCountOfOneStatus(t *testing.T) {
	t.Parallel()
	a := newWorld(t).api(t)
	for path, want := range map[string]int{
		"CREATED": 3, "PICKED_UP": 1, "UNKNOWN": 0, "DELIVERED": 10, "ABANDONED": 0,
		"%43REATED": 3, "CREATED?region=seoul": 2, "DELIVERED?region=seoul": 9, "DELIVERED?region=nowhere": 0,
	} {
		object := get(t, a, "/v1/counts/"+path).object(t)
		require.EqualValues(t, want, object["count"], path)
		name, _, _ := strings.Cut(strings.ReplaceAll(path, "%43", "C"), "?")
		require.Equal(t, name, object["status"])
		require.Equal(t, "0:1042,1:998,2:17", object["as_of"].(map[string]any)["position"])
	}
	for _, path := range []string{"created", "IN_TRANSIT", "NOPE", "CREATED%2F", "streams"} {
		requireProblem(t, get(t, a, "/v1/counts/"+path), "unknown-status")
	}
}

// A partition may still count by the lifecycle of before.
func TestStatusesThatTheLifecycleHasNotAreCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	odd := snapshot()
	odd.All.Counts = append(odd.All.Counts,
		codecs.StatusCount{Status: "WAITING", Live: 2, Closed: 0}, codecs.StatusCount{Status: "LOST", Closed: 5},
		codecs.StatusCount{Status: "FAILED", Live: 7}, codecs.StatusCount{Status: "RETURNING", Closed: 6})
	w.counts.set(odd)
	object := get(t, w.api(t), "/v1/counts").object(t)
	counts, closed := object["counts"].(map[string]any), object["closed"].(map[string]any)
	require.EqualValues(t, 2, counts["WAITING"])
	require.EqualValues(t, 7, counts["FAILED"])
	require.EqualValues(t, 5, closed["LOST"])
	require.EqualValues(t, 6, closed["RETURNING"])
	require.EqualValues(t, 4+2+7, object["live"])
}

func TestAsOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		freshness judgement
		eventTime int64
		want      string
		header    string
	}{
		{judgement{12, 1500 * time.Microsecond, true}, eventTime, `"2026-11-30T01:00:00.123456Z","lag_records":12,"staleness_seconds":0.0015,"stale":false`, "0.0015"},
		{judgement{0, 1500001 * time.Nanosecond, true}, codecs.None, `null,"lag_records":0,"staleness_seconds":0.001501,"stale":false`, "0.001501"},
		{judgement{0, 30 * time.Second, true}, 1, `"1970-01-01T00:00:00.000000001Z","lag_records":0,"staleness_seconds":30,"stale":false`, "30"},
		{judgement{0, 30*time.Second + 1, true}, 0, `"1970-01-01T00:00:00Z","lag_records":0,"staleness_seconds":30.000001,"stale":true`, "30.000001"},
		{judgement{7, 0, false}, 0, `"1970-01-01T00:00:00Z","lag_records":7,"staleness_seconds":null,"stale":true`, ""},
		{judgement{-1, 0, false}, 0, `"1970-01-01T00:00:00Z","lag_records":null,"staleness_seconds":null,"stale":true`, ""},
	} {
		w := newWorld(t)
		w.freshness.judgement = tt.freshness
		s := snapshot()
		s.EventTime = tt.eventTime
		w.counts.set(s)
		a := get(t, w.api(t), "/v1/counts/CREATED")
		require.Equal(t, `{"status":"CREATED","count":3,"as_of":{"position":"0:1042,1:998,2:17","event_time":`+tt.want+`,"replica":"deliverystat-0"}}`+"\n", string(a.body))
		require.Equal(t, tt.header, a.Header.Get("Deliverystat-Staleness-Seconds"))
	}
}

func TestMaxStaleness(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.freshness.staleness = 2 * time.Second
	require.Equal(t, http.StatusOK, get(t, w.api(t), "/v1/counts?max_staleness=2s").StatusCode)
	a := get(t, w.api(t), "/v1/counts?max_staleness=1999ms")
	requireProblem(t, a, "too-stale")
	require.Equal(t, "2", a.Header.Get("Deliverystat-Staleness-Seconds"))
	w.freshness.known = false
	requireProblem(t, get(t, w.api(t), "/v1/counts?max_staleness=1h"), "too-stale")
	requireProblem(t, get(t, w.api(t), "/v1/deliveries/D-1?max_staleness=1h"), "too-stale")
}

func TestNothingIsAnsweredBeforeRecovery(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.counts.set(nil)
	w.deliveries.notReady = true
	for _, path := range []string{
		"/v1/counts", "/v1/counts?by=region", "/v1/counts?region=x", "/v1/counts/CREATED", "/v1/counts?min_position=7:1&wait=30s",
		"/v1/deliveries/D-1", "/v1/deliveries/D-1?min_position=7:1&wait=30s",
	} {
		a := get(t, w.api(t), path)
		requireProblem(t, a, "recovering")
		require.Equal(t, "2", a.Header.Get("Retry-After"))
	}
	incomplete := snapshot()
	incomplete.Complete = false
	w.counts.set(incomplete)
	requireProblem(t, get(t, w.api(t), "/v1/counts"), "recovering")

	require.Equal(t, http.StatusOK, get(t, w.api(t), "/v1/statuses").StatusCode)
	requireProblem(t, get(t, w.api(t), "/v1/counts?colour=red"), "invalid-parameters")
}

func TestManyValuesOfADimension(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := snapshot()
	for i := range 1000 {
		scope := fmt.Sprintf("service=s%d", i)
		s.Groups[scope] = codecs.ScopeCounts{Scope: scope, Counts: []codecs.StatusCount{{Status: "CREATED", Live: int64(i)}}}
	}
	w.counts.set(s)
	a := w.api(t)
	for range 2 {
		for i := range 1000 {
			require.EqualValues(t, i, get(t, a, fmt.Sprintf("/v1/counts/CREATED?service=s%d", i)).object(t)["count"])
		}
	}
}
