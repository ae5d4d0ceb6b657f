package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/e2e/process"
)

func TestReport(t *testing.T) {
	r := &results{
		events: 1000, deliveries: 100, rate: 50, took: 90 * time.Second,
		floor:      []measurement{{time.Second, 2 * time.Second, 3 << 20}, {2 * time.Second, 4 * time.Second, 5 << 20}, {time.Second, time.Second, 1 << 20}},
		processors: []measurement{{2 * time.Second, 4 * time.Second, 1 << 20}, {2 * time.Second, 4 * time.Second, 1 << 20}, {4 * time.Second, 4 * time.Second, 1 << 20}},
		both:       []measurement{{2 * time.Second, 8 * time.Second, 1 << 20}, {2 * time.Second, 8 * time.Second, 1 << 20}, {4 * time.Second, 8 * time.Second, 1 << 20}},
		latencies:  []time.Duration{4 * time.Millisecond, 1 * time.Millisecond, 3 * time.Millisecond, 2 * time.Millisecond},
		restarts:   []time.Duration{time.Second, 2 * time.Second},
		rows:       7,
		cold:       []takeover{{Wall: 9 * time.Second, Usage: process.Usage{CPU: 4 * time.Second, PeakRSS: 6 << 20}, Disk: 8 << 20}},
		warm:       []takeover{{Wall: 2 * time.Second, Usage: process.Usage{CPU: 5 * time.Second, PeakRSS: 7 << 20}, Disk: 9 << 20}},
	}

	text := r.markdown()

	require.Contains(t, text, "| bare sarama consumer, encoding/json | 1000 (500–1000) | 500 (250–1000) | 1.00 (1.00–2.00) | 2.00 (1.00–4.00) | 3 (1–5) | 1.00 (1.00–1.00) |")
	require.Contains(t, text, "| deliverystat, processors | 500 (250–500) | 250 (250–250) | 2.00 (2.00–4.00) | 4.00 (4.00–4.00) | 1 (1–1) | 0.50 (0.25–1.00) |")
	require.Contains(t, text, "p50 2 ms, p90 4 ms, p99 4 ms, greatest 4 ms")
	require.Contains(t, text, "1.50 (1.00–2.00) s")
	require.Contains(t, text, "7 rows in 8 partitions, without a standby: from the kill until every partition has moved on 9.00 s. "+
		"Before, the other had used 4.0 s of CPU, 6 MiB of memory and 8 MiB of disk.")
	require.Contains(t, text, "with one: from the kill until every partition has moved on 2.00 s. Before, the other had used 5.0 s of CPU, 7 MiB of memory and 9 MiB of disk.")
}

func TestQuantileOfManyValues(t *testing.T) {
	values := make([]time.Duration, 1000)
	for i := range values {
		values[i] = time.Duration(i + 1)
	}
	require.Equal(t, time.Duration(500), quantile(values, 0.5))
	require.Equal(t, time.Duration(990), quantile(values, 0.99))
	require.Equal(t, time.Duration(1000), quantile(values, 1))
}
