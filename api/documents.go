package api

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"

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
	policy      string // Content-Security-Policy, if not ""
	etag        string
	body        []byte
}

func newDocument(contentType string, body []byte) *document {
	return &document{contentType: contentType, etag: etagOf(string(body)), body: body}
}

// serve sends the document.
func (d *document) serve(w http.ResponseWriter, r *http.Request) {
	if faults := noParameters(r.URL.RawQuery); len(faults) > 0 {
		fail(w, r, problemInvalidParameters, summary(faults), withFaults(faults))
		return
	}
	if d.policy != "" {
		w.Header().Set("Content-Security-Policy", d.policy)
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
	d.policy = board.Policy()
	return d
}

// statusesDocument is GET /v1/statuses.
func statusesDocument(lifecycle *codecs.Lifecycle) *document {
	type status struct {
		Name     string            `json:"name"`
		Rank     int               `json:"rank"`
		Terminal bool              `json:"terminal"`
		Aliases  []string          `json:"aliases"`
		Labels   map[string]string `json:"labels"`
	}
	out := struct {
		Statuses []status `json:"statuses"`
		Version  string   `json:"version"`
	}{Version: lifecycle.Version()}
	for rank := range lifecycle.Len() {
		info := lifecycle.Info(codecs.Status(rank))
		s := status{info.Name, rank, info.Terminal, info.Aliases, info.Labels}
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
