package api_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
)

const durationMetric = "deliverystat_http_request_duration_seconds"

// observed returns the number of requests by handler, method and code.
func observed(t *testing.T, registry *prometheus.Registry) map[string]uint64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	out := map[string]uint64{}
	for _, family := range families {
		if family.GetName() != durationMetric {
			continue
		}
		require.Equal(t, dto.MetricType_HISTOGRAM, family.GetType())
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			h := m.GetHistogram()
			require.NotEmpty(t, h.GetBucket(), "classic buckets")
			require.NotNil(t, h.Schema, "native buckets")
			out[labels["method"]+" "+labels["handler"]+" "+labels["code"]] = h.GetSampleCount()
		}
	}
	return out
}

func TestRequestsAreMeasuredByPattern(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	registry := prometheus.NewPedanticRegistry()
	w.options.Registerer = registry
	a := w.api(t)
	healthy := map[string]uint64{
		"GET /board/{file} 200": 0, "GET / 200": 0, "GET /openapi.yaml 200": 0, "GET /v1/statuses 200": 0, "GET /v1/counts 200": 0,
		"GET /v1/counts/{status} 200": 0, "GET /v1/counts/stream 200": 0, "GET /v1/deliveries 200": 0, "GET /v1/deliveries/{id} 200": 0,
	}
	require.Equal(t, healthy, observed(t, registry))

	w.deliveries.set(at(-1, -1, 17), rowOf("a/b"))
	get(t, a, "/v1/counts")
	get(t, a, "/v1/counts?by=region")
	get(t, a, "/v1/counts", "If-None-Match", "*")
	get(t, a, "/v1/counts?x=1")
	get(t, a, "/v1/counts/CREATED")
	get(t, a, "/v1/counts/NOPE")
	get(t, a, "/v1/counts/stream?x=1")
	get(t, a, "/v1/deliveries/a%2Fb")
	get(t, a, "/v1/deliveries/D-2")
	get(t, a, "/v1/nowhere/1")
	get(t, a, "/nowhere/2")
	for _, method := range []string{http.MethodHead, http.MethodPost, "BREW"} {
		exchange(t, a, httptest.NewRequestWithContext(t.Context(), method, "/v1/counts", nil))
	}
	require.Equal(t, map[string]uint64{
		"GET /board/{file} 200": 0, "GET / 200": 0, "GET /openapi.yaml 200": 0, "GET /v1/statuses 200": 0,
		"GET /v1/counts 200": 2, "GET /v1/counts 304": 1, "GET /v1/counts 400": 1, "HEAD /v1/counts 200": 1,
		"GET /v1/counts/{status} 200": 1, "GET /v1/counts/{status} 404": 1,
		"GET /v1/counts/stream 200": 0, "GET /v1/deliveries 200": 0, "GET /v1/counts/stream 400": 1,
		"GET /v1/deliveries/{id} 200": 1, "GET /v1/deliveries/{id} 404": 1,
		"GET other 404": 2, "other other 405": 2,
	}, observed(t, registry))

	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)
}
