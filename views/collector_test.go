package views_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/processors/exactlyonce"
	"deliverystat/views"
)

// scene is a replica over tables in memory and its metrics.
type scene struct {
	counts, deliveries *fakeTable
	log                *fakeLog
	replica            *views.Replica
	registry           *prometheus.Registry
	audit              func(*codecs.PartitionCounts) // says what audits found
}

func newScene(t *testing.T, change func(*views.CollectorConfig)) *scene {
	t.Helper()
	s := &scene{
		counts: newFakeTable(1), deliveries: newFakeTable(2),
		log:      &fakeLog{topicID: lifeA, stable: []int64{4, 6}, high: []int64{4, 9}, visible: map[int32]int64{0: 4, 1: 6}},
		registry: prometheus.NewPedanticRegistry(),
		audit:    func(*codecs.PartitionCounts) {},
	}
	s.replica = views.NewReplica(newCounts(t, s.counts), newDeliveries(t, s.deliveries), views.FreshnessConfig{Log: s.log, Logger: quiet()})
	cfg := views.CollectorConfig{
		Replica:      s.replica,
		Lifecycle:    codecs.BuiltinLifecycle(),
		Dimensions:   []codecs.Attribute{codecs.Region},
		StuckAfter:   map[codecs.Status]time.Duration{status(t, "CREATED"): 30 * time.Minute},
		MaxStaleness: 5 * time.Minute,
	}
	change(&cfg)
	s.registry.MustRegister(views.NewCollector(cfg))
	return s
}

// recover makes both tables complete at 0:4,1:6.
func (s *scene) recover(t *testing.T, rows ...exactlyonce.Change) {
	t.Helper()
	now := time.Now().UnixNano()
	s.deliveries.write(0, rowIn(t, "a", "CREATED", now-hour), progress(lifeA, 4, now-hour))
	s.deliveries.write(1, rowIn(t, "b", "CREATED", now), progress(lifeA, 6, now))
	s.deliveries.recovered.Store(true)
	s.counts.write(0, append(rows, countsProgressOf(s.audit, lifeA, 4, 6))...)
	s.counts.recovered.Store(true)
	pass(interval)
}

// names returns the names of the metrics present.
func (s *scene) names(t *testing.T) []string {
	t.Helper()
	return slices.Sorted(maps.Keys(s.families(t)))
}

func (s *scene) families(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	families, err := s.registry.Gather()
	require.NoError(t, err)
	out := map[string]*dto.MetricFamily{}
	for _, f := range families {
		out[f.GetName()] = f
	}
	return out
}

func TestCollectorShowsNothingBeforeTheRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, func(*views.CollectorConfig) {})
		start(t, s.replica.Run)
		pass(interval)
		require.Equal(t, []string{"deliverystat_ready"}, s.names(t))
		require.Zero(t, s.families(t)["deliverystat_ready"].GetMetric()[0].GetGauge().GetValue())
	})
}

func TestCollectorShowsWhatTheViewsHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, func(*views.CollectorConfig) {})
		s.audit = func(p *codecs.PartitionCounts) {
			p.Audit = codecs.Audit{At: int64(100-p.Partition) * int64(time.Second), Rows: []codecs.StatusCount{{Status: "DELIVERED", Closed: -1}}}
		}
		start(t, s.replica.Run)
		s.recover(t,
			total("", codecs.StatusCount{Status: "ASSIGNED", Live: 1}, codecs.StatusCount{Status: "CREATED", Live: 2}, codecs.StatusCount{Status: "DELIVERED", Closed: 7}),
			total("region=", live("ASSIGNED", 1)),
			total("region=seoul", codecs.StatusCount{Status: "CREATED", Live: 2}, codecs.StatusCount{Status: "DELIVERED", Closed: 7}))
		s.log.set(func(l *fakeLog) { l.stable = []int64{5, 6}; l.visible[0] = 5 })
		pass(interval)
		expected := `
# HELP deliverystat_audit_last_success_timestamp_seconds When the last audit of the partition that was audited longest ago ended; absent before all were. A value of this replica.
# TYPE deliverystat_audit_last_success_timestamp_seconds gauge
deliverystat_audit_last_success_timestamp_seconds 99
# HELP deliverystat_closed_deliveries Closed deliveries in this final status, for as long as they are remembered. Equal on every replica that serves: aggregate with max by (namespace, job, status), never sum.
# TYPE deliverystat_closed_deliveries gauge
deliverystat_closed_deliveries{status="ABANDONED"} 0
deliverystat_closed_deliveries{status="CANCELLED"} 0
deliverystat_closed_deliveries{status="DELIVERED"} 7
deliverystat_closed_deliveries{status="FAILED"} 0
deliverystat_closed_deliveries{status="RETURNED"} 0
# HELP deliverystat_count_drift Recounted minus counted deliveries in the last audit; anything but 0 is a fault. Equal on every replica that serves: aggregate with max by (namespace, job, status), never sum.
# TYPE deliverystat_count_drift gauge
deliverystat_count_drift{status="ABANDONED"} 0
deliverystat_count_drift{status="ASSIGNED"} 0
deliverystat_count_drift{status="CANCELLED"} 0
deliverystat_count_drift{status="CREATED"} 0
deliverystat_count_drift{status="DELIVERED"} -2
deliverystat_count_drift{status="DELIVERING"} 0
deliverystat_count_drift{status="FAILED"} 0
deliverystat_count_drift{status="PICKED_UP"} 0
deliverystat_count_drift{status="PICKUP_REQUESTED"} 0
deliverystat_count_drift{status="RETURNED"} 0
deliverystat_count_drift{status="RETURNING"} 0
deliverystat_count_drift{status="UNKNOWN"} 0
# HELP deliverystat_deliveries Live deliveries whose latest status this is. Equal on every replica that serves: aggregate with max by (namespace, job, status), never sum.
# TYPE deliverystat_deliveries gauge
deliverystat_deliveries{status="ASSIGNED"} 1
deliverystat_deliveries{status="CREATED"} 2
deliverystat_deliveries{status="DELIVERING"} 0
deliverystat_deliveries{status="PICKED_UP"} 0
deliverystat_deliveries{status="PICKUP_REQUESTED"} 0
deliverystat_deliveries{status="RETURNING"} 0
deliverystat_deliveries{status="UNKNOWN"} 0
# HELP deliverystat_deliveries_by_region Live deliveries by region and latest status; values beyond the most frequent are summed up as _other. Equal on every replica that serves: aggregate with max by (namespace, job, region, status), never sum.
# TYPE deliverystat_deliveries_by_region gauge
deliverystat_deliveries_by_region{region="",status="ASSIGNED"} 1
deliverystat_deliveries_by_region{region="",status="CREATED"} 0
deliverystat_deliveries_by_region{region="",status="DELIVERING"} 0
deliverystat_deliveries_by_region{region="",status="PICKED_UP"} 0
deliverystat_deliveries_by_region{region="",status="PICKUP_REQUESTED"} 0
deliverystat_deliveries_by_region{region="",status="RETURNING"} 0
deliverystat_deliveries_by_region{region="",status="UNKNOWN"} 0
deliverystat_deliveries_by_region{region="seoul",status="ASSIGNED"} 0
deliverystat_deliveries_by_region{region="seoul",status="CREATED"} 2
deliverystat_deliveries_by_region{region="seoul",status="DELIVERING"} 0
deliverystat_deliveries_by_region{region="seoul",status="PICKED_UP"} 0
deliverystat_deliveries_by_region{region="seoul",status="PICKUP_REQUESTED"} 0
deliverystat_deliveries_by_region{region="seoul",status="RETURNING"} 0
deliverystat_deliveries_by_region{region="seoul",status="UNKNOWN"} 0
# HELP deliverystat_dimension_values Values of a dimension that are counted; metrics show the most frequent and sum up the rest as _other. Equal on every replica that serves: aggregate with max by (namespace, job, dimension), never sum.
# TYPE deliverystat_dimension_values gauge
deliverystat_dimension_values{dimension="region"} 2
# HELP deliverystat_lag_records Offsets of the input between the counts and the last committed record. Equal on every replica that serves: aggregate with max by (namespace, job, partition), never sum.
# TYPE deliverystat_lag_records gauge
deliverystat_lag_records{partition="0"} 1
deliverystat_lag_records{partition="1"} 0
# HELP deliverystat_newest_event_timestamp_seconds Event time of the newest event that the counts reflect. Equal on every replica that serves: aggregate with max by (namespace, job), never sum.
# TYPE deliverystat_newest_event_timestamp_seconds gauge
deliverystat_newest_event_timestamp_seconds 6
# HELP deliverystat_open_transaction_records Offsets of the input that open transactions of producers hold back: high watermark minus last stable offset. Equal on every replica that serves: aggregate with max by (namespace, job, partition), never sum.
# TYPE deliverystat_open_transaction_records gauge
deliverystat_open_transaction_records{partition="0"} 0
deliverystat_open_transaction_records{partition="1"} 3
# HELP deliverystat_ready 1 once this replica has recovered, else 0. A value of this replica.
# TYPE deliverystat_ready gauge
deliverystat_ready 1
# HELP deliverystat_staleness_seconds Proved bound of the age of the counts: they reflect all that could be read that long ago. A value of this replica.
# TYPE deliverystat_staleness_seconds gauge
deliverystat_staleness_seconds 0.2
# HELP deliverystat_stuck_deliveries Live deliveries that have been in this status for longer than stuck-after, by the clock of the replica. Equal on every replica that serves: aggregate with max by (namespace, job, status), never sum.
# TYPE deliverystat_stuck_deliveries gauge
deliverystat_stuck_deliveries{status="ASSIGNED"} 0
deliverystat_stuck_deliveries{status="CREATED"} 1
deliverystat_stuck_deliveries{status="DELIVERING"} 0
deliverystat_stuck_deliveries{status="PICKED_UP"} 0
deliverystat_stuck_deliveries{status="PICKUP_REQUESTED"} 0
deliverystat_stuck_deliveries{status="RETURNING"} 0
deliverystat_stuck_deliveries{status="UNKNOWN"} 0
`
		require.NoError(t, testutil.GatherAndCompare(s.registry, strings.NewReader(expected)))
		problems, err := testutil.GatherAndLint(s.registry)
		require.NoError(t, err)
		require.Empty(t, problems)
	})
}

func TestCollectorHidesGlobalGaugesBeyondMaxStaleness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, func(*views.CollectorConfig) {})
		start(t, s.replica.Run)
		s.recover(t)
		require.Contains(t, s.names(t), "deliverystat_deliveries")
		s.log.set(func(l *fakeLog) { l.down = true })
		pass(5*time.Minute - interval)
		require.Contains(t, s.names(t), "deliverystat_deliveries")
		pass(2 * interval)
		require.Equal(t, []string{"deliverystat_ready", "deliverystat_staleness_seconds"}, s.names(t))
		require.InEpsilon(t, 1.0, s.families(t)["deliverystat_ready"].GetMetric()[0].GetGauge().GetValue(), 0, "a fault that all share empties no service")
		s.log.set(func(l *fakeLog) { l.down = false })
		pass(2 * interval)
		require.Contains(t, s.names(t), "deliverystat_deliveries")
	})
}

func TestCollectorSumsUpRareValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, func(cfg *views.CollectorConfig) { cfg.MaxValues = 2 })
		start(t, s.replica.Run)
		s.recover(t,
			total("region=a", live("CREATED", 5)),
			total("region=_other", live("CREATED", 4)),
			total("region=b", live("CREATED", 2), live("GONE", 1)),
			total("region=c", live("CREATED", 1)),
			total("service=x", live("CREATED", 99)))
		got := map[string]float64{}
		for _, m := range s.families(t)["deliverystat_deliveries_by_region"].GetMetric() {
			if v := m.GetGauge().GetValue(); v != 0 {
				got[m.GetLabel()[0].GetValue()+" "+m.GetLabel()[1].GetValue()] = v
			}
		}
		require.Equal(t, map[string]float64{"a CREATED": 5, "_other CREATED": 7, "_other GONE": 1}, got)
		values := s.families(t)["deliverystat_dimension_values"].GetMetric()
		require.Len(t, values, 1, "of the one dimension that is counted")
		require.InDelta(t, 4, values[0].GetGauge().GetValue(), 0)
	})
}

func TestCollectorGivesNoGroupsWhileSettingsDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, func(*views.CollectorConfig) {})
		start(t, s.replica.Run)
		s.recover(t, total("region=a", live("CREATED", 5)))
		require.Contains(t, s.names(t), "deliverystat_deliveries_by_region")
		s.counts.write(0, countsProgressOf(func(p *codecs.PartitionCounts) { p.SettingsHash += uint64(p.Partition) }, lifeA, 4, 6))
		require.NotContains(t, s.names(t), "deliverystat_deliveries_by_region")
		require.Contains(t, s.names(t), "deliverystat_deliveries")
	})
}

func TestCollectorSurvivesValuesThatAreNoUTF8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, func(*views.CollectorConfig) {})
		start(t, s.replica.Run)
		s.recover(t, total("region=\xff", live("CREATED", 5)))
		require.Contains(t, s.names(t), "deliverystat_deliveries_by_region")
	})
}

func TestReplicaIsReadyOnceAllIsKnownAndStaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, func(*views.CollectorConfig) {})
		s.log.set(func(l *fakeLog) { l.down = true })
		start(t, s.replica.Run)
		ready, reasons := s.replica.Ready()
		require.False(t, ready)
		require.Len(t, reasons, 2)
		s.recover(t)
		ready, reasons = s.replica.Ready()
		require.False(t, ready)
		require.Equal(t, []string{"it is not known yet how current the counts are"}, reasons)
		s.log.set(func(l *fakeLog) { l.down = false })
		pass(interval)
		ready, reasons = s.replica.Ready()
		require.True(t, ready)
		require.Empty(t, reasons)
		s.deliveries.wipe(0)
		ready, _ = s.replica.Ready()
		require.True(t, ready)
	})
}
