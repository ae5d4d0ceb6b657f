package service

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"deliverystat/cmd/deliverystat/internal/config"
	"deliverystat/processors"
	"deliverystat/processors/exactlyonce"
)

// metrics registers what every replica exports.
func (s *Service) metrics() {
	s.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	f := promauto.With(s.registry)
	f.NewGaugeVec(prometheus.GaugeOpts{
		Name: "deliverystat_build_info",
		Help: "What binary this is; always 1.",
	}, []string{"version", "revision", "goversion"}).WithLabelValues(s.o.Build.Version, s.o.Build.Revision, s.o.Build.GoVersion).Set(1)
	f.NewGaugeVec(prometheus.GaugeOpts{
		Name: "deliverystat_replica_info",
		Help: "Which replica this is; always 1, from the start of the process. More than one for an instance_id are two processes with one name.",
	}, []string{"instance_id"}).WithLabelValues(s.o.Name()).Set(1)
	f.NewGaugeVec(prometheus.GaugeOpts{
		Name: "deliverystat_settings_info",
		Help: "Hash of the settings that decide what events mean; always 1. Replicas of one deployment must agree.",
	}, []string{"hash"}).WithLabelValues(fmt.Sprintf("%016x", s.settings.Hash())).Set(1)
	s.registry.MustRegister(&recovery{s: s, remaining: prometheus.NewDesc("deliverystat_recovery_remaining_records",
		"Changelog offsets left to read before this replica's partition works; 0 once it does. The group of a view is its table topic.",
		[]string{"group", "partition"}, nil), standby: prometheus.NewDesc("deliverystat_standby_remaining_records",
		"Changelog offsets left to read before this replica can take a partition over at once, of those there were when it began; 0 once it can. Absent without --standby.",
		[]string{"group", "partition"}, nil)})
	if !s.o.Has(config.RoleProcessors) {
		return
	}
	groups := []string{s.topics.DeliveryGroup, s.topics.CountsGroup}
	var sources []string
	for _, source := range s.o.SourceList() {
		sources = append(sources, source.Topic)
		groups = append(groups, s.topics.NormalizeGroup(source.Topic))
	}
	if len(sources) > 0 {
		s.republished = processors.NewSourceMetrics(s.registry, sources)
	}
	s.observer = newObserver(f, groups)
	s.counted = processors.NewMetrics(s.registry, s.settings.Lifecycle)
	if !s.o.Has(config.RoleAPI) { // else the views export it
		f.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "deliverystat_ready",
			Help: "1 once this replica has recovered, else 0. A value of this replica.",
		}, func() float64 {
			if s.worked() {
				return 1
			}
			return 0
		})
	}
}

// observer counts what the runtimes report.
type observer struct {
	rebalances   *prometheus.CounterVec
	attempts     *prometheus.CounterVec
	transactions *prometheus.CounterVec
	duration     prometheus.Histogram

	mu     sync.Mutex
	joined map[string]bool // groups that the present attempt has a session of
}

var _ exactlyonce.Observer = (*observer)(nil)

func newObserver(f promauto.Factory, groups []string) *observer {
	o := &observer{
		rebalances: f.NewCounterVec(prometheus.CounterOpts{
			Name: "deliverystat_rebalances_total",
			Help: "Group generations that this replica took part in.",
		}, []string{"group"}),
		attempts: f.NewCounterVec(prometheus.CounterOpts{
			Name: "deliverystat_attempts_total",
			Help: "Lives of a processor that a fault ended; another followed.",
		}, []string{"group", "reason"}),
		transactions: f.NewCounterVec(prometheus.CounterOpts{
			Name: "deliverystat_transactions_total",
			Help: "Kafka transactions, one per epoch, by how they ended.",
		}, []string{"group", "result"}),
		duration: f.NewHistogram(prometheus.HistogramOpts{
			Name:                            "deliverystat_transaction_duration_seconds",
			Help:                            "Time from the cut of an epoch to the end of its transaction.",
			Buckets:                         []float64{.002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
			NativeHistogramBucketFactor:     1.1,
			NativeHistogramMaxBucketNumber:  100,
			NativeHistogramMinResetDuration: time.Hour,
		}),
		joined: map[string]bool{},
	}
	for _, group := range groups {
		o.rebalances.WithLabelValues(group)
		for _, reason := range exactlyonce.Reasons() {
			o.attempts.WithLabelValues(group, reason)
		}
		for _, result := range []string{"committed", "failed"} {
			o.transactions.WithLabelValues(group, result)
		}
	}
	return o
}

// Rebalanced implements exactlyonce.Observer.
func (o *observer) Rebalanced(group string) {
	o.rebalances.WithLabelValues(group).Inc()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.joined[group] = true
}

// AttemptEnded implements exactlyonce.Observer.
func (o *observer) AttemptEnded(group, reason string) {
	o.attempts.WithLabelValues(group, reason).Inc()
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.joined, group)
}

// Transaction implements exactlyonce.Observer.
func (o *observer) Transaction(group, result string, took time.Duration) {
	o.transactions.WithLabelValues(group, result).Inc()
	o.duration.Observe(took.Seconds())
}

// hasJoined reports whether the present attempt has a session of group.
func (o *observer) hasJoined(group string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.joined[group]
}

// recovery shows how far the partitions and the views of this replica are.
type recovery struct {
	s                  *Service
	remaining, standby *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (r *recovery) Describe(ch chan<- *prometheus.Desc) {
	ch <- r.remaining
	ch <- r.standby
}

// Collect implements prometheus.Collector.
func (r *recovery) Collect(ch chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, n int64, group string, partition int) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n), group, strconv.Itoa(partition))
	}
	show := func(n int64, group string, partition int) { gauge(r.remaining, n, group, partition) }
	for group, runtime := range r.s.groups() {
		for _, p := range runtime.Status() {
			show(p.Remaining, group, int(p.Partition))
		}
		for _, p := range runtime.Standby() {
			if p.Remaining >= 0 { // else it is not known yet
				gauge(r.standby, p.Remaining, group, int(p.Partition))
			}
		}
	}
	if r.s.views == nil {
		return
	}
	for partition, n := range r.s.views.Deliveries.Remaining() {
		show(n, r.s.topics.DeliveryTable, partition)
	}
	for partition, n := range r.s.views.Counts.Remaining() {
		show(n, r.s.topics.CountsTable, partition)
	}
}
