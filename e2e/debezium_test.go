//go:build e2e

package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs/codecstest"
	"deliverystat/e2e/kafka"
)

// repeated is how many records of a capture say what an earlier one said: a
// connector that was killed wrote them twice.
var repeated = map[string]int64{
	"mariadb-k-kill9-duplicates":                     10,
	"mariadb-g2-kill9-exactly-once.read_uncommitted": 12,
}

// Every capture of outbox records whose key is the delivery ID, through a real
// broker, gives the final status of every delivery that is in it, and a record
// that is there twice counts once.
func TestDebeziumRecordsGiveTheFinalStatuses(t *testing.T) {
	fixtures := codecstest.Fixtures()
	require.NotEmpty(t, fixtures)
	for _, f := range fixtures {
		if f.OtherKeys {
			continue // its events are strays here, see below
		}
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			replay(t, f, f.Want)
		})
		if f.WantBySequence != nil {
			t.Run(f.Name+" by sequence", func(t *testing.T) {
				t.Parallel()
				replay(t, f, f.WantBySequence, "--order-by=sequence")
			})
		}
	}
}

// Captures of change events, whose keys are those of rows, give the final
// statuses as sources.
func TestDebeziumChangeEventsGiveTheFinalStatusesAsSources(t *testing.T) {
	for _, f := range codecstest.Fixtures() {
		if !f.OtherKeys {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			d := install(t)
			source := d.topic("outbox-table")
			require.NoError(t, d.client.CreateTopics(t.Context(), kafka.Topic{Name: source, Partitions: partitions}))
			r := d.serve("one", "--sources="+source)
			waitReady(t, r)
			d.produce(asCaptured(f, source)...)
			d.awaitSources(map[string]int32{source: partitions})
			d.requireExact(tally(f.Want), r)
			for id, status := range f.Want {
				d.requireStatus(r, id, status)
			}
		})
	}
}

func replay(t *testing.T, f codecstest.Fixture, want map[string]string, flags ...string) {
	t.Helper()
	d := newDeployment(t)
	require.NoError(t, d.client.CreateTopics(t.Context(), kafka.Topic{
		Name: d.events(), Partitions: partitions,
		// Some connectors stamp records with the event time, which is older than
		// the default retention.
		Configs: map[string]string{"retention.ms": "-1"},
	}))
	d.createTopics()
	d.produce(asCaptured(f, d.events())...)

	r := d.serve("one", flags...)
	waitReady(t, r)

	d.requireExact(tally(want), r)
	for id, status := range want {
		d.requireStatus(r, id, status)
	}
	m, err := r.Metrics(t.Context())
	require.NoError(t, err)
	results := m.By("deliverystat_events_total", "result")
	require.EqualValues(t, len(f.Records), sum(results), "%v", results)
	if n := repeated[f.Name]; n > 0 {
		// In these captures each event is newer than those before it, so that
		// what is there again equals the winner or lies behind it.
		require.EqualValues(t, len(f.Records)-int(n), results["applied"], "%v", results)
		require.Equal(t, n, results["duplicate"]+results["stale"], "%v", results)
	}
	require.Equal(t, results["dead_letter"], sum(d.deadLetters()))
}

// asCaptured returns the records of a fixture with the keys, values, headers,
// timestamps and partitions that they had.
func asCaptured(f codecstest.Fixture, topic string) []kafka.Record {
	records := make([]kafka.Record, len(f.Records))
	for i, in := range f.Records {
		records[i] = kafka.Record{Topic: topic, Partition: in.Partition, Timestamp: in.Timestamp, Key: in.Key, Value: in.Value}
		for _, h := range in.Headers {
			records[i].Headers = append(records[i].Headers, kafka.Header{Key: h.Key, Value: h.Value})
		}
	}
	return records
}

// tally counts deliveries by their final status.
func tally(statuses map[string]string) truth {
	out := truth{Counts: map[string]int64{}, Closed: map[string]int64{}}
	for _, status := range statuses {
		switch status {
		case "DELIVERED", "CANCELLED":
			out.Closed[status]++
		default:
			out.Counts[status]++
			out.Live++
		}
	}
	return out
}
