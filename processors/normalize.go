package processors

import (
	"errors"
	"log/slog"
	"strconv"
	"time"
	"unsafe"

	"github.com/lovoo/goka"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"deliverystat/codecs"
	"deliverystat/processors/exactlyonce"
)

// The headers of a republished event say where it came from. Dead letters of
// later stages keep them.
const (
	HeaderSourceTopic     = "deliverystat.source.topic"
	HeaderSourcePartition = "deliverystat.source.partition"
	HeaderSourceOffset    = "deliverystat.source.offset"
)

// NormalizeConfig describes the republishing of one source in one process.
type NormalizeConfig struct {
	// Runtime says how to run; Group, Stateless and NewState are set by
	// NewNormalize. Client.Hasher is the key hash of the input of the first
	// stage.
	Runtime  exactlyonce.Config
	Topics   Topics
	Source   string // topic
	Settings *Settings
	Decoder  *codecs.Decoder // of the source's records, whatever their keys
	Metrics  *SourceMetrics  // default: counted and not exported
	Now      func() time.Time
}

// NewNormalize prepares the republishing of one source: each record that is an
// event goes to the input of the first stage exactly once, as a native event
// whose key is the delivery ID. What is refused is a dead letter with the
// source's coordinates. Nothing is promised about the order of events of one
// delivery that come from different partitions or sources: event time decides.
func NewNormalize(cfg NormalizeConfig) (*exactlyonce.Runtime, error) {
	if cfg.Settings == nil || cfg.Decoder == nil || cfg.Source == "" {
		return nil, errors.New("normalize: Source, Settings and Decoder are required")
	}
	if cfg.Runtime.Client.Hasher == "" {
		cfg.Runtime.Client.Hasher = exactlyonce.Murmur2
	}
	if cfg.Runtime.Logger == nil {
		cfg.Runtime.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Metrics == nil {
		cfg.Metrics = NewSourceMetrics(nil, []string{cfg.Source})
	}
	if cfg.Now == nil {
		cfg.Now = time.Now //nolint:forbidigo // for the delay metric; no decision takes it
	}
	cfg.Runtime.Group = cfg.Topics.NormalizeGroup(cfg.Source)
	cfg.Runtime.Stateless = true
	cfg.Runtime.NewState = func(int32) exactlyonce.State { return newNormalizeState(&cfg) }
	return exactlyonce.New(cfg.Runtime, func(a *exactlyonce.Attempt) *goka.GroupGraph {
		raw := exactlyonce.RawCodec{}
		return goka.DefineGroup(goka.Group(cfg.Runtime.Group),
			exactlyonce.Consume(a, cfg.Source, (*normalizeState).consume),
			goka.Output(goka.Stream(cfg.Topics.Events), raw),
			goka.Output(goka.Stream(cfg.Topics.DeadLetters), raw),
		)
	})
}

// normalizeState is one partition of a source during one assignment.
type normalizeState struct {
	cfg     *NormalizeConfig
	log     *slog.Logger
	running *sourceEpoch
	frozen  *sourceEpoch // being committed, or nil
	headers []*exactlyonce.Header
	record  codecs.Record
	decoded codecs.Decoded
}

func newNormalizeState(cfg *NormalizeConfig) *normalizeState {
	n := &normalizeState{
		cfg: cfg, log: cfg.Runtime.Logger.With("group", cfg.Runtime.Group), running: &sourceEpoch{},
	}
	n.record.Headers = func() []codecs.Header { return decodedHeaders(n.headers) }
	return n
}

// Recover implements exactlyonce.State.
func (n *normalizeState) Recover(a *exactlyonce.Assignment) error {
	in := a.Inputs[0]
	n.running.lost = in.Lost
	if in.Lost > 0 {
		n.log.Error("source was trimmed before it was read", "topic", in.Topic, "partition", a.Partition,
			"records", in.Lost, "retention_end", in.LogStart)
	}
	return nil
}

// consume is the callback for each record of the source.
func (n *normalizeState) consume(r *exactlyonce.Record) error {
	n.headers = r.Headers
	n.record.Key = unsafe.String(unsafe.SliceData(r.Key), len(r.Key)) //nolint:gosec // as long as r, and not changed
	n.record.Value, n.record.Timestamp = r.Value, unixNano(r.Timestamp)
	n.cfg.Decoder.Decode(&n.record, &n.decoded)
	verdict := n.cfg.Settings.Admit(&n.decoded, n.record.Timestamp, false)
	n.running.consumed = true
	switch {
	case verdict.Reason != "":
		n.running.letters = append(n.running.letters, letterOf(r, verdict))
		n.running.refused++
	case verdict.Result == Ignored:
		n.running.ignored++
	default:
		n.running.events = append(n.running.events, sourceEvent{n.decoded.Event, r.Partition, r.Offset})
	}
	return nil
}

// Cut implements exactlyonce.State.
func (n *normalizeState) Cut() exactlyonce.Epoch {
	if !n.running.consumed {
		return nil
	}
	n.frozen, n.running = n.running, &sourceEpoch{}
	return normalizeEpoch{n.frozen, n.cfg}
}

// Committed implements exactlyonce.State.
func (n *normalizeState) Committed() {
	if n.frozen != nil {
		n.cfg.Metrics.add(n.cfg.Source, n.frozen, n.cfg.Now())
		n.frozen = nil
	}
}

// sourceEpoch is what one epoch read from one partition of a source.
type sourceEpoch struct {
	consumed bool // a record was read, of whatever kind
	events   []sourceEvent
	letters  []deadLetter
	ignored  int64
	refused  int64
	lost     int64
}

// sourceEvent is an event and where it was read.
type sourceEvent struct {
	codecs.Event
	partition int32
	offset    int64
}

// normalizeEpoch writes an epoch of a source.
type normalizeEpoch struct {
	*sourceEpoch
	cfg *NormalizeConfig
}

// Write implements exactlyonce.Epoch.
func (ep normalizeEpoch) Write(w *exactlyonce.Writer) error {
	topic := []byte(ep.cfg.Source)
	for i := range ep.events {
		e := &ep.events[i]
		w.Record(ep.cfg.Topics.Events, e.DeliveryID, codecs.EncodeNative(&e.Event, ep.cfg.Settings.Lifecycle), []exactlyonce.Header{
			{Key: []byte(HeaderSourceTopic), Value: topic},
			{Key: []byte(HeaderSourcePartition), Value: strconv.AppendInt(nil, int64(e.partition), 10)},
			{Key: []byte(HeaderSourceOffset), Value: strconv.AppendInt(nil, e.offset, 10)},
		})
	}
	for i := range ep.letters {
		key, value, headers := ep.letters[i].record()
		w.Record(ep.cfg.Topics.DeadLetters, key, value, headers)
	}
	return nil
}

// SourceMetrics counts what was republished in this process, by source. Each
// owner counts its own partitions: sum over replicas.
type SourceMetrics struct {
	records *prometheus.CounterVec
	lost    *prometheus.CounterVec
	delay   *prometheus.HistogramVec
}

// NewSourceMetrics registers the metrics with reg, which may be nil.
func NewSourceMetrics(reg prometheus.Registerer, sources []string) *SourceMetrics {
	f := promauto.With(reg)
	m := &SourceMetrics{
		records: f.NewCounterVec(prometheus.CounterOpts{
			Name: "deliverystat_source_events_total",
			Help: "Records read from a source, by what became of them. Counted at commit; sum over replicas.",
		}, []string{"source", "result"}),
		lost: f.NewCounterVec(prometheus.CounterOpts{
			Name: "deliverystat_source_lost_total",
			Help: "Offsets of a source that were trimmed from the log before they were read.",
		}, []string{"source"}),
		delay: f.NewHistogramVec(prometheus.HistogramOpts{
			Name:                            "deliverystat_source_delay_seconds",
			Help:                            "Time from the event time of a republished event to its commit, by source.",
			Buckets:                         delayBuckets(),
			NativeHistogramBucketFactor:     1.1,
			NativeHistogramMaxBucketNumber:  100,
			NativeHistogramMinResetDuration: time.Hour,
		}, []string{"source"}),
	}
	for _, s := range sources {
		for _, result := range []string{"republished", Ignored.String(), Refused.String()} {
			m.records.WithLabelValues(s, result)
		}
		m.lost.WithLabelValues(s)
		m.delay.WithLabelValues(s)
	}
	return m
}

// add counts a committed epoch.
func (m *SourceMetrics) add(source string, ep *sourceEpoch, now time.Time) {
	m.records.WithLabelValues(source, "republished").Add(float64(len(ep.events)))
	m.records.WithLabelValues(source, Ignored.String()).Add(float64(ep.ignored))
	m.records.WithLabelValues(source, Refused.String()).Add(float64(ep.refused))
	m.lost.WithLabelValues(source).Add(float64(ep.lost))
	delay := m.delay.WithLabelValues(source)
	for i := range ep.events {
		delay.Observe(now.Sub(time.Unix(0, ep.events[i].OccurredAt)).Seconds())
	}
}
