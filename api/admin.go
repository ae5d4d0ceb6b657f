package api

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// Check is one condition of being started or ready.
type Check struct {
	Name   string `json:"name"` // snake_case: "counts_recovered"
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"` // why not; shown unless OK
	// Warning says that the check is a reason to look, and none to send no
	// requests here.
	Warning bool `json:"warning,omitempty"`
}

// AdminOptions are what the admin paths show.
type AdminOptions struct {
	// Started says what must be done before the process counts as started.
	Started func() []Check
	// Ready says what must hold for requests to be sent here: recovered once and
	// not draining. A fault that all replicas share must not be among it.
	Ready func() []Check
	// Metrics is the Prometheus handler.
	Metrics http.Handler
	// Config is the effective configuration, redacted by its owner.
	Config any
	// Partitions describes the partitions: owner, position, lag, state. nil: none.
	Partitions func() any
	Logger     *slog.Logger
}

// NewAdmin makes the handler of the admin address: probes, metrics, insight and
// profiles. It has no authentication and belongs on an address of the inside.
func NewAdmin(options AdminOptions) http.Handler {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	r := chi.NewRouter()
	a := &API{options: Options{Logger: options.Logger}, router: r}
	r.Use(wrapWriter, setHeaders, a.recoverPanics, middleware.GetHead)
	r.NotFound(func(w http.ResponseWriter, r *http.Request) {
		fail(w, r, problemNotFound, "there is nothing at this path of the admin address")
	})
	r.MethodNotAllowed(a.methodNotAllowed)

	// A process that can answer is alive. Were Kafka looked at here, its outage
	// would restart every replica and lose what they still could answer.
	r.Get("/livez", func(w http.ResponseWriter, r *http.Request) {
		writeAdmin(w, r, http.StatusOK, map[string]string{"status": "ok"})
	})
	r.Get("/startupz", probe("started", options.Started))
	r.Get("/readyz", probe("ready", options.Ready))
	if options.Metrics != nil {
		r.Method(http.MethodGet, "/metrics", options.Metrics)
	}
	r.Get("/config", func(w http.ResponseWriter, r *http.Request) {
		writeAdmin(w, r, http.StatusOK, options.Config)
	})
	r.Get("/partitions", func(w http.ResponseWriter, r *http.Request) {
		var partitions any = map[string]any{"partitions": []any{}}
		if options.Partitions != nil {
			partitions = options.Partitions()
		}
		writeAdmin(w, r, http.StatusOK, partitions)
	})
	r.Route("/debug/pprof", func(r chi.Router) {
		r.HandleFunc("/", pprof.Index)
		r.HandleFunc("/cmdline", pprof.Cmdline)
		r.HandleFunc("/profile", pprof.Profile)
		r.HandleFunc("/symbol", pprof.Symbol)
		r.HandleFunc("/trace", pprof.Trace)
		r.HandleFunc("/{profile}", pprof.Index)
	})
	return r
}

// wrapWriter makes the status of an answer known to recoverPanics.
func wrapWriter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(middleware.NewWrapResponseWriter(w, r.ProtoMajor), r)
	})
}

// probe answers 200 if every check is OK that is more than a warning, else 503,
// with each reason.
func probe(name string, checks func() []Check) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		results := []Check{}
		if checks != nil {
			results = append(results, checks()...)
		}
		all := true
		reasons := []string{}
		for i, c := range results {
			if c.OK {
				results[i].Detail = "" // it says why not
				continue
			}
			all = all && c.Warning
			reasons = append(reasons, strings.TrimSuffix(c.Name+": "+c.Detail, ": "))
		}
		code := http.StatusOK
		if !all {
			code = http.StatusServiceUnavailable
		}
		writeAdmin(w, r, code, map[string]any{name: all, "reasons": reasons, "checks": results})
	}
}

// writeAdmin sends a JSON object.
func writeAdmin(w http.ResponseWriter, r *http.Request, code int, object any) {
	body, err := json.MarshalIndent(object, "", "  ")
	if err != nil {
		panic(fmt.Errorf("encoding the answer to %s: %w", r.URL.Path, err))
	}
	w.Header().Set("Content-Type", typeJSON)
	w.WriteHeader(code)
	_, _ = w.Write(append(body, '\n')) // the client went away: nobody to tell
}
