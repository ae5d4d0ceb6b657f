package processors_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"deliverystat/codecs"
	"deliverystat/processors"
	"deliverystat/processors/exactlyonce"
)

// source is a fake runtime that republishes one partition of a source.
type source struct {
	*fakeRuntime
	cfg     processors.NormalizeConfig
	decoder *codecs.Decoder
	metrics *prometheus.Registry
}

func newSource(t failer, records ...fakeRecord) *source {
	s := shortSettings()
	decoder, err := codecs.NewDecoder(codecs.FormatAuto, s.Lifecycle)
	require.NoError(t, err)
	src := &source{decoder: decoder.AnyKey(), metrics: prometheus.NewRegistry()}
	src.cfg = processors.NormalizeConfig{
		Topics: processors.NewTopics("", ""), Source: "orders", Settings: s, Decoder: src.decoder,
		Metrics: processors.NewSourceMetrics(src.metrics, []string{"orders"}),
	}
	input := &fakeTopic{name: "orders", id: "orders-1", records: records}
	src.fakeRuntime = newFakeRuntime(t, input, func() (exactlyonce.State, error) { return processors.NewNormalizeState(src.cfg), nil })
	src.partition = 5
	return src
}

func TestNormalizeRepublishesByDeliveryID(t *testing.T) {
	event := wire("a", "CREATED", 1, "order_id", "O-1")
	event.key = "O-1"
	src := newSource(t, event, fakeRecord{key: "O-2", value: []byte("{")}.arriving(2), fakeRecord{key: "O-3"}.arriving(3))
	src.assign()
	src.drain()

	events := src.to("delivery-events")
	require.Len(t, events, 1)
	require.Equal(t, "a", events[0].Key)
	require.JSONEq(t, string(event.value), string(events[0].Value))
	require.Equal(t, "orders", string(events[0].Headers[processors.HeaderSourceTopic]))
	require.Equal(t, "5", string(events[0].Headers[processors.HeaderSourcePartition]))
	require.Equal(t, "0", string(events[0].Headers[processors.HeaderSourceOffset]))

	letters := src.to("delivery-events-dead-letter")
	require.Len(t, letters, 1)
	require.Equal(t, "O-2", letters[0].Key)
	require.Equal(t, "orders", string(letters[0].Headers[processors.HeaderTopic]))
	require.Equal(t, "5", string(letters[0].Headers[processors.HeaderPartition]))
	require.Equal(t, "1", string(letters[0].Headers[processors.HeaderOffset]))
	require.Equal(t, string(codecs.Unreadable), string(letters[0].Headers[processors.HeaderReason]))

	require.NoError(t, testutil.GatherAndCompare(src.metrics, strings.NewReader(`
# HELP deliverystat_source_events_total Records read from a source, by what became of them. Counted at commit; sum over replicas.
# TYPE deliverystat_source_events_total counter
deliverystat_source_events_total{result="dead_letter",source="orders"} 1
deliverystat_source_events_total{result="ignored",source="orders"} 1
deliverystat_source_events_total{result="republished",source="orders"} 1
`), "deliverystat_source_events_total"))
}

func TestNormalizeConfigurationIsRequired(t *testing.T) {
	whole := newSource(t).cfg
	whole.Runtime.Client.Brokers, whole.Runtime.Instance, whole.Runtime.StateDir = []string{"127.0.0.1:1"}, "one", t.TempDir()
	_, err := processors.NewNormalize(whole)
	require.NoError(t, err)
	for name, spoil := range map[string]func(*processors.NormalizeConfig){
		"settings": func(c *processors.NormalizeConfig) { c.Settings = nil },
		"decoder":  func(c *processors.NormalizeConfig) { c.Decoder = nil },
		"source":   func(c *processors.NormalizeConfig) { c.Source = "" },
	} {
		cfg := whole
		spoil(&cfg)
		_, err := processors.NewNormalize(cfg)
		require.EqualError(t, err, "normalize: Source, Settings and Decoder are required", name)
	}
}

// The source's record timestamp decides what lies in the future: that of the
// republished record is the time of republishing.
func TestNormalizeRefusesTheFutureOfTheSource(t *testing.T) {
	src := newSource(t, wire("a", "CREATED", 3700).arriving(0))
	src.assign()
	src.drain()
	require.Empty(t, src.to("delivery-events"))
	require.Equal(t, string(codecs.Future), string(src.to("delivery-events-dead-letter")[0].Headers[processors.HeaderReason]))
}

func TestNormalizeTellsWhatWasTrimmed(t *testing.T) {
	src := newSource(t, wire("a", "CREATED", 1), wire("a", "CREATED", 2), wire("a", "CREATED", 3))
	src.assign()
	src.step(1)
	src.input.trim(2)
	src.assign()
	src.drain()
	require.Len(t, src.to("delivery-events"), 2)
	require.NoError(t, testutil.GatherAndCompare(src.metrics, strings.NewReader(`
# HELP deliverystat_source_lost_total Offsets of a source that were trimmed from the log before they were read.
# TYPE deliverystat_source_lost_total counter
deliverystat_source_lost_total{source="orders"} 1
`), "deliverystat_source_lost_total"))
}

// Each record of the source becomes one event, one dead letter, or nothing,
// wherever epochs end and whatever crashes; and the event says the same as the
// record.
func TestPropertyNormalizeIsExactlyOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := anyInput(t, rapid.IntRange(1, 30).Draw(t, "n"))
		src := newSource(t, records...)
		src.assign()
		t.Repeat(map[string]func(*rapid.T){
			"consume": func(t *rapid.T) { src.consume(rapid.IntRange(1, 8).Draw(t, "records")) },
			"cut": func(*rapid.T) {
				if src.frozen == nil {
					src.cut()
				}
			},
			"commit": func(*rapid.T) {
				if src.frozen != nil {
					src.commit()
				}
			},
			"crash": func(*rapid.T) { src.crash() },
			"crashAfterCommit": func(*rapid.T) {
				if src.frozen != nil {
					src.crashAfterCommit()
				}
			},
		})
		if src.frozen != nil {
			src.commit()
		}
		src.drain()

		events, letters := map[string]codecs.Decoded{}, map[string]codecs.Reason{}
		for _, rec := range src.to("delivery-events") {
			var d codecs.Decoded
			src.decoder.Decode(&codecs.Record{Key: rec.Key, Value: rec.Value}, &d)
			offset := string(rec.Headers[processors.HeaderSourceOffset])
			require.NotContains(t, events, offset, "twice")
			events[offset] = d
		}
		for _, rec := range src.to("delivery-events-dead-letter") {
			offset := string(rec.Headers[processors.HeaderOffset])
			require.NotContains(t, letters, offset, "twice")
			letters[offset] = codecs.Reason(rec.Headers[processors.HeaderReason])
		}
		wantEvents, wantLetters := map[string]codecs.Decoded{}, map[string]codecs.Reason{}
		for i, rec := range records {
			var d codecs.Decoded
			src.decoder.Decode(&codecs.Record{Key: rec.key, Value: rec.value}, &d)
			switch v := src.cfg.Settings.Admit(&d, rec.timestamp.UnixNano(), false); v.Result {
			case processors.Ignored:
			case processors.Refused:
				wantLetters[strconv.Itoa(i)] = v.Reason
			default:
				wantEvents[strconv.Itoa(i)] = d
			}
		}
		require.Empty(t, cmp.Diff(wantEvents, events))
		require.Empty(t, cmp.Diff(wantLetters, letters))
	})
}
