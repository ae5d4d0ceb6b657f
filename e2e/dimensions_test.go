//go:build e2e

package e2e_test

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/e2e/kafka"
	"deliverystat/e2e/replica"
	"deliverystat/processors/market"
)

// 300,000 events counted by two dimensions, then ten thousand values of one of
// them: every value is exact, and the groups of each answer add up to its total.
func TestEveryGroupSeesTheTruth(t *testing.T) {
	d := install(t)
	r := d.serve("one", "--dimensions=region,service")
	d.simulate(load...).wait(t)
	d.requireGroups(r)

	const values = 10_000
	records := make([]kafka.Record, 0, values)
	for i := range values {
		id := fmt.Sprintf("V-%d", i)
		records = append(records, kafka.Record{
			Topic: d.events(), Partition: kafka.JavaPartition([]byte(id), partitions), Key: []byte(id),
			Value: fmt.Appendf(nil, `{"delivery_id":%q,"status":"ASSIGNED","occurred_at":%d,"region":"구역 %d"}`, id, start.UnixMilli(), i),
		})
	}
	d.produce(records...)
	d.requireGroups(r)
	one := d.countsAtEnd(r)
	got, err := r.Counts(t.Context(), "region="+url.QueryEscape("구역 4711"))
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"ASSIGNED": 1}, nonZero(got.Counts))
	require.Equal(t, one.AsOf.Position, got.AsOf.Position)

	m, err := r.Metrics(t.Context())
	require.NoError(t, err)
	series := m.By("deliverystat_deliveries_by_region", "region")
	shown := map[string]bool{}
	for labels := range series {
		value, _, _ := strings.Cut(labels, `",status="`)
		shown[value] = true
	}
	require.Len(t, shown, 101, "the number of label values is capped")
	require.Equal(t, one.Live, sum(series), "and no delivery is missing")
	require.Greater(t, m.By("deliverystat_dimension_values", "dimension")["region"], int64(values), "which an alert can see")
	d.mustRun([]string{"verify"})
}

// requireGroups compares every group that r answers at the end of the input
// with the reference model.
func (d *deployment) requireGroups(r *replica.Replica) {
	d.t.Helper()
	dimensions := []codecs.Attribute{codecs.Region, codecs.Service}
	w := d.world(dimensions...)
	total := d.countsAtEnd(r)
	live, _ := w.Counts("", w.End())
	require.Equal(d.t, nonZero(wide(live)), nonZero(total.Counts))
	for _, dimension := range dimensions {
		answer, err := r.Counts(d.t.Context(), "by="+dimension.String())
		require.NoError(d.t, err)
		require.Equal(d.t, total.AsOf.Position, answer.AsOf.Position)
		got := map[string]map[string]int64{}
		summed := map[string]int64{}
		for _, group := range answer.Groups {
			counts := map[string]int64{}
			for status, n := range asObject(d.t, group["counts"]) {
				counts["live "+status] = n
				summed["live "+status] += n
			}
			for status, n := range asObject(d.t, group["closed"]) {
				counts["closed "+status] = n
				summed["closed "+status] += n
			}
			value, ok := group[dimension.String()].(string)
			require.True(d.t, ok, "%v", group)
			got[value] = nonZero(counts)
		}
		require.Equal(d.t, modelGroups(w, dimension, slices.Collect(maps.Keys(got))), got)
		require.Equal(d.t, both(total.Counts, total.Closed), nonZero(summed), "the groups by %s add up", dimension)
	}
}

func asObject(t *testing.T, v any) map[string]int64 {
	t.Helper()
	object, ok := v.(map[string]any)
	require.True(t, ok, "%v", v)
	out := map[string]int64{}
	for name, n := range object {
		f, ok := n.(float64)
		require.True(t, ok, "%v", n)
		out[name] = int64(f)
	}
	return out
}

func both(live, closed map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for status, n := range live {
		out["live "+status] = n
	}
	for status, n := range closed {
		out["closed "+status] = n
	}
	return nonZero(out)
}

// modelGroups are the counts of the values of a dimension in the model.
func modelGroups(w *market.World, dimension codecs.Attribute, values []string) map[string]map[string]int64 {
	groups := map[string]map[string]int64{}
	for _, value := range values {
		live, closed := w.Counts(dimension.String()+"="+value, w.End())
		groups[value] = both(wide(live), wide(closed))
	}
	return groups
}
