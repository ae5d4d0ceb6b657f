//go:build e2e

package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/e2e/replica"
)

// listPage is what a list answers.
type listPage struct {
	Deliveries []struct {
		ID     string `json:"delivery_id"`
		Status string `json:"status"`
	} `json:"deliveries"`
	Total      int64   `json:"total"`
	NextCursor *string `json:"next_cursor"`
	AsOf       struct {
		Position string `json:"position"`
	} `json:"as_of"`
}

// At one position the lists have as many deliveries as the counts say, page by
// page from replicas in turn, one of which restarts in between.
func TestListsAgreeWithCounts(t *testing.T) {
	d := install(t)
	one, two := d.serve("one", "--dimensions=region"), d.serve("two", "--dimensions=region")
	waitReady(t, one, two)
	d.simulate("--events=30000", "--deliveries=6000", "--rate=0", "--seed=23", "--out-of-order=0.1").wait(t)
	counts := d.countsAtEnd(one)
	end := url.Values{"min_position": {counts.AsOf.Position}, "wait": {"30s"}}.Encode()
	require.NotZero(t, counts.Live)

	for status, want := range counts.Counts {
		listed := map[string]bool{}
		cursor := ""
		for n := 0; ; n++ {
			from := []*replica.Replica{one, two}[n%2]
			page := d.list(from, "status="+status+"&older_than=0s&limit=150&"+end+cursor)
			require.Equal(t, counts.AsOf.Position, page.AsOf.Position)
			if cursor == "" {
				require.Equal(t, want, page.Total, status)
			}
			for _, delivery := range page.Deliveries {
				require.Equal(t, status, delivery.Status)
				require.False(t, listed[delivery.ID], "%s twice", delivery.ID)
				listed[delivery.ID] = true
			}
			if page.NextCursor == nil {
				break
			}
			cursor = "&cursor=" + *page.NextCursor
		}
		require.Len(t, listed, int(want), status)
	}

	first := d.list(two, "limit=10")
	require.NoError(t, two.Kill())
	require.NoError(t, two.Start())
	waitReady(t, two)
	second := d.list(two, "limit=10&"+end+"&cursor="+*first.NextCursor)
	require.Greater(t, second.Deliveries[0].ID, first.Deliveries[9].ID)
}

// list asks for a page.
func (d *deployment) list(r *replica.Replica, query string) (page listPage) {
	d.t.Helper()
	answer, err := r.Get(d.t.Context(), "/v1/deliveries?"+query)
	require.NoError(d.t, err)
	require.Equal(d.t, http.StatusOK, answer.Status, "%s", answer.Body)
	require.NoError(d.t, json.Unmarshal(answer.Body, &page))
	return page
}
