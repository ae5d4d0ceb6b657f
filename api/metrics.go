package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// labelOther stands for every handler and method that the API does not have, so
// that no client can make series.
const labelOther = "other"

// measure observes the duration of each request in
// deliverystat_http_request_duration_seconds. The handler label is the route
// pattern, never the path.
func (a *API) measure(next http.Handler) http.Handler {
	if a.options.Registerer == nil {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(middleware.NewWrapResponseWriter(w, r.ProtoMajor), r)
		})
	}
	durations := promauto.With(a.options.Registerer).NewHistogramVec(prometheus.HistogramOpts{
		Name:    "deliverystat_http_request_duration_seconds",
		Help:    "Time to answer a request, waiting for a position included, by route pattern.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 30},

		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  100,
		NativeHistogramMinResetDuration: time.Hour,
	}, []string{"handler", "method", "code"})
	a.durations = durations
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wrapped := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		start := time.Now()
		defer func() { // also if the connection is cut by a panic
			code := wrapped.Status()
			if code == 0 {
				code = http.StatusOK
			}
			if r.URL.Path == pathStream && code == http.StatusOK {
				return // how long a client stays is no time to answer
			}
			durations.WithLabelValues(a.handlerLabel(r), methodLabel(r.Method), strconv.Itoa(code)).
				Observe(time.Since(start).Seconds())
		}()
		next.ServeHTTP(wrapped, r)
	})
}

// initSeries makes the series that a healthy replica has, so that a rate of the
// first request is not lost.
func (a *API) initSeries() {
	if a.durations == nil {
		return
	}
	for pattern := range a.patterns {
		a.durations.WithLabelValues(pattern, http.MethodGet, strconv.Itoa(http.StatusOK))
	}
}

func (a *API) handlerLabel(r *http.Request) string {
	if pattern := chi.RouteContext(r.Context()).RoutePattern(); a.patterns[pattern] {
		return pattern
	}
	return labelOther
}

func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead:
		return method
	default:
		return labelOther
	}
}
