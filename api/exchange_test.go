package api_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/config"
	verrors "github.com/pb33f/libopenapi-validator/errors"
	"github.com/pb33f/libopenapi-validator/responses"
	"github.com/pb33f/libopenapi-validator/schema_validation"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"
	"github.com/stretchr/testify/require"

	"deliverystat/api"
)

// description is the API's description, ready to hold answers against.
type description struct {
	document libopenapi.Document
	model    *v3.Document
	full     validator.Validator // status, headers, body; nothing undeclared
	bodyless validator.Validator // the same without the body
	schemas  schema_validation.SchemaValidator
}

// strict lets nothing pass that the description does not declare, except headers
// that are about the transfer of any message.
func strict(more ...config.Option) []config.Option {
	return append([]config.Option{
		config.WithStrictMode(), config.WithFormatAssertions(),
		config.WithStrictIgnoredHeaders("Content-Type", "Content-Length", "Date"),
	}, more...)
}

var describe = sync.OnceValue(func() *description {
	document, err := libopenapi.NewDocument(api.Spec())
	if err != nil {
		panic(err)
	}
	model, err := document.BuildV3Model()
	if err != nil {
		panic(err)
	}
	d := &description{
		document: document,
		model:    &model.Model,
		full:     validator.NewValidatorFromV3Model(&model.Model, strict()...),
		bodyless: validator.NewValidatorFromV3Model(&model.Model, strict(config.WithoutResponseBodyValidation())...),
		schemas:  schema_validation.NewSchemaValidator(strict()...),
	}
	d.full.SetDocument(document)
	return d
})

// answer is an answer that agrees with the description.
type answer struct {
	*http.Response
	body []byte // decompressed
}

// object decodes the body.
func (a *answer) object(t testing.TB) map[string]any {
	t.Helper()
	var out map[string]any
	require.NoError(t, json.Unmarshal(a.body, &out), "%s", a.body)
	return out
}

// exchange sends a request to h and fails the test if the description does not
// have the answer: its status, each of its headers, its whole body.
func exchange(t testing.TB, h http.Handler, r *http.Request) *answer {
	t.Helper()
	recorder := httptest.NewRecorder()
	h.ServeHTTP(patient{recorder}, r)
	return check(t, r, recorder.Result())
}

// patient is a recorder that takes deadlines, as a connection does, and lets them
// pass.
type patient struct{ *httptest.ResponseRecorder }

func (patient) SetWriteDeadline(time.Time) error { return nil }

// get exchanges a GET of target. Headers come as name, value, name, value.
func get(t testing.TB, h http.Handler, target string, headers ...string) *answer {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return exchange(t, h, r)
}

// check holds an answer against the description.
func check(t testing.TB, r *http.Request, response *http.Response) *answer {
	t.Helper()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	if response.Header.Get("Content-Encoding") == "gzip" && len(body) > 0 {
		z, err := gzip.NewReader(bytes.NewReader(body))
		require.NoError(t, err)
		body, err = io.ReadAll(z)
		require.NoError(t, err)
	}
	a := &answer{response, body}
	if r.Method == http.MethodHead || response.StatusCode == http.StatusNotModified {
		require.Empty(t, body)
	}

	d := describe()
	var faults []*verrors.ValidationError
	switch problem := undescribedProblem(r, a); problem {
	case "":
		asGet := r.Clone(t.Context())
		asGet.Method = http.MethodGet
		if dir, ok := strings.CutSuffix(r.URL.Path, "/."); ok {
			asGet.URL = r.URL.ResolveReference(&url.URL{Path: dir + "/D"}) // the validator takes this ID for none
		}
		response.Body = io.NopCloser(bytes.NewReader(body))
		v := d.full
		if len(body) == 0 {
			v = d.bodyless
		}
		_, faults = v.ValidateHttpResponse(asGet, response)
	default: // of no operation: described among the components
		described := d.model.Components.Responses.GetOrZero(problem)
		require.NotNil(t, described)
		_, faults = responses.ValidateResponseHeaders(r, response, described.Headers, r.URL.Path, response.Status, strict()...)
		if r.Method != http.MethodHead {
			_, more := d.schemas.ValidateSchemaBytes(d.model.Components.Schemas.GetOrZero("Problem").Schema(), body)
			faults = append(faults, more...)
		}
	}
	response.Body = http.NoBody
	for _, f := range faults {
		t.Errorf("%s %s: %d: %s: %s %v", r.Method, r.URL, response.StatusCode, f.Message, f.Reason, f.SchemaValidationErrors)
	}
	if t.Failed() {
		t.Fatalf("the answer is not as described: %v %s", response.Header, body)
	}
	return a
}

// undescribedProblem names the described response of a problem that belongs to no
// operation, or "".
func undescribedProblem(r *http.Request, a *answer) string {
	switch {
	case a.StatusCode == http.StatusMethodNotAllowed:
		return "MethodNotAllowed"
	case a.StatusCode == http.StatusNotFound && !describedPath(r.URL.EscapedPath()):
		return "NoSuchPath"
	default:
		return ""
	}
}

// describedPath reports whether a path is one of the description.
func describedPath(path string) bool {
	for template := range describe().model.Paths.PathItems.KeysFromOldest() {
		pattern := regexp.MustCompile(`\{[^}]+\}`).ReplaceAllString(template, "[^/]+")
		if regexp.MustCompile("^" + pattern + "$").MatchString(path) {
			return true
		}
	}
	return false
}

// requireProblem checks that a is a problem of this type, with the title and the
// status that the description gives it.
func requireProblem(t testing.TB, a *answer, problem string) map[string]any {
	t.Helper()
	object := a.object(t)
	require.Equal(t, "/problems/"+problem, object["type"], "%s", a.body)
	for _, p := range describedProblems(t) {
		if p.Type == object["type"] {
			require.Equal(t, p.Title, object["title"])
			require.EqualValues(t, p.Status, object["status"])
			require.Equal(t, p.Status, a.StatusCode)
			require.Equal(t, "application/problem+json", a.Header.Get("Content-Type"))
			require.Equal(t, "urn:deliverystat:request:"+a.Header.Get("X-Request-ID"), object["instance"])
			require.Equal(t, p.Status == http.StatusServiceUnavailable, a.Header.Get("Retry-After") != "")
			require.Empty(t, a.Header.Get("ETag"))
			return object
		}
	}
	t.Fatalf("%s is not described", object["type"])
	return nil
}
