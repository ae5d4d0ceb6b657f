package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// results are the measurements of one bench.
type results struct {
	events, deliveries, rate, rows int

	floor, processors, both []measurement
	latencies               []time.Duration
	restarts                []time.Duration
	cold, warm              []takeover // without a standby, and with one
	took                    time.Duration
}

// markdown writes the report.
func (r *results) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Machine: %d cores, %s, %s, Kafka on the same machine. Bench took %s.\n", runtime.NumCPU(), cpuModel(), runtime.Version(), r.took.Round(time.Second))
	if len(r.floor) > 0 {
		fmt.Fprintf(&b, "\n%d events of %d deliveries, 8 partitions; median (least–greatest) of %d rounds:\n\n", r.events, r.deliveries, len(r.floor))
		b.WriteString("| | events/s | events per CPU-second | wall s | CPU s | peak RSS MiB | of the floor's events per CPU-second |\n|---|---|---|---|---|---|---|\n")
		r.line(&b, "bare sarama consumer, encoding/json", r.floor)
		r.line(&b, "deliverystat, processors", r.processors)
		r.line(&b, "deliverystat, both roles", r.both)
	}
	if len(r.latencies) > 0 {
		l := slices.Sorted(slices.Values(r.latencies))
		fmt.Fprintf(&b, "\nEvent → `/v1/counts` at %d events/s, %d probes: p50 %d ms, p90 %d ms, p99 %d ms, greatest %d ms.\n", r.rate, len(l),
			quantile(l, 0.5).Milliseconds(), quantile(l, 0.9).Milliseconds(), quantile(l, 0.99).Milliseconds(), l[len(l)-1].Milliseconds())
	}
	if len(r.restarts) > 0 {
		fmt.Fprintf(&b, "\nKill -9 at %d events/s, same disk: from the start of the process to an answer at the end of the input %s s.\n", r.rate,
			spread("%.2f", each(r.restarts, time.Duration.Seconds)))
	}
	for _, t := range []struct {
		name string
		runs []takeover
	}{{"without a standby", r.cold}, {"with one", r.warm}} {
		if len(t.runs) > 0 {
			fmt.Fprintf(&b, "\nOne of two replicas killed and taken out by `leave`, %d rows in 8 partitions, %s: from the kill until every partition has "+
				"moved on %s s. Before, the other had used %s s of CPU, %s MiB of memory and %s MiB of disk.\n", r.rows, t.name,
				spread("%.2f", each(t.runs, func(t takeover) float64 { return t.Wall.Seconds() })),
				spread("%.1f", each(t.runs, func(t takeover) float64 { return t.Usage.CPU.Seconds() })),
				spread("%.0f", each(t.runs, func(t takeover) float64 { return float64(t.Usage.PeakRSS) / (1 << 20) })),
				spread("%.0f", each(t.runs, func(t takeover) float64 { return float64(t.Disk) / (1 << 20) })))
		}
	}
	return b.String()
}

func (r *results) line(b *strings.Builder, name string, runs []measurement) {
	ratios := make([]float64, len(runs))
	for i := range runs {
		ratios[i] = r.floor[i].CPU.Seconds() / runs[i].CPU.Seconds()
	}
	fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s |\n", name,
		spread("%.0f", each(runs, func(x measurement) float64 { return float64(r.events) / x.Wall.Seconds() })),
		spread("%.0f", each(runs, func(x measurement) float64 { return float64(r.events) / x.CPU.Seconds() })),
		spread("%.2f", each(runs, func(x measurement) float64 { return x.Wall.Seconds() })),
		spread("%.2f", each(runs, func(x measurement) float64 { return x.CPU.Seconds() })),
		spread("%.0f", each(runs, func(x measurement) float64 { return float64(x.PeakRSS) / (1 << 20) })),
		spread("%.2f", ratios))
}

func each[T any](in []T, f func(T) float64) []float64 {
	out := make([]float64, len(in))
	for i, x := range in {
		out[i] = f(x)
	}
	return out
}

// spread writes the median of values, with the least and the greatest of
// several.
func spread(format string, values []float64) string {
	v := slices.Sorted(slices.Values(values))
	median := fmt.Sprintf(format, (v[(len(v)-1)/2]+v[len(v)/2])/2)
	if len(v) == 1 {
		return median
	}
	return fmt.Sprintf("%s ("+format+"–"+format+")", median, v[0], v[len(v)-1])
}

// quantile returns the least of sorted that q of them do not exceed.
func quantile(sorted []time.Duration, q float64) time.Duration {
	i := int(q*float64(len(sorted))+0.9999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

func cpuModel() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown CPU"
	}
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown CPU"
}
