package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
)

func TestETagStandsForPositionAndContent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deliveries.set(at(-1, -1, 17), rowOf("D-1"))
	a := w.api(t)
	for _, path := range []string{
		"/", "/openapi.yaml", "/v1/statuses", "/v1/counts", "/v1/counts?by=region", "/v1/counts?region=seoul",
		"/v1/counts/CREATED", "/v1/deliveries/D-1",
	} {
		first := get(t, a, path)
		etag := first.Header.Get("ETag")
		require.NotEmpty(t, etag, path)
		w.freshness.staleness = 50 * time.Millisecond // news that is not in the tag
		for _, match := range []string{etag, "*", `"x", ` + etag, strings.TrimPrefix(etag, "W/")} {
			got := get(t, a, path, "If-None-Match", match)
			require.Equal(t, http.StatusNotModified, got.StatusCode, path)
			require.Equal(t, etag, got.Header.Get("ETag"))
			if strings.HasPrefix(path, "/v1/counts") || strings.HasPrefix(path, "/v1/deliveries") {
				require.Equal(t, "0.05", got.Header.Get("Deliverystat-Staleness-Seconds"))
			}
		}
		require.Equal(t, http.StatusOK, get(t, a, path, "If-None-Match", `W/"other"`).StatusCode)
	}
}

func TestETagChangesWithThePosition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deliveries.set(at(-1, -1, 17), rowOf("D-1"))
	a := w.api(t)
	seen := map[string]string{}
	note := func(what, path string) {
		etag := get(t, a, path).Header.Get("ETag")
		require.Empty(t, seen[etag], what)
		seen[etag] = what
	}
	note("counts", "/v1/counts")
	note("groups", "/v1/counts?by=region")
	note("value", "/v1/counts?region=seoul")
	note("status", "/v1/counts/CREATED")
	note("delivery", "/v1/deliveries/D-1")

	moved := snapshot()
	moved.Position.Next[2]++
	w.counts.set(moved)
	w.deliveries.set(at(-1, -1, 18))
	note("counts further on", "/v1/counts")
	note("status further on", "/v1/counts/CREATED")
	note("delivery further on", "/v1/deliveries/D-1")

	other := snapshot()
	other.Position.TopicID = "t2"
	w.counts.set(other)
	w.deliveries.set(codecs.Position{TopicID: "t2", Next: []int64{-1, -1, 17}})
	note("counts of another topic", "/v1/counts")
	note("delivery of another topic", "/v1/deliveries/D-1")

	abandoned := rowOf("D-1") // by another setting, at the same position
	abandoned.Status, abandoned.Closed = codecs.BuiltinLifecycle().Abandoned(), true
	w.deliveries.set(at(-1, -1, 17), abandoned)
	note("delivery abandoned", "/v1/deliveries/D-1")
}

// What is wrong comes before what did not change.
func TestConditionsDoNotHideProblems(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.api(t)
	requireProblem(t, get(t, a, "/v1/counts?x=1", "If-None-Match", "*"), "invalid-parameters")
	requireProblem(t, get(t, a, "/v1/counts?max_staleness=1ms", "If-None-Match", "*"), "too-stale")
	requireProblem(t, get(t, a, "/v1/counts?min_position=0:9999", "If-None-Match", "*"), "position-not-reached")
	requireProblem(t, get(t, a, "/v1/deliveries/D-1", "If-None-Match", "*"), "delivery-not-found")
}

func TestHeadHasTheHeadersOfGet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deliveries.set(at(-1, -1, 17), rowOf("D-1"))
	server := httptest.NewServer(w.api(t))
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	send := func(method, path, coding string) *answer {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		require.NoError(t, err)
		r.Header.Set("X-Request-ID", "r-1")
		if coding != "" {
			r.Header.Set("Accept-Encoding", coding)
		}
		response, err := client.Do(r)
		require.NoError(t, err)
		r.URL.Scheme, r.URL.Host = "", ""
		return check(t, r, response)
	}
	for _, path := range []string{
		"/", "/openapi.yaml", "/v1/statuses", "/v1/counts", "/v1/counts?by=region", "/v1/counts/CREATED", "/v1/counts/NOPE",
		"/v1/deliveries/D-1", "/v1/deliveries/D-2", "/v1/deliveries/%00", "/v1/counts?x=1", "/nowhere", "/v1/counts?min_position=0:9999",
	} {
		for _, coding := range []string{"", "gzip"} {
			get, head := send(http.MethodGet, path, coding), send(http.MethodHead, path, coding)
			require.Equal(t, get.StatusCode, head.StatusCode, path)
			get.Header.Del("Date")
			head.Header.Del("Date")
			require.NotEmpty(t, get.Header.Get("Content-Length"), path)
			require.Equal(t, get.Header, head.Header, path)
			require.NotEmpty(t, get.body, path)
			require.Empty(t, head.body, path)
		}
	}
}

func TestLargeAnswersAreCompressed(t *testing.T) {
	t.Parallel()
	a := newWorld(t).api(t)
	plain := get(t, a, "/openapi.yaml")
	require.Empty(t, plain.Header.Get("Content-Encoding"))
	for coding, want := range map[string]string{
		"gzip": "gzip", "br, GZIP;q=0.5": "gzip", "*": "gzip", "gzip;q=0": "", "*;q=0": "", "gzip;q=0, *": "",
		"br": "", "identity": "", "gzip; q=x": "", "": "",
	} {
		got := get(t, a, "/openapi.yaml", "Accept-Encoding", coding)
		require.Equal(t, want, got.Header.Get("Content-Encoding"), coding)
		require.Equal(t, plain.body, got.body, coding)
		require.Equal(t, "Accept-Encoding", got.Header.Get("Vary"), coding)
		require.Empty(t, get(t, a, "/v1/counts", "Accept-Encoding", coding).Header.Get("Content-Encoding"), "small")
	}
}
