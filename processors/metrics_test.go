package processors_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/processors"
)

func metered(t *testing.T, s *processors.Settings, records ...fakeRecord) (*firstStage, *prometheus.Registry) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	f := newFirstStage(t, s, records...)
	f.cfg.Metrics = processors.NewMetrics(reg, s.Lifecycle)
	f.assign()
	return f, reg
}

// value returns the value of one series of reg.
func value(t *testing.T, reg *prometheus.Registry, name string, labels ...string) float64 {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
	series:
		for _, m := range family.GetMetric() {
			if len(m.GetLabel()) != len(labels)/2 {
				continue
			}
			for i := 0; i < len(labels); i += 2 {
				for _, l := range m.GetLabel() {
					if l.GetName() == labels[i] && l.GetValue() != labels[i+1] {
						continue series
					}
				}
			}
			if h := m.GetHistogram(); h != nil {
				return float64(h.GetSampleCount())
			}
			return m.GetCounter().GetValue()
		}
	}
	require.Fail(t, "no series", "%s %v", name, labels)
	return 0
}

func TestEverySeriesStartsAtZero(t *testing.T) {
	_, reg := metered(t, shortSettings())
	for _, result := range []string{"applied", "duplicate", "stale", "ignored", "dead_letter"} {
		require.Zero(t, value(t, reg, "deliverystat_events_total", "result", result))
	}
	for _, reason := range codecs.Reasons() {
		require.Zero(t, value(t, reg, "deliverystat_dead_letters_total", "reason", string(reason)))
	}
	require.Zero(t, value(t, reg, "deliverystat_transitions_total", "from", "none", "to", "CREATED"))
	require.Zero(t, value(t, reg, "deliverystat_transitions_total", "from", "DELIVERED", "to", "none"))
	n := shortSettings().Lifecycle.Len() + 1
	count, err := testutil.GatherAndCount(reg, "deliverystat_transitions_total")
	require.NoError(t, err)
	require.Equal(t, n*(n-1), count)
	count, err = testutil.GatherAndCount(reg, "deliverystat_events_total")
	require.NoError(t, err)
	require.Equal(t, 5, count)
}

func TestMetricsOfAStory(t *testing.T) {
	f, reg := metered(t, shortSettings(),
		wire("a", "CREATED", 1), wire("a", "CREATED", 1), // applied, duplicate
		wire("a", "DELIVERED", 3), wire("a", "ASSIGNED", 2), // applied, stale
		wire("a", "RETURNED", 3.5),                           // applied: closed otherwise
		wire("a", "RETURNING", 4),                            // applied: re-opened
		fakeRecord{key: "a"}.arriving(4),                     // ignored
		fakeRecord{key: "a", value: []byte("{")}.arriving(4), // refused
		wire("b", "CREATED", 25),                             // applied: a is abandoned
		wire("b", "CREATED", 30), wire("a", "CREATED", 1),    // applied: a is forgotten, late
		wire("c", "CREATED", 30.5), wire("c", "CREATED", 30.5), // applied, duplicate
	)
	f.now = time.Unix(0, sec(31))
	f.drain()
	got := func(name string, labels ...string) float64 { return value(t, reg, "deliverystat_"+name, labels...) }
	require.Equal(t, 7.0, got("events_total", "result", "applied"))
	require.Equal(t, 2.0, got("events_total", "result", "duplicate"))
	require.Equal(t, 1.0, got("events_total", "result", "stale"))
	require.Equal(t, 1.0, got("events_total", "result", "ignored"))
	require.Equal(t, 2.0, got("events_total", "result", "dead_letter"))
	require.Equal(t, 1.0, got("dead_letters_total", "reason", "unreadable"))
	require.Equal(t, 1.0, got("dead_letters_total", "reason", "late"))
	require.Equal(t, 3.0, got("transitions_total", "from", "none", "to", "CREATED"))
	require.Equal(t, 1.0, got("transitions_total", "from", "CREATED", "to", "DELIVERED"))
	require.Equal(t, 1.0, got("transitions_total", "from", "RETURNED", "to", "RETURNING"))
	require.Equal(t, 1.0, got("transitions_total", "from", "RETURNING", "to", "ABANDONED"))
	require.Equal(t, 1.0, got("transitions_total", "from", "ABANDONED", "to", "none"))
	require.Equal(t, 1.0, got("reopened_total"))
	require.Equal(t, 1.0, got("abandoned_total"))
	require.Equal(t, 7.0, got("event_delay_seconds"))
}

func TestAnEpochIsCountedWhenItIsCommitted(t *testing.T) {
	f, reg := metered(t, eternalSettings(), wire("a", "CREATED", 1), wire("b", "CREATED", 1), wire("b", "CREATED", 1),
		wire("c", "CREATED", 1), fakeRecord{key: "c", value: []byte("{")}.arriving(1), wire("d", "CREATED", 1))
	results := func() (counted [3]float64) {
		for i, result := range []string{"applied", "duplicate", "dead_letter"} {
			counted[i] = value(t, reg, "deliverystat_events_total", "result", result)
		}
		require.Equal(t, counted[0], value(t, reg, "deliverystat_transitions_total", "from", "none", "to", "CREATED"))
		require.Equal(t, counted[0], value(t, reg, "deliverystat_event_delay_seconds"))
		require.Equal(t, counted[2], value(t, reg, "deliverystat_dead_letters_total", "reason", "unreadable"))
		return counted
	}
	f.consume(2)
	f.cut()
	require.Equal(t, [3]float64{0, 0, 0}, results())
	f.crash()
	for i, want := range [][3]float64{{1, 0, 0}, {2, 0, 0}, {2, 1, 0}, {3, 1, 0}, {3, 1, 1}, {4, 1, 1}} {
		f.step(1)
		require.Equal(t, want, results(), "after record %d", i)
	}
}

func TestLostInputIsCountedOnce(t *testing.T) {
	f, reg := metered(t, eternalSettings(), wire("a", "CREATED", 1), wire("b", "CREATED", 1), wire("c", "CREATED", 1))
	f.step(1)
	f.input.trim(3)
	f.assign()
	require.Zero(t, value(t, reg, "deliverystat_input_lost_total"))
	f.crash()
	f.step(0)
	f.crash()
	f.step(0)
	require.Equal(t, 2.0, value(t, reg, "deliverystat_input_lost_total"))
}

func TestMetricsAreNamedWell(t *testing.T) {
	_, reg := metered(t, shortSettings())
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, problems)
}
