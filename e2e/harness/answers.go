package harness

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/e2e/replica"
	"deliverystat/processors/processorstest"
)

// Settle implements [processorstest.Harness].
func (d *Deployment) Settle(t testing.TB) {
	t.Helper()
	end := d.end(t)
	for i, r := range d.replicas {
		eventually(t, "replica "+r.Name+" reflects the input", r, func() (string, bool) {
			counts, refusal := d.ask(t, i, atLeast(end, time.Second))
			if counts == nil {
				return refusal, false
			}
			next := d.position(t, counts.AsOf)
			return fmt.Sprintf("%+v, the end is %v", counts.AsOf, end), slices.Equal(next, end) && counts.AsOf.LagRecords == 0
		})
	}
}

// atLeast asks for an answer that reflects a position.
func atLeast(position []int64, wait time.Duration) url.Values {
	var parts []string
	for p, next := range position {
		if next > 0 {
			parts = append(parts, fmt.Sprintf("%d:%d", p, next))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return url.Values{"min_position": {strings.Join(parts, ",")}, "wait": {wait.String()}}
}

// Counts implements [processorstest.Harness].
func (d *Deployment) Counts(t testing.TB, i int, scope string) (processorstest.Reading, bool) {
	t.Helper()
	var query url.Values
	if scope != "" {
		dimension, value, _ := strings.Cut(scope, "=")
		query = url.Values{dimension: {value}}
	}
	counts, _ := d.ask(t, i, query)
	if counts == nil {
		return processorstest.Reading{}, false
	}
	reading := processorstest.Reading{Next: d.position(t, counts.AsOf), Live: narrow(counts.Counts), Closed: narrow(counts.Closed)}
	live := 0
	for _, n := range reading.Live {
		live += n
	}
	require.EqualValues(t, live, counts.Live, "the sum of the live counts of %q on replica %d", scope, i)
	return reading, true
}

// ask asks replica i for counts. It returns nil and why if there is no answer,
// as of a replica that was killed a moment ago, or a refusal.
func (d *Deployment) ask(t testing.TB, i int, query url.Values) (counts *replica.Counts, refusal string) {
	t.Helper()
	path := "/v1/counts"
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	a, err := d.replicas[i].Get(t.Context(), path)
	switch {
	case err != nil:
		return nil, err.Error()
	case a.Status == http.StatusServiceUnavailable:
		require.NotEmpty(t, a.Header.Get("Retry-After"), "%s", a.Body)
		return nil, string(a.Body)
	}
	require.Equal(t, http.StatusOK, a.Status, "%s of replica %d: %s", path, i, a.Body)
	counts = &replica.Counts{}
	require.NoError(t, json.Unmarshal(a.Body, counts), "%s", a.Body)
	return counts, ""
}

// position reads the position of an answer. A partition of which nothing is
// known is -1.
func (d *Deployment) position(t testing.TB, asOf replica.AsOf) []int64 {
	t.Helper()
	if asOf.Position == "" {
		return slices.Repeat([]int64{-1}, d.config.Partitions)
	}
	position, err := codecs.ParsePosition(asOf.Position, d.config.Partitions)
	require.NoError(t, err)
	return position.Next
}

func narrow(counts map[string]int64) map[string]int {
	out := make(map[string]int, len(counts))
	for status, n := range counts {
		out[status] = int(n)
	}
	return out
}

// Delivery implements [processorstest.Harness]. The answer reflects all of the
// input.
func (d *Deployment) Delivery(t testing.TB, i int, id string) (delivery codecs.Delivery, found bool) {
	t.Helper()
	path := "/v1/deliveries/" + url.PathEscape(id)
	if query := atLeast(d.end(t), time.Second); query != nil {
		path += "?" + query.Encode()
	}
	var answer replica.Answer
	eventually(t, fmt.Sprintf("replica %d answers about delivery %s", i, id), d.replicas[i], func() (string, bool) {
		var err error
		if answer, err = d.replicas[i].Get(t.Context(), path); err != nil {
			return err.Error(), false
		}
		return string(answer.Body), answer.Status != http.StatusServiceUnavailable
	})
	if answer.Status == http.StatusNotFound {
		require.Contains(t, string(answer.Body), "not live, and not closed within the window")
		return codecs.Delivery{}, false
	}
	require.Equal(t, http.StatusOK, answer.Status, "%s of replica %d: %s", path, i, answer.Body)
	var shown replica.Delivery
	require.NoError(t, json.Unmarshal(answer.Body, &shown), "%s", answer.Body)
	return d.delivery(t, &shown), true
}

// delivery is what the API shows of a delivery as the row that it shows.
func (d *Deployment) delivery(t testing.TB, shown *replica.Delivery) codecs.Delivery {
	t.Helper()
	row := codecs.Delivery{
		ID: shown.DeliveryID, Status: d.status(t, shown.Status), RawStatus: shown.RawStatus,
		OccurredAt: instant(t, shown.OccurredAt), Since: instant(t, shown.Since),
		Closed: shown.Closed, ClosedAt: codecs.None,
	}
	if shown.ClosedAt != nil {
		row.ClosedAt = instant(t, *shown.ClosedAt)
	}
	row.Attributes[codecs.OrderID], row.Attributes[codecs.StoreID] = shown.OrderID, shown.StoreID
	row.Attributes[codecs.Region], row.Attributes[codecs.Service] = shown.Dimensions["region"], shown.Dimensions["service"]
	for _, s := range shown.Timeline {
		row.Timeline = append(row.Timeline, codecs.StatusTimes{
			Status: d.status(t, s.Status), First: instant(t, s.First), Last: instant(t, s.Last),
		})
	}
	return row
}

func (d *Deployment) status(t testing.TB, name string) codecs.Status {
	t.Helper()
	status, ok := d.rules.Lifecycle.Lookup(name)
	require.True(t, ok, "status %q", name)
	return status
}

func instant(t testing.TB, text string) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(t, err)
	return at.UnixNano()
}
