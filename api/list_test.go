package api_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/api"
	"deliverystat/codecs"
)

// listWorld has so many live deliveries.
func listWorld(t testing.TB, n int) *world {
	t.Helper()
	w := newWorld(t)
	var rows []codecs.Delivery
	for i := range n {
		rows = append(rows, rowOf(fmt.Sprintf("D-%03d 배달", i)))
	}
	w.deliveries.set(at(1042, 998, 17), rows...)
	return w
}

func TestListShowsRowsAsTheDeliveryDoes(t *testing.T) {
	t.Parallel()
	w := listWorld(t, 2)
	a := w.api(t)
	list := get(t, a, "/v1/deliveries").object(t)
	require.EqualValues(t, 2, list["total"])
	require.Nil(t, list["next_cursor"])
	require.Equal(t, "0:1042,1:998,2:17", list["as_of"].(map[string]any)["position"])
	rows := list["deliveries"].([]any)
	require.Len(t, rows, 2)
	for _, row := range rows {
		one := get(t, a, "/v1/deliveries/"+url.PathEscape(row.(map[string]any)["delivery_id"].(string))).object(t)
		delete(one, "as_of")
		require.Equal(t, one, row)
	}
}

func TestListAsksForWhatTheRequestSays(t *testing.T) {
	created, _ := codecs.BuiltinLifecycle().Lookup("CREATED")
	for query, want := range map[string]codecs.LiveQuery{
		"":                                    {Limit: 50},
		"?limit=500":                          {Limit: 500},
		"?status=CREATED&limit=1":             {Status: &created, Limit: 1},
		"?region=":                            {Dimension: "region", Limit: 50},
		"?service=%EB%B0%B0&order_id=O%2F1":   {Dimension: "service", Value: "배", OrderID: "O/1", Limit: 50},
		"?older_than=30m&region=seoul":        {Dimension: "region", Value: "seoul", OldestFirst: true, Before: -int64(30 * time.Minute), Limit: 50},
		"?older_than=0s":                      {OldestFirst: true, Limit: 50},
		"?older_than=2562047h&status=CREATED": {Status: &created, OldestFirst: true, Before: -int64(2562047 * time.Hour), Limit: 50},
	} {
		describe()
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			require.Equal(t, http.StatusOK, get(t, w.api(t), "/v1/deliveries"+query).StatusCode)
			got := *w.deliveries.asked
			if want.OldestFirst {
				got.Before -= time.Now().UnixNano()
			} else {
				got.Before = 0
			}
			require.Equal(t, want, got, query)
		})
	}
}

func TestPagesFollowEachOther(t *testing.T) {
	t.Parallel()
	w := listWorld(t, 7)
	query := "/v1/deliveries?limit=3&status=PICKED_UP&older_than=1m"
	var ids []any
	for cursor, pages := any(""), 1; ; pages++ {
		path := query
		if cursor != "" {
			path += "&cursor=" + cursor.(string)
		}
		// Each page is of another replica: nothing is remembered of the last one.
		list := get(t, w.api(t), path).object(t)
		_, first := list["total"]
		require.Equal(t, cursor == "", first, "the total is on the first page")
		for _, row := range list["deliveries"].([]any) {
			ids = append(ids, row.(map[string]any)["delivery_id"])
		}
		if cursor = list["next_cursor"]; cursor == nil {
			require.Equal(t, 3, pages)
			break
		}
	}
	require.Len(t, ids, 7)
	for i, id := range ids {
		require.Equal(t, fmt.Sprintf("D-%03d 배달", i), id)
	}
}

func TestACursorBelongsToItsQuestion(t *testing.T) {
	t.Parallel()
	w := listWorld(t, 3)
	a := w.api(t)
	const question = "/v1/deliveries?limit=1&status=PICKED_UP&region=seoul&order_id=O-77&older_than=60s"
	cursor := get(t, a, question).object(t)["next_cursor"].(string)
	for _, same := range []string{
		question, "/v1/deliveries?older_than=1m&limit=9&status=PICKED_UP&region=seoul&order_id=O-77&max_staleness=1h",
	} {
		require.Equal(t, http.StatusOK, get(t, a, same+"&cursor="+cursor).StatusCode, same)
		require.Equal(t, &codecs.LiveKey{Since: rowOf("").Since, ID: "D-000 배달", Partition: 2}, w.deliveries.asked.After)
	}
	other := []string{
		"/v1/deliveries?limit=1", "/v1/deliveries?status=PICKED_UP&region=seoul&order_id=O-77",
		"/v1/deliveries?status=PICKED_UP&region=seoul&order_id=O-77&older_than=2m",
		"/v1/deliveries?status=PICKED_UP&service=seoul&order_id=O-77&older_than=1m",
		"/v1/deliveries?status=PICKED_UP&region=busan&order_id=O-77&older_than=1m",
		"/v1/deliveries?status=PICKED_UP&region=seoul&order_id=O-7&older_than=1m",
		"/v1/deliveries?status=CREATED&region=seoul&order_id=O-77&older_than=1m",
		"/v1/deliveries?region=seoul&order_id=O-77&older_than=1m",
	}
	for _, path := range other {
		requireCursorFault(t, get(t, a, path+"&cursor="+cursor))
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	require.NoError(t, err)
	for i := range raw {
		requireCursorFault(t, get(t, a, question+"&cursor="+base64.RawURLEncoding.EncodeToString(raw[:i])))
	}
	for _, bad := range []string{"", "x", "%00", cursor + "=", cursor + "AAAA", "B" + cursor[1:], cursor + "&cursor=" + cursor} {
		requireProblem(t, get(t, a, question+"&cursor="+bad), "invalid-parameters")
	}
}

func requireCursorFault(t *testing.T, a *answer) {
	t.Helper()
	object := requireProblem(t, a, "invalid-parameters")
	require.Equal(t, "cursor", object["errors"].([]any)[0].(map[string]any)["parameter"])
}

// FuzzCursor: whatever comes as a cursor is a place or is refused.
func FuzzCursor(f *testing.F) {
	w := listWorld(f, 3)
	a := w.api(f)
	var page struct {
		Cursor string `json:"next_cursor"`
	}
	require.NoError(f, json.Unmarshal(get(f, a, "/v1/deliveries?limit=1").body, &page))
	f.Add(page.Cursor)
	f.Add("AQ")
	f.Fuzz(func(t *testing.T, cursor string) {
		got := get(t, a, "/v1/deliveries?cursor="+url.QueryEscape(cursor))
		if got.StatusCode == http.StatusOK {
			require.NotNil(t, w.deliveries.asked.After)
			return
		}
		requireProblem(t, got, "invalid-parameters")
	})
}

func TestListIsConditionalAndWaits(t *testing.T) {
	describe()
	synctest.Test(t, func(t *testing.T) {
		w := listWorld(t, 2)
		a := w.api(t)
		first := get(t, a, "/v1/deliveries")
		again := get(t, a, "/v1/deliveries", "If-None-Match", first.Header.Get("ETag"))
		require.Equal(t, http.StatusNotModified, again.StatusCode)
		require.Equal(t, "0.04", again.Header.Get("Deliverystat-Staleness-Seconds"))
		require.NotEqual(t, first.Header.Get("ETag"), get(t, a, "/v1/deliveries?limit=1").Header.Get("ETag"))

		requireProblem(t, get(t, a, "/v1/deliveries?min_position=2:18"), "position-not-reached")
		requireProblem(t, get(t, a, "/v1/deliveries?min_position=3:1"), "invalid-parameters")
		time.AfterFunc(time.Second, func() { w.deliveries.set(at(1042, 998, 18), rowOf("D-new")) })
		require.EqualValues(t, 3, get(t, a, "/v1/deliveries?min_position=2:18&wait=2s").object(t)["total"])
		w.freshness.set(time.Minute, true)
		requireProblem(t, get(t, a, "/v1/deliveries?max_staleness=30s"), "too-stale")
		w.deliveries.notReady = true
		requireProblem(t, get(t, a, "/v1/deliveries"), "recovering")
	})
}

// blockingDeliveries tells when a list is asked for, and answers when it may.
type blockingDeliveries struct {
	api.Deliveries

	entered, held chan struct{}
}

func (b *blockingDeliveries) List(ctx context.Context, q *codecs.LiveQuery) (codecs.LivePage, bool) {
	close(b.entered)
	<-b.held
	return b.Deliveries.List(ctx, q)
}

func TestListsDoNotKeepOutCounts(t *testing.T) {
	t.Parallel()
	w := listWorld(t, 1)
	b := &blockingDeliveries{w.deliveries, make(chan struct{}), make(chan struct{})}
	w.options.Deliveries, w.options.MaxInFlight = b, 1
	a := w.api(t)
	first := httptest.NewRecorder()
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.ServeHTTP(first, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/deliveries", nil))
	}()
	<-b.entered
	require.Equal(t, http.StatusOK, get(t, a, "/v1/counts").StatusCode)
	requireProblem(t, get(t, a, "/v1/deliveries"), "overloaded")
	close(b.held)
	<-done
	require.Equal(t, http.StatusOK, first.Code)
}
