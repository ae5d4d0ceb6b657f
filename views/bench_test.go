package views_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/processors/exactlyonce"
)

// BenchmarkLiveIndex measures the index of a million live rows in eight
// partitions, 20 regions and seven statuses: what a row takes, a change of one,
// and a list of 50 in the middle of many.
func BenchmarkLiveIndex(b *testing.B) {
	const rows, partitions, batch = 1_000_000, 8, 1000
	table := newFakeTable(partitions)
	table.recovered.Store(true)
	deliveries := listed(b, table)
	lifecycle := codecs.BuiltinLifecycle()
	row := func(i, since int) modelled {
		return modelled{
			id: fmt.Sprintf("D-20261130-%06d", i), region: fmt.Sprintf("region-%02d", i%20), order: fmt.Sprintf("O-%06d", i/2),
			status: codecs.Status((i/partitions + since) % 7), since: epoch + int64(since),
		}
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for start := 0; start < rows; start += batch * partitions {
		for p := range partitions {
			var changes []exactlyonce.Change
			for i := start + p; i < min(start+batch*partitions, rows); i += partitions {
				changes = append(changes, row(i, i).change())
			}
			table.sink.Applied(int32(p), append(changes, progress(lifeA, int64(start), epoch)))
		}
	}
	perRow := float64(heap()-before) / rows
	for i := range rows { // what the lists read
		m := row(i, i)
		table.rows[i%partitions][m.id] = m.change().Value
	}
	for p := range partitions {
		last := progress(lifeA, rows, epoch)
		table.sink.Applied(int32(p), []exactlyonce.Change{last})
		table.rows[p][last.Key] = last.Value
	}

	status := codecs.Status(3)
	for name, q := range map[string]codecs.LiveQuery{
		"list/all":               {Limit: 50},
		"list/status":            {Status: &status, Limit: 50},
		"list/region,older_than": {Dimension: "region", Value: "region-07", OldestFirst: true, Before: epoch + rows/2, Limit: 50},
		"list/status,region,500": {Status: &status, Dimension: "region", Value: "region-07", Limit: 500},
		"list/older_than,after":  {OldestFirst: true, Before: epoch + rows, Limit: 50, After: &codecs.LiveKey{Since: epoch + rows/2}},
		"list/order":             {OrderID: "O-000123", Limit: 50},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				page, ready := deliveries.List(b.Context(), &q)
				require.True(b, ready)
				require.NotEmpty(b, page.Deliveries)
			}
		})
	}
	b.Run("stuck", func(b *testing.B) {
		after := map[codecs.Status]time.Duration{}
		for i := range lifecycle.Len() {
			after[codecs.Status(i)] = time.Minute
		}
		for b.Loop() {
			_, ready := deliveries.Stuck(time.Unix(0, epoch+rows/2).Add(time.Minute), after)
			require.True(b, ready)
		}
	})
	b.Run("change", func(b *testing.B) {
		i := 0
		for b.Loop() {
			m := row(i%rows, i+1)
			table.sink.Applied(int32(i%partitions), []exactlyonce.Change{m.change()})
			i += 7919
		}
		b.ReportMetric(perRow, "heap-B/row")
	})
}
