package api

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"
)

// API is the handler of the public address. It is safe for concurrent use.
type API struct {
	options   Options
	router    *chi.Mux
	patterns  map[string]bool // route patterns: what the handler label may be
	durations *prometheus.HistogramVec

	bodies      atomic.Pointer[bodies]
	feed        feed
	stream      streamMetrics
	statuses    *document
	window      string // ClosedWindow in words
	replicaJSON []byte

	//nolint:containedctx // it ends what waits, whichever request that is
	draining context.Context
	drain    context.CancelFunc
}

// New makes the API. All faults of the options are reported at once.
func New(options Options) (*API, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	a := &API{
		options:     options,
		patterns:    map[string]bool{},
		statuses:    statusesDocument(&options),
		window:      options.ClosedWindow.String(),
		replicaJSON: jsonString(options.Replica),
	}
	a.feed.look = a.look
	a.stream = newStreamMetrics(options.Registerer)
	a.draining, a.drain = newDrain()
	a.router = a.routes()
	err := chi.Walk(a.router, func(_, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		a.patterns[pattern] = true
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing routes: %w", err)
	}
	a.initSeries()
	return a, nil
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.router.ServeHTTP(w, r) }

// Drain ends all streams and all waiting for positions, now and from now on.
// Everything else is answered as before, until the server is shut down.
func (a *API) Drain() { a.drain() }

// routes maps paths to handlers.
func (a *API) routes() *chi.Mux {
	r := chi.NewRouter()
	r.Use(a.measure, setHeaders, a.recoverPanics, routeEscaped, a.shed, middleware.GetHead)
	r.NotFound(notFound)
	r.MethodNotAllowed(a.methodNotAllowed)

	routeBoard(r)
	r.Get("/openapi.yaml", specDocument().serve)
	r.Route("/v1", func(r chi.Router) {
		r.Use(a.authenticate)
		r.Get("/counts", a.getCounts)
		r.Get("/counts/stream", a.streamCounts)
		r.Get("/counts/{status}", a.getCount)
		r.Get("/deliveries", a.listDeliveries)
		r.Get("/deliveries/{id}", a.getDelivery)
		r.Get("/statuses", a.statuses.serve)
	})
	return r
}
