package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/api"
	"deliverystat/codecs"
)

func TestStatuses(t *testing.T) {
	t.Parallel()
	object := get(t, newWorld(t).api(t), "/v1/statuses").object(t)
	require.Equal(t, codecs.BuiltinLifecycle().Version(), object["version"])
	var names []string
	for rank, s := range object["statuses"].([]any) {
		status := s.(map[string]any)
		require.EqualValues(t, rank, status["rank"])
		name := status["name"].(string)
		if status["terminal"] == true {
			name += "!"
		}
		names = append(names, name)
		require.NotEmpty(t, status["labels"].(map[string]any)["ko"], name)
		if name == "DELIVERING" {
			require.Equal(t, []any{"IN_TRANSIT"}, status["aliases"])
		}
	}
	require.Equal(t, "UNKNOWN CREATED ASSIGNED PICKUP_REQUESTED PICKED_UP DELIVERING RETURNING DELIVERED! CANCELLED! RETURNED! FAILED! ABANDONED!",
		strings.Join(names, " "))
}

func TestStatusesOfAProfile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lifecycle, err := codecs.NewLifecycle([]codecs.StatusInfo{{Name: "OPEN"}, {Name: "DONE", Terminal: true}})
	require.NoError(t, err)
	w.options.Lifecycle = lifecycle
	a := w.api(t)
	status := get(t, a, "/v1/statuses").object(t)["statuses"].([]any)[1].(map[string]any)
	require.Equal(t, map[string]any{"name": "OPEN", "rank": 1., "terminal": false, "aliases": []any{}, "labels": map[string]any{}}, status)
	require.Contains(t, string(get(t, a, "/v1/counts").body), `{"counts":{"UNKNOWN":0,"OPEN":0,"CREATED":3,"PICKED_UP":1},"live":4,"closed":{"DONE":0,"ABANDONED":0,"CANCELLED":1,"DELIVERED":10}`)
}

func TestDescriptionIsServed(t *testing.T) {
	t.Parallel()
	a := get(t, newWorld(t).api(t), "/openapi.yaml")
	require.Equal(t, "application/yaml", a.Header.Get("Content-Type"))
	require.Equal(t, string(api.Spec()), string(a.body))
}

func TestBoard(t *testing.T) {
	t.Parallel()
	a := get(t, newWorld(t).api(t), "/")
	require.Equal(t, http.StatusOK, a.StatusCode)
	require.Equal(t, "text/html; charset=utf-8", a.Header.Get("Content-Type"))
	page := string(a.body)
	// The page is one file and asks nobody else.
	require.NotRegexp(t, `(?i)(src|href)="(https?:)?//`, page)
	require.NotContains(t, page, "http://")
	require.NotContains(t, page, "https://")
	// The policy allows one script and one style and no attributes of them.
	require.Equal(t, 1, strings.Count(page, "<script"))
	require.Equal(t, 1, strings.Count(page, "<style"))
	require.NotRegexp(t, `(?i)\s(style|on[a-z]+)="`, page)
	require.Regexp(t, `script-src 'sha256-[A-Za-z0-9+/]{43}='; style-src 'sha256-[A-Za-z0-9+/]{43}='$`, a.Header.Get("Content-Security-Policy"))
}
