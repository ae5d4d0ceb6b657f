package api

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"

	"github.com/go-chi/chi/v5"

	"deliverystat/api/board"
	"deliverystat/codecs"
)

//go:embed openapi.yaml
var spec []byte

// Spec returns the OpenAPI description of the API, as GET /openapi.yaml does.
func Spec() []byte { return slices.Clone(spec) }

// document is an answer that never changes while the process lives. It takes no
// parameters.
type document struct {
	contentType string
	policy      string // Content-Security-Policy, if not ""; such a page reads its parameters itself
	etag        string
	body        []byte
}

func newDocument(contentType string, body []byte) *document {
	return &document{contentType: contentType, etag: etagOf(string(body)), body: body}
}

// serve sends the document.
func (d *document) serve(w http.ResponseWriter, r *http.Request) {
	if d.policy != "" {
		w.Header().Set("Content-Security-Policy", d.policy)
	} else if faults := noParameters(r.URL.RawQuery); len(faults) > 0 {
		fail(w, r, problemInvalidParameters, summary(faults), withFaults(faults))
		return
	}
	respond(w, r, d.contentType, d.etag, d.body)
}

// noParameters finds a fault in each parameter of a path that takes none.
func noParameters(raw string) []fault {
	values, err := url.ParseQuery(raw)
	var faults []fault
	if err != nil {
		faults = append(faults, fault{Detail: "the query string is malformed: " + clip(err.Error())})
	}
	for name := range values {
		faults = append(faults, fault{Parameter: clip(name), Detail: "unknown parameter; this path takes none"})
	}
	sortFaults(faults)
	return faults
}

// specDocument is GET /openapi.yaml.
func specDocument() *document { return newDocument("application/yaml", spec) }

// boardDocument is GET /.
func boardDocument() *document {
	d := newDocument("text/html; charset=utf-8", board.Page())
	d.policy = board.Policy
	return d
}

// routeBoard adds the page and what it loads.
func routeBoard(r chi.Router) {
	r.Get("/", boardDocument().serve)
	loaded := map[string]*document{}
	for _, f := range board.Files() {
		loaded[f.Name] = newDocument(f.ContentType, f.Content)
	}
	r.Get("/board/{file}", func(w http.ResponseWriter, r *http.Request) {
		if d, ok := loaded[chi.URLParam(r, "file")]; ok {
			d.serve(w, r)
			return
		}
		notFound(w, r)
	})
}

// statusesDocument is GET /v1/statuses.
func statusesDocument(o *Options) *document {
	type status struct {
		Name       string            `json:"name"`
		Rank       int               `json:"rank"`
		Terminal   bool              `json:"terminal"`
		Aliases    []string          `json:"aliases"`
		Labels     map[string]string `json:"labels"`
		StuckAfter *float64          `json:"stuck_after_seconds"`
	}
	lifecycle := o.Lifecycle
	out := struct {
		Statuses   []status `json:"statuses"`
		Dimensions []string `json:"dimensions"`
		Version    string   `json:"version"`
	}{Dimensions: append([]string{}, o.Dimensions...), Version: lifecycle.Version()}
	for rank := range lifecycle.Len() {
		info := lifecycle.Info(codecs.Status(rank))
		s := status{Name: info.Name, Rank: rank, Terminal: info.Terminal, Aliases: info.Aliases, Labels: info.Labels}
		if after, ok := o.StuckAfter[codecs.Status(rank)]; ok {
			s.StuckAfter = new(after.Seconds())
		}
		if s.Aliases == nil {
			s.Aliases = []string{}
		}
		if s.Labels == nil {
			s.Labels = map[string]string{}
		}
		out.Statuses = append(out.Statuses, s)
	}
	body, err := json.Marshal(&out)
	if err != nil { // strings and numbers always have an encoding
		panic(err)
	}
	return newDocument(typeJSON, append(body, '\n'))
}
