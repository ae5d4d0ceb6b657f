package api_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"deliverystat/api"
)

func admin(t *testing.T, h http.Handler, method, path string) *httptest.ResponseRecorder {
	t.Helper()
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), method, path, nil))
	return recorder
}

func TestProbes(t *testing.T) {
	t.Parallel()
	recovered, draining, missing := false, false, false
	h := api.NewAdmin(api.AdminOptions{
		Started: func() []api.Check { return []api.Check{{Name: "topics_checked", OK: true}} },
		Ready: func() []api.Check {
			checks := []api.Check{
				{Name: "counts_recovered", OK: recovered, Detail: "1204 records to go"},
				{Name: "not_draining", OK: !draining, Detail: "stopping"},
			}
			if missing {
				checks = append(checks, api.Check{Name: "sources_read", Warning: true, Detail: "topic orders does not exist"})
			}
			return checks
		},
	})
	live := admin(t, h, http.MethodGet, "/livez")
	require.Equal(t, http.StatusOK, live.Code)
	require.JSONEq(t, `{"status":"ok"}`, live.Body.String())

	started := admin(t, h, http.MethodGet, "/startupz")
	require.Equal(t, http.StatusOK, started.Code)
	require.JSONEq(t, `{"started":true,"reasons":[],"checks":[{"name":"topics_checked","ok":true}]}`, started.Body.String())

	ready := admin(t, h, http.MethodGet, "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, ready.Code)
	require.Equal(t, "application/json", ready.Header().Get("Content-Type"))
	require.JSONEq(t, `{"ready":false,"reasons":["counts_recovered: 1204 records to go"],"checks":[
		{"name":"counts_recovered","ok":false,"detail":"1204 records to go"},{"name":"not_draining","ok":true}]}`, ready.Body.String())

	recovered = true
	require.Equal(t, http.StatusOK, admin(t, h, http.MethodGet, "/readyz").Code)
	require.Equal(t, http.StatusOK, admin(t, h, http.MethodHead, "/readyz").Code)
	missing = true
	ready = admin(t, h, http.MethodGet, "/readyz")
	require.Equal(t, http.StatusOK, ready.Code, "a warning is a reason, and no more")
	require.JSONEq(t, `{"ready":true,"reasons":["sources_read: topic orders does not exist"],"checks":[
		{"name":"counts_recovered","ok":true},{"name":"not_draining","ok":true},
		{"name":"sources_read","ok":false,"warning":true,"detail":"topic orders does not exist"}]}`, ready.Body.String())
	draining = true
	ready = admin(t, h, http.MethodGet, "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, ready.Code)
	require.Contains(t, ready.Body.String(), `"not_draining: stopping"`)
	require.Equal(t, http.StatusOK, admin(t, h, http.MethodGet, "/livez").Code)
}

func TestInsight(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "x", Help: "X."}, func() float64 { return 7 }))
	h := api.NewAdmin(api.AdminOptions{
		Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		Config:  map[string]string{"kafka-sasl-password-file": "<redacted>"},
		Partitions: func() any {
			return map[string]any{"partitions": []map[string]any{{"partition": 0, "state": "running"}}}
		},
	})
	require.Contains(t, admin(t, h, http.MethodGet, "/metrics").Body.String(), "\nx 7\n")
	require.JSONEq(t, `{"kafka-sasl-password-file":"<redacted>"}`, admin(t, h, http.MethodGet, "/config").Body.String())
	require.JSONEq(t, `{"partitions":[{"partition":0,"state":"running"}]}`, admin(t, h, http.MethodGet, "/partitions").Body.String())
	require.Contains(t, admin(t, h, http.MethodGet, "/debug/pprof/").Body.String(), "goroutine")
	for _, path := range []string{"/debug/pprof/goroutine?debug=1", "/debug/pprof/heap?debug=1", "/debug/pprof/cmdline", "/debug/pprof/symbol"} {
		require.Equal(t, http.StatusOK, admin(t, h, http.MethodGet, path).Code, path)
	}

	bare := api.NewAdmin(api.AdminOptions{})
	require.JSONEq(t, `{"partitions":[]}`, admin(t, bare, http.MethodGet, "/partitions").Body.String())
	require.Equal(t, http.StatusNotFound, admin(t, bare, http.MethodGet, "/metrics").Code)
	require.Equal(t, http.StatusOK, admin(t, bare, http.MethodGet, "/readyz").Code)
}

func TestAdminProblems(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	h := api.NewAdmin(api.AdminOptions{
		Ready:  func() []api.Check { panic("secret of the inside") },
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	for _, tt := range []struct {
		method, path, problem string
		status                int
	}{
		{http.MethodGet, "/v1/counts", "/problems/not-found", http.StatusNotFound},
		{http.MethodPost, "/livez", "/problems/method-not-allowed", http.StatusMethodNotAllowed},
		{http.MethodGet, "/readyz", "/problems/internal", http.StatusInternalServerError},
	} {
		got := admin(t, h, tt.method, tt.path)
		require.Equal(t, tt.status, got.Code)
		require.Equal(t, "application/problem+json", got.Header().Get("Content-Type"))
		var object map[string]any
		require.NoError(t, json.Unmarshal(got.Body.Bytes(), &object))
		require.Equal(t, tt.problem, object["type"])
		require.NotContains(t, got.Body.String(), "secret")
	}
	require.Contains(t, log.String(), "secret of the inside")
}
