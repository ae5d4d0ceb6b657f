package api_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/api"
	"deliverystat/api/board"
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
		if status["terminal"] == true {
			require.Nil(t, status["stuck_after_seconds"], name)
		}
		if name == "DELIVERING" {
			require.EqualValues(t, 2400, status["stuck_after_seconds"])
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
	require.Equal(t, map[string]any{"name": "OPEN", "rank": 1., "terminal": false, "aliases": []any{}, "labels": map[string]any{}, "stuck_after_seconds": nil}, status)
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
	served := newWorld(t).api(t)
	a := get(t, served, "/?region=seoul&lang=ko&theme=dark")
	require.Equal(t, http.StatusOK, a.StatusCode)
	require.Equal(t, "text/html; charset=utf-8", a.Header.Get("Content-Type"))
	require.Regexp(t, `^default-src 'none'; connect-src 'self'; script-src 'self'; style-src 'self';`, a.Header.Get("Content-Security-Policy"))
	page := string(a.body)
	require.NotRegexp(t, `(?i)\s(style|on[a-z]+)=|<style|<script>`, page, "the policy forbids them")
	loaded := regexp.MustCompile(`(?:src|href)="(board/[^"]+)"`).FindAllStringSubmatch(page, -1)
	require.Len(t, loaded, 2)
	seen := map[string]bool{}
	// The page and all that it loads are served, and ask nobody else.
	for len(loaded) > 0 {
		path := loaded[0][1]
		loaded = loaded[1:]
		if seen[path] {
			continue
		}
		seen[path] = true
		f := get(t, served, "/"+path)
		require.Equal(t, http.StatusOK, f.StatusCode, path)
		want := "text/css; charset=utf-8"
		if strings.HasSuffix(path, ".js") {
			want = "text/javascript; charset=utf-8"
		}
		require.Equal(t, want, f.Header.Get("Content-Type"), path)
		require.NotRegexp(t, `https?://`, strings.ReplaceAll(string(f.body), "http://www.w3.org/2000/svg", ""), path)
		for _, imported := range regexp.MustCompile(`from "\./([^"]+)"`).FindAllStringSubmatch(string(f.body), -1) {
			loaded = append(loaded, []string{"", "board/" + imported[1]})
		}
	}
	require.NotRegexp(t, `https?://`, page)
	require.Len(t, seen, len(board.Files()), "nothing is served that the page does not load")
	require.Equal(t, http.StatusNotFound, get(t, served, "/board/index.html").StatusCode)
	require.Equal(t, http.StatusBadRequest, get(t, served, "/board/board.css?x=1").StatusCode)
}
