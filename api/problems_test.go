package api_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/api"
)

func TestEveryFaultOfAQueryIsNamed(t *testing.T) {
	t.Parallel()
	type fault struct{ parameter, detail string }
	const (
		known    = "unknown parameter; known here: region, service, by, min_position, wait, max_staleness"
		duration = "must be a duration between 0s and 30s, like 500ms"
	)
	for target, want := range map[string][]fault{
		"/v1/counts?colour=red":                {{"colour", known}},
		"/v1/counts?access_token=abc":          {{"access_token", known}},
		"/v1/counts?REGION=seoul":              {{"REGION", known}},
		"/v1/counts?status=CREATED":            {{"status", known}},
		"/v1/counts?by=status":                 {{"by", `"status" is no counted dimension; these are: region, service`}},
		"/v1/counts?by=":                       {{"by", `"" is no counted dimension; these are: region, service`}},
		"/v1/counts?region=a&region=b":         {{"region", "given 2 times"}},
		"/v1/counts?region=a&service=b":        {{"service", "cannot be combined with region"}},
		"/v1/counts?region=a&by=service":       {{"by", "cannot be combined with region"}},
		"/v1/counts?wait=1s":                   {{"wait", "needs min_position"}},
		"/v1/counts?min_position=0:1&wait=31s": {{"wait", duration}},
		"/v1/counts?min_position=0:1&wait=-1s": {{"wait", duration}},
		"/v1/counts?min_position=0:1&wait=2":   {{"wait", duration}},
		"/v1/counts?min_position=0:1&wait=":    {{"wait", duration}},
		"/v1/counts?min_position=":             {{"min_position", "must be like 3:1043 or 0:17,3:1043"}},
		"/v1/counts?min_position=3:1":          {{"min_position", "partition 3 does not exist"}},
		"/v1/counts?min_position=0:1,0:2":      {{"min_position", "partition 0 is named twice"}},
		"/v1/counts?max_staleness=soon":        {{"max_staleness", "must be a duration of at least 0s, like 10s"}},
		"/v1/counts?max_staleness=-1s":         {{"max_staleness", "must be a duration of at least 0s, like 10s"}},
		"/v1/counts?a;b":                       {{"", "the query string is malformed: invalid semicolon separator in query"}},
		"/v1/counts/CREATED?by=region":         {{"by", strings.Replace(known, "by, ", "", 1)}},
		"/v1/deliveries/D-1?region=seoul":      {{"region", "unknown parameter; known here: min_position, wait, max_staleness"}},
		"/v1/deliveries?status=NOPE":           {{"status", `"NOPE" is no live status: see /v1/statuses`}},
		"/v1/deliveries?status=DELIVERED":      {{"status", `"DELIVERED" is no live status: see /v1/statuses`}},
		"/v1/deliveries?limit=0":               {{"limit", "must be a number from 1 to 500"}},
		"/v1/deliveries?limit=501":             {{"limit", "must be a number from 1 to 500"}},
		"/v1/deliveries?limit=+5":              {{"limit", "must be a number from 1 to 500"}},
		"/v1/deliveries?older_than=-1s":        {{"older_than", "must be a duration of at least 0s, like 30m"}},
		"/v1/deliveries?older_than=":           {{"older_than", "must be a duration of at least 0s, like 30m"}},
		"/v1/deliveries?order_id=":             {{"order_id", "must not be empty"}},
		"/v1/deliveries?cursor=":               {{"cursor", "must be a next_cursor of an answer to the same question"}},
		"/v1/deliveries?cursor=x&limit=x":      {{"cursor", "must be a next_cursor of an answer to the same question"}, {"limit", "must be a number from 1 to 500"}},
		"/v1/deliveries?by=region": {{"by", "unknown parameter; known here: region, service, status, order_id, older_than, limit, cursor, " +
			"min_position, wait, max_staleness"}},
		"/v1/statuses?lang=ko":                   {{"lang", "unknown parameter; this path takes none"}},
		"/openapi.yaml?v=1":                      {{"v", "unknown parameter; this path takes none"}},
		"/board/board.css?v=1":                   {{"v", "unknown parameter; this path takes none"}},
		"/v1/counts?" + strings.Repeat("x", 200): {{strings.Repeat("x", 80) + "…", known}},
		"/v1/counts?wait=x&colour=red&by=x&x=1":  {{"by", `"x" is no counted dimension; these are: region, service`}, {"colour", known}, {"wait", duration}, {"wait", "needs min_position"}, {"x", known}},
		"/v1/counts?min_position=0:x&max_staleness=x": {
			{"max_staleness", "must be a duration of at least 0s, like 10s"}, {"min_position", `reading offset of "0:x": invalid syntax`},
		},
	} {
		a := get(t, newWorld(t).api(t), target)
		object := requireProblem(t, a, "invalid-parameters")
		var got []fault
		for _, e := range object["errors"].([]any) {
			got = append(got, fault{e.(map[string]any)["parameter"].(string), e.(map[string]any)["detail"].(string)})
		}
		require.Equal(t, want, got, target)
	}
}

func TestDetailOfOneFaultAndOfMore(t *testing.T) {
	t.Parallel()
	a := newWorld(t).api(t)
	require.Equal(t, "wait: needs min_position", get(t, a, "/v1/counts?wait=1s").object(t)["detail"])
	require.Equal(t, "2 faults in the request: see errors", get(t, a, "/v1/statuses?a=1&b=2").object(t)["detail"])
}

func TestUnknownPaths(t *testing.T) {
	t.Parallel()
	a := newWorld(t).api(t)
	for _, path := range []string{
		"/v1", "/v1/", "/v2/counts", "/v1/counts/", "/v1/counts/CREATED/", "/v1/deliveries/", "/v1/deliveries/a/b",
		"/metrics", "/livez", "/problems/recovering", "/index.html", "//v1/counts",
	} {
		requireProblem(t, get(t, a, path), "not-found")
		head := exchange(t, a, httptest.NewRequestWithContext(t.Context(), http.MethodHead, path, nil))
		require.Equal(t, http.StatusNotFound, head.StatusCode)
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	a := newWorld(t).api(t)
	for _, path := range []string{"/", "/openapi.yaml", "/v1/counts", "/v1/counts/CREATED", "/v1/deliveries/a%2Fb", "/v1/statuses"} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions, http.MethodTrace, "BREW"} {
			got := exchange(t, a, httptest.NewRequestWithContext(t.Context(), method, path, nil))
			requireProblem(t, got, "method-not-allowed")
			require.Equal(t, "GET, HEAD", got.Header.Get("Allow"))
		}
	}
	for _, method := range []string{http.MethodPost, "BREW"} {
		requireProblem(t, exchange(t, a, httptest.NewRequestWithContext(t.Context(), method, "/nowhere", nil)), "not-found")
	}
}

func TestPanicsTellNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deliveries.panicking = true
	var log bytes.Buffer
	w.options.Logger = slog.New(slog.NewJSONHandler(&log, nil))
	a := get(t, w.api(t), "/v1/deliveries/D-1", "X-Request-ID", "r-1")
	requireProblem(t, a, "internal")
	require.NotContains(t, string(a.body), "secret")
	require.Contains(t, log.String(), "secret of the inside")
	require.Contains(t, log.String(), `"request_id":"r-1"`)
}

// Half an answer must not look like a whole one.
func TestAPanicWithinAnAnswerCutsTheConnection(t *testing.T) {
	t.Parallel()
	a := newWorld(t).api(t)
	a.AllowPanics()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/panic/late", nil)
	require.PanicsWithError(t, http.ErrAbortHandler.Error(), func() { a.ServeHTTP(httptest.NewRecorder(), r) })
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	a := newWorld(t).api(t)
	for _, sane := range []string{"a", "550e8400-e29b-41d4-a716-446655440000", "A.b_c-9", strings.Repeat("x", 64)} {
		require.Equal(t, sane, get(t, a, "/v1/statuses", "X-Request-ID", sane).Header.Get("X-Request-ID"))
	}
	for _, insane := range []string{"", "a b", "a\tb", "<script>", "é", strings.Repeat("x", 65), `"`, "a/b"} {
		got := get(t, a, "/v1/statuses", "X-Request-ID", insane).Header.Get("X-Request-ID")
		require.NotEqual(t, insane, got)
		require.Len(t, got, 26)
	}
}

func TestLoadIsShed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.options.MaxInFlight = 1
	held := make(chan struct{})
	entered := make(chan struct{})
	w.options.Counts = &blockingCounts{w.counts, entered, held}
	a := w.api(t)
	done := make(chan *answer)
	go func() { done <- get(t, a, "/v1/counts") }() //nolint:testifylint // the test waits for it
	<-entered
	overloaded := get(t, a, "/v1/deliveries/D-1")
	requireProblem(t, overloaded, "overloaded")
	require.Equal(t, "1", overloaded.Header.Get("Retry-After"))
	// Those that may wait have places of their own.
	requireProblem(t, get(t, a, "/v1/deliveries/D-1?min_position=2:17&wait=1s"), "delivery-not-found")
	close(held)
	require.Equal(t, http.StatusOK, (<-done).StatusCode)
	requireProblem(t, get(t, a, "/v1/deliveries/D-1"), "delivery-not-found")
}

func TestOptionsAreCheckedAllAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.options.Dimensions = []string{"region", "Region", "by", "cursor", "region"}
	w.options.StaleAfter = 0
	w.options.MaxInFlight = -1
	_, err := api.New(w.options)
	for _, text := range []string{`"Region": a name is`, `"by": the name is`, `"cursor": the name is`, `"region": given twice`, "StaleAfter", "MaxInFlight"} {
		require.ErrorContains(t, err, text)
	}
	_, err = api.New(api.Options{})
	require.ErrorContains(t, err, "Lifecycle is required")
	require.ErrorContains(t, err, "Counts, Deliveries and Freshness are required")
}
