package views

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"deliverystat/codecs"
	"deliverystat/processors"
)

// otherValue is the label value that stands for the dimension values beyond the
// most frequent ones.
const otherValue = "_other"

// CollectorConfig configures a Collector.
type CollectorConfig struct {
	Replica    *Replica
	Lifecycle  *codecs.Lifecycle
	Dimensions []codecs.Attribute
	// StuckAfter is how long a delivery may be in a live status; those without
	// an entry have no stuck deliveries.
	StuckAfter map[codecs.Status]time.Duration
	// MaxStaleness is the age beyond which the global gauges are absent.
	MaxStaleness time.Duration
	// MaxValues is how many values of each dimension have series of their own;
	// default 100. The rest are summed up under "_other".
	MaxValues int
}

// Collector shows the views to Prometheus. Every scrape makes its series anew
// from one snapshot, so nothing stays behind that is no longer true.
type Collector struct {
	cfg CollectorConfig

	deliveries, closed, stuck, drift *prometheus.Desc
	byDimension                      []*prometheus.Desc // as CollectorConfig.Dimensions
	newestEvent, lag, values, open   *prometheus.Desc
	staleness, ready, audited        *prometheus.Desc
}

var _ prometheus.Collector = (*Collector)(nil)

// howToAggregate ends the help of each metric that every replica exports alike.
const howToAggregate = " Equal on every replica that serves: aggregate with max by (namespace, job, "

// NewCollector makes a Collector.
func NewCollector(cfg CollectorConfig) *Collector {
	if cfg.MaxValues <= 0 {
		cfg.MaxValues = 100
	}
	global := func(name, help string, labels ...string) *prometheus.Desc {
		by := strings.TrimSuffix(howToAggregate+strings.Join(labels, ", "), ", ")
		return prometheus.NewDesc("deliverystat_"+name, help+by+"), never sum.", labels, nil)
	}
	c := &Collector{
		cfg: cfg,
		deliveries: global("deliveries",
			"Live deliveries whose latest status this is.", "status"),
		closed: global("closed_deliveries",
			"Closed deliveries in this final status, for as long as they are remembered.", "status"),
		stuck: global("stuck_deliveries",
			"Live deliveries that have been in this status for longer than stuck-after, by the clock of the replica.", "status"),
		drift: global("count_drift",
			"Recounted minus counted deliveries in the last audit; anything but 0 is a fault.", "status"),
		newestEvent: global("newest_event_timestamp_seconds",
			"Event time of the newest event that the counts reflect."),
		lag: global("lag_records",
			"Offsets of the input between the counts and the last committed record.", "partition"),
		values: global("dimension_values",
			"Values of a dimension that are counted; metrics show the most frequent and sum up the rest as "+otherValue+".", "dimension"),
		open: global("open_transaction_records",
			"Offsets of the input that open transactions of producers hold back: high watermark minus last stable offset.", "partition"),
		staleness: prometheus.NewDesc("deliverystat_staleness_seconds",
			"Proved bound of the age of the counts: they reflect all that could be read that long ago. A value of this replica.", nil, nil),
		audited: prometheus.NewDesc("deliverystat_audit_last_success_timestamp_seconds",
			"When the last audit of the partition that was audited longest ago ended; absent before all were. A value of this replica.", nil, nil),
		ready: prometheus.NewDesc("deliverystat_ready",
			"1 once this replica has recovered, else 0. A value of this replica.", nil, nil),
	}
	for _, d := range cfg.Dimensions {
		c.byDimension = append(c.byDimension, global("deliveries_by_"+d.String(),
			"Live deliveries by "+d.String()+" and latest status; values beyond the most frequent are summed up as "+otherValue+".",
			d.String(), "status"))
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.deliveries, c.closed, c.stuck, c.drift, c.newestEvent, c.lag, c.values, c.open, c.staleness, c.ready, c.audited,
	} {
		ch <- d
	}
	for _, d := range c.byDimension {
		ch <- d
	}
}

// Collect implements prometheus.Collector. Global gauges are absent before the
// first recovery and beyond MaxStaleness.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	ready := 0.0
	if ok, _ := c.cfg.Replica.Ready(); ok {
		ready = 1
	}
	gauge(ch, c.ready, ready)

	counts := c.cfg.Replica.Counts.Snapshot()
	if counts == nil {
		return
	}
	_, staleness, known := c.cfg.Replica.Freshness.Of(counts.Position)
	if !known {
		return
	}
	gauge(ch, c.staleness, staleness.Seconds())
	if staleness > c.cfg.MaxStaleness {
		return
	}
	c.collectScope(ch, counts.All)
	if counts.Uniform {
		for i, dimension := range c.cfg.Dimensions {
			c.collectDimension(ch, c.byDimension[i], counts, dimension)
		}
	}
	if stuck, ok := c.cfg.Replica.Deliveries.Stuck(time.Now(), c.cfg.StuckAfter); ok {
		for i, n := range stuck {
			if status := codecs.Status(i); !c.cfg.Lifecycle.Terminal(status) {
				gauge(ch, c.stuck, float64(n), c.cfg.Lifecycle.Name(status))
			}
		}
	}
	if counts.Audited != codecs.None {
		gauge(ch, c.audited, time.Duration(counts.Audited).Seconds())
		for i := range c.cfg.Lifecycle.Len() {
			status := c.cfg.Lifecycle.Name(codecs.Status(i))
			gauge(ch, c.drift, float64(counts.Drift[status]), status)
		}
	}
	if counts.EventTime != codecs.None {
		gauge(ch, c.newestEvent, time.Duration(counts.EventTime).Seconds())
	}
	for partition, end := range c.cfg.Replica.Freshness.Ends(counts.Position) {
		label := strconv.Itoa(partition)
		if end.Lag >= 0 {
			gauge(ch, c.lag, float64(end.Lag), label)
		}
		gauge(ch, c.open, float64(end.Open), label)
	}
}

func gauge(ch chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

// collectScope shows the counts of all deliveries: every status of the
// lifecycle, and what is counted besides by a replica with another one.
func (c *Collector) collectScope(ch chan<- prometheus.Metric, scope codecs.ScopeCounts) {
	live, closed := c.zeros()
	for _, n := range scope.Counts {
		if _, ok := live[n.Status]; ok || n.Live != 0 {
			live[n.Status] = n.Live
		}
		if _, ok := closed[n.Status]; ok || n.Closed != 0 {
			closed[n.Status] = n.Closed
		}
	}
	for status, n := range live {
		gauge(ch, c.deliveries, float64(n), label(status))
	}
	for status, n := range closed {
		gauge(ch, c.closed, float64(n), label(status))
	}
}

// zeros returns a count of 0 for each live and each final status.
func (c *Collector) zeros() (live, closed map[string]int64) {
	live, closed = map[string]int64{}, map[string]int64{}
	for i := range c.cfg.Lifecycle.Len() {
		status := codecs.Status(i)
		if c.cfg.Lifecycle.Terminal(status) {
			closed[c.cfg.Lifecycle.Name(status)] = 0
		} else {
			live[c.cfg.Lifecycle.Name(status)] = 0
		}
	}
	return live, closed
}

// collectDimension shows the live counts of the most frequent values of a
// dimension, and the sum of the others.
func (c *Collector) collectDimension(ch chan<- prometheus.Metric, desc *prometheus.Desc, counts *codecs.Counts, dimension codecs.Attribute) {
	type group struct {
		value string
		live  int64
		codecs.ScopeCounts
	}
	var groups []group
	for scope, of := range counts.Groups {
		if value, ok := strings.CutPrefix(scope, processors.DimensionScope(dimension, "")); ok {
			g := group{value: value, ScopeCounts: of}
			for _, n := range of.Counts {
				g.live += n.Live
			}
			groups = append(groups, g)
		}
	}
	gauge(ch, c.values, float64(len(groups)), dimension.String())
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(b.live, a.live), cmp.Compare(a.value, b.value))
	})
	// Values that come to the same label, such as one that is spelled like the
	// rest, are added up: one series twice would spoil the whole scrape.
	series := map[string]map[string]int64{}
	for i, g := range groups {
		value := otherValue
		if i < c.cfg.MaxValues {
			value = label(g.value)
		}
		if series[value] == nil {
			series[value], _ = c.zeros()
		}
		for _, n := range g.Counts {
			if _, ok := series[value][n.Status]; ok || n.Live != 0 {
				series[value][n.Status] += n.Live
			}
		}
	}
	for value, live := range series {
		for status, n := range live {
			gauge(ch, desc, float64(n), value, label(status))
		}
	}
}

// label makes s a valid label value. Values come from records, and one that is
// no UTF-8 would spoil the whole scrape.
func label(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
