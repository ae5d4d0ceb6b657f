package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/bargauge"
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/gauge"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

type row struct {
	title  string
	panels []cog.Builder[dashboard.Panel]
}

// of names the install in each legend: there may be several.
const of = "{{namespace}}/{{job}} "

func rows() []row {
	type list = []cog.Builder[dashboard.Panel]
	deliveries := "max by (namespace, job, status) (deliverystat_deliveries{" + installs + "})"
	closed := "max by (namespace, job, status) (deliverystat_closed_deliveries{" + installs + "})"
	return []row{
		{"Deliveries", list{
			numbers("Live deliveries", "Live deliveries by their latest status. No value is unknown, which is not 0.", deliveries, of+"{{status}}"),
			gauges("Live deliveries, compared", "The same counts, each against the largest.", deliveries, of+"{{status}}"),
			numbers("Closed deliveries", "Closed deliveries by final status, for as long as they are remembered.", closed, of+"{{status}}"),
			bars("Stuck deliveries", "Live deliveries that have been in one status for longer than --stuck-after.",
				"max by (namespace, job, status) (deliverystat_stuck_deliveries{"+installs+"})", of+"{{status}}"),
			stacked("Live deliveries over time", "Gaps are times at which nobody knew.", units.Short, 24, deliveries, of+"{{status}}"),
		}},
		{"Flow", list{
			lines("Moves between statuses", "Deliveries that moved from one status to another, per second.", units.OpsPerSecond, 12,
				"sum by (namespace, job, from, to) (rate(deliverystat_transitions_total{"+replicas+"}[$__rate_interval])) > 0", of+"{{from}} → {{to}}"),
			stacked("Events by result", "Records read from the input, by what became of them, per second.", units.EventsPerSecond, 12,
				"sum by (namespace, job, result) (rate(deliverystat_events_total{"+replicas+"}[$__rate_interval]))", of+"{{result}}"),
			lines("Stuck over time", "A growing line is work that nobody does.", units.Short, 12,
				"max by (namespace, job, status) (deliverystat_stuck_deliveries{"+installs+"})", of+"{{status}}"),
			lines("Dead letters", "Records that were refused, by reason, per second.", units.EventsPerSecond, 12,
				"sum by (namespace, job, reason) (rate(deliverystat_dead_letters_total{"+replicas+"}[$__rate_interval]))", of+"{{reason}}"),
		}},
		{"Freshness", list{
			lines("Age of the counts", "Proved bound: the counts reflect all that could be read so long ago.", units.Seconds, 8,
				"max by (namespace, job, instance) (deliverystat_staleness_seconds{"+replicas+"})", of+"{{instance}}"),
			lines("Lag", "Offsets of the input between the counts and the last committed record.", units.Short, 8,
				"max by (namespace, job, partition) (deliverystat_lag_records{"+installs+"})", of+"partition {{partition}}"),
			lines("Delay of events", "From the time of an event to the commit of its effect; half and 99 of 100 are faster.", units.Seconds, 8,
				"histogram_quantile(0.5, sum by (namespace, job, le) (rate(deliverystat_event_delay_seconds_bucket{"+replicas+"}[$__rate_interval])))", of+"p50",
				"histogram_quantile(0.99, sum by (namespace, job, le) (rate(deliverystat_event_delay_seconds_bucket{"+replicas+"}[$__rate_interval])))", of+"p99"),
		}},
		{"Processors", list{
			lines("Ready", "1 once a replica has recovered.", units.Short, 8,
				"max by (namespace, job, instance) (deliverystat_ready{"+replicas+"})", of+"{{instance}}"),
			lines("Recovery", "Changelog records left to read.", units.Short, 8,
				"sum by (namespace, job, instance) (deliverystat_recovery_remaining_records{"+replicas+"})", of+"{{instance}}"),
			lines("Rebalances and ended attempts", "Generations joined, and lives of a processor that a fault ended, per second.", units.OpsPerSecond, 8,
				"sum by (namespace, job, group) (rate(deliverystat_rebalances_total{"+replicas+"}[$__rate_interval]))", of+"{{group}} rebalances",
				"sum by (namespace, job, group, reason) (rate(deliverystat_attempts_total{"+replicas+"}[$__rate_interval]))", of+"{{group}} {{reason}}"),
		}},
		{"Kafka", list{
			lines("Transactions", "One per epoch, by how they ended, per second.", units.OpsPerSecond, 8,
				"sum by (namespace, job, group, result) (rate(deliverystat_transactions_total{"+replicas+"}[$__rate_interval]))", of+"{{group}} {{result}}"),
			lines("Duration of transactions", "From the cut of an epoch to the end of its transaction; 99 of 100 are faster.", units.Seconds, 8,
				"histogram_quantile(0.99, sum by (namespace, job, le) (rate(deliverystat_transaction_duration_seconds_bucket{"+replicas+"}[$__rate_interval])))", of+"p99"),
			lines("Held back by open transactions", "Offsets of the input that open transactions of producers hold back.", units.Short, 8,
				"max by (namespace, job, partition) (deliverystat_open_transaction_records{"+installs+"})", of+"partition {{partition}}"),
		}},
		{"API", list{
			lines("Requests", "Answered requests by route and code, per second.", units.RequestsPerSecond, 12,
				"sum by (namespace, job, handler, code) (rate(deliverystat_http_request_duration_seconds_count{"+replicas+"}[$__rate_interval]))", of+"{{handler}} {{code}}"),
			lines("Duration of requests", "99 of 100 are faster.", units.Seconds, 12,
				"histogram_quantile(0.99, sum by (namespace, job, handler, le) (rate(deliverystat_http_request_duration_seconds_bucket{"+replicas+"}[$__rate_interval])))", of+"{{handler}}"),
		}},
		{"Runtime", list{
			lines("CPU", "Cores in use.", units.Short, 8,
				"sum by (namespace, job, instance) (rate(process_cpu_seconds_total{"+replicas+"}[$__rate_interval]))", of+"{{instance}}"),
			lines("Memory", "Resident memory.", units.BytesIEC, 8,
				"max by (namespace, job, instance) (process_resident_memory_bytes{"+replicas+"})", of+"{{instance}}"),
			lines("Goroutines", "A line that only grows is a leak.", units.Short, 8,
				"max by (namespace, job, instance) (go_goroutines{"+replicas+"})", of+"{{instance}}"),
		}},
	}
}

func query(ref, expr, legend string) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().RefId(ref).Expr(expr).LegendFormat(legend).Datasource(source())
}

// last takes the value that is now; one that is absent stays so.
func last() *common.ReduceDataOptionsBuilder {
	return common.NewReduceDataOptionsBuilder().Calcs([]string{"last"})
}

func numbers(title, description, expr, legend string) cog.Builder[dashboard.Panel] {
	return stat.NewPanelBuilder().Title(title).Description(description).Datasource(source()).Unit(units.Short).Decimals(0).
		Span(12).Height(6).NoValue("unknown").ReduceOptions(last()).WithTarget(query("A", expr, legend).Instant())
}

func gauges(title, description, expr, legend string) cog.Builder[dashboard.Panel] {
	return gauge.NewPanelBuilder().Title(title).Description(description).Datasource(source()).Unit(units.Short).Decimals(0).Min(0).
		Span(12).Height(6).NoValue("unknown").ReduceOptions(last()).WithTarget(query("A", expr, legend).Instant())
}

func bars(title, description, expr, legend string) cog.Builder[dashboard.Panel] {
	return bargauge.NewPanelBuilder().Title(title).Description(description).Datasource(source()).Unit(units.Short).Decimals(0).Min(0).
		Span(12).Height(6).NoValue("unknown").ReduceOptions(last()).WithTarget(query("A", expr, legend).Instant())
}

func lines(title, description, unit string, width uint32, exprAndLegend ...string) *timeseries.PanelBuilder {
	p := timeseries.NewPanelBuilder().Title(title).Description(description).Datasource(source()).Unit(unit).
		Span(width).Height(8).Min(0)
	for i := 0; i+1 < len(exprAndLegend); i += 2 {
		p.WithTarget(query(string(rune('A'+i/2)), exprAndLegend[i], exprAndLegend[i+1]).Range())
	}
	return p
}

func stacked(title, description, unit string, width uint32, expr, legend string) *timeseries.PanelBuilder {
	return lines(title, description, unit, width, expr, legend).FillOpacity(40).
		Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal))
}
