package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"deliverystat/api"
)

// describedProblem is an entry of x-problem-types.
type describedProblem struct {
	Type    string `yaml:"type"`
	Title   string `yaml:"title"`
	Status  int    `yaml:"status"`
	Meaning string `yaml:"meaning"`
}

func describedProblems(t testing.TB) []describedProblem {
	t.Helper()
	node := describe().model.Extensions.GetOrZero("x-problem-types")
	require.NotNil(t, node)
	var problems []describedProblem
	require.NoError(t, node.Decode(&problems))
	return problems
}

func TestDescriptionIsValid(t *testing.T) {
	t.Parallel()
	ok, faults := describe().full.ValidateDocument()
	for _, f := range faults {
		t.Errorf("%s: %s %v", f.Message, f.Reason, f.SchemaValidationErrors)
	}
	require.True(t, ok)
}

func TestEveryRouteIsDescribedAndTheReverse(t *testing.T) {
	t.Parallel()
	var routes, described []string
	err := chi.Walk(newWorld(t).api(t).Routes(), func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		routes = append(routes, method+" "+pattern)
		return nil
	})
	require.NoError(t, err)
	ids := map[string]string{}
	for path, item := range describe().model.Paths.PathItems.FromOldest() {
		for method, operation := range item.GetOperations().FromOldest() {
			route := strings.ToUpper(method) + " " + path
			described = append(described, route)
			require.NotEmpty(t, operation.OperationId, route)
			require.Empty(t, ids[operation.OperationId], "operationId of two operations")
			ids[operation.OperationId] = route
		}
	}
	require.ElementsMatch(t, routes, described)
}

func TestEveryProblemTypeIsDescribedAndTheReverse(t *testing.T) {
	t.Parallel()
	var code, described []api.ProblemType
	code = api.ProblemTypes()
	for _, p := range describedProblems(t) {
		require.NotEmpty(t, p.Meaning)
		described = append(described, api.ProblemType{p.Type, p.Title, p.Status, p.Status == http.StatusServiceUnavailable})
	}
	require.ElementsMatch(t, described, code)
}

// An example that its own schema refuses teaches what is wrong.
func TestExamplesAgreeWithTheirSchemas(t *testing.T) {
	t.Parallel()
	d, n := describe(), 0
	for path, item := range d.model.Paths.PathItems.FromOldest() {
		for _, operation := range item.GetOperations().FromOldest() {
			for code, response := range operation.Responses.Codes.FromOldest() {
				for _, media := range response.Content.FromOldest() {
					var examples []any
					if media.Example != nil {
						var v any
						require.NoError(t, media.Example.Decode(&v))
						examples = append(examples, v)
					}
					for _, e := range media.Examples.FromOldest() {
						var v any
						require.NoError(t, e.Value.Decode(&v))
						examples = append(examples, v)
					}
					for _, v := range examples {
						n++
						body, err := json.Marshal(v)
						require.NoError(t, err)
						_, faults := d.schemas.ValidateSchemaBytes(media.Schema.Schema(), body)
						for _, f := range faults {
							t.Errorf("%s %s: %s: %s %v", path, code, f.Message, f.Reason, f.SchemaValidationErrors)
						}
					}
				}
			}
		}
	}
	require.Greater(t, n, 20)
}
