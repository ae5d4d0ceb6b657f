package processors

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"deliverystat/codecs"
)

// Metrics counts what the first stage did in this process. Everything is counted
// when the epoch is committed, so that a repeated epoch is counted once. Each
// owner counts its own partitions: sum over replicas.
type Metrics struct {
	events      [numResults]prometheus.Counter
	deadLetters map[codecs.Reason]prometheus.Counter
	transitions []prometheus.Counter // as epochStats.moves
	reopened    prometheus.Counter
	abandoned   prometheus.Counter
	lost        prometheus.Counter
	delay       prometheus.Histogram
}

// NoStatus is the label of transitions_total for what a delivery comes from
// with its first event, and goes to when it is forgotten. No status can have
// this name: theirs are in upper case.
const NoStatus = "none"

// delayBuckets reach from what a healthy pipeline takes to a lost day, in
// seconds.
func delayBuckets() []float64 {
	return []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 86400}
}

// NewMetrics registers the metrics with reg, which may be nil. Every series
// starts at 0, so that the first increase is one.
func NewMetrics(reg prometheus.Registerer, l *codecs.Lifecycle) *Metrics {
	f := promauto.With(reg)
	events := f.NewCounterVec(prometheus.CounterOpts{
		Name: "deliverystat_events_total",
		Help: "Records read from the input, by what became of them. Counted at commit; sum over replicas.",
	}, []string{"result"})
	letters := f.NewCounterVec(prometheus.CounterOpts{
		Name: "deliverystat_dead_letters_total",
		Help: "Records refused and written to the dead letter topic, by reason.",
	}, []string{"reason"})
	transitions := f.NewCounterVec(prometheus.CounterOpts{
		Name: "deliverystat_transitions_total",
		Help: "Deliveries that moved from one status to another; from none with their first event, to none when forgotten.",
	}, []string{"from", "to"})
	m := &Metrics{
		deadLetters: map[codecs.Reason]prometheus.Counter{},
		reopened: f.NewCounter(prometheus.CounterOpts{
			Name: "deliverystat_reopened_total",
			Help: "Closed deliveries that a newer event opened again.",
		}),
		abandoned: f.NewCounter(prometheus.CounterOpts{
			Name: "deliverystat_abandoned_total",
			Help: "Deliveries closed because nothing was heard of them for abandon-after.",
		}),
		lost: f.NewCounter(prometheus.CounterOpts{
			Name: "deliverystat_input_lost_total",
			Help: "Input offsets that were trimmed from the log before they were read.",
		}),
		delay: f.NewHistogram(prometheus.HistogramOpts{
			Name:                            "deliverystat_event_delay_seconds",
			Help:                            "Time from the event time of an applied event to the commit of its effect.",
			Buckets:                         delayBuckets(),
			NativeHistogramBucketFactor:     1.1,
			NativeHistogramMaxBucketNumber:  100,
			NativeHistogramMinResetDuration: time.Hour,
		}),
	}
	for r := range numResults {
		m.events[r] = events.WithLabelValues(r.String())
	}
	for _, r := range codecs.Reasons() {
		m.deadLetters[r] = letters.WithLabelValues(string(r))
	}
	names := []string{NoStatus}
	for s := range l.Len() {
		names = append(names, l.Name(codecs.Status(s)))
	}
	for _, from := range names {
		for _, to := range names {
			if from == to {
				m.transitions = append(m.transitions, nil)
				continue
			}
			m.transitions = append(m.transitions, transitions.WithLabelValues(from, to))
		}
	}
	return m
}

// add counts a committed epoch.
func (m *Metrics) add(s *epochStats, now time.Time) {
	for r, n := range s.results {
		m.events[r].Add(float64(n))
	}
	for reason, n := range s.reasons {
		m.deadLetters[reason].Add(float64(n))
	}
	for i, n := range s.moves {
		if n > 0 {
			m.transitions[i].Add(float64(n))
		}
	}
	m.reopened.Add(float64(s.reopened))
	m.abandoned.Add(float64(s.abandoned))
	m.lost.Add(float64(s.lost))
	for _, t := range s.applied {
		m.delay.Observe(now.Sub(time.Unix(0, t)).Seconds())
	}
}

// noStatus stands for no row in moves.
const noStatus = -1

// epochStats is what an epoch did, to be counted if it is committed.
type epochStats struct {
	statuses  int
	abandon   codecs.Status
	results   [numResults]int64
	reasons   map[codecs.Reason]int64
	moves     []int64 // (from+1) * (statuses+1) + to + 1
	reopened  int64
	abandoned int64
	lost      int64
	applied   []int64 // event times
}

func newEpochStats(l *codecs.Lifecycle) epochStats {
	n := l.Len()
	return epochStats{
		statuses: n,
		abandon:  l.Abandoned(),
		reasons:  map[codecs.Reason]int64{},
		moves:    make([]int64, (n+1)*(n+1)),
	}
}

func (s *epochStats) reset() {
	clear(s.reasons)
	clear(s.moves)
	*s = epochStats{statuses: s.statuses, abandon: s.abandon, reasons: s.reasons, moves: s.moves, applied: s.applied[:0]}
}

func (s *epochStats) count(v Verdict) {
	s.results[v.Result]++
	if v.Reason != "" {
		s.reasons[v.Reason]++
	}
}

// moved counts a transition to another status.
func (s *epochStats) moved(from int, to codecs.Status, wasClosed, closed bool) {
	s.moves[(from+1)*(s.statuses+1)+int(to)+1]++
	if to == s.abandon {
		s.abandoned++
	}
	if wasClosed && !closed {
		s.reopened++
	}
}

// forgotten counts the end of a row.
func (s *epochStats) forgotten(status codecs.Status) {
	s.moves[(int(status)+1)*(s.statuses+1)]++
}
