package main

import (
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"deliverystat/processors/exactlyonce"
)

// sent is a record that a test puts into the input.
type sent struct {
	key, value string
	headers    map[string]string
	ago        time.Duration // by how much the record's timestamp lies before now
}

// event is a native event that occurred so long ago.
func event(id, status string, ago time.Duration) sent {
	at := time.Now().Add(-ago).UTC().Format(time.RFC3339Nano)
	return sent{key: id, value: `{"delivery_id":"` + id + `","status":"` + status + `","occurred_at":"` + at + `"}`}
}

// send puts records into the input, where Java's producers put them.
func send(t *testing.T, broker string, records ...sent) {
	t.Helper()
	sendTo(t, broker, "delivery-events", records...)
}

func sendTo(t *testing.T, broker, topic string, records ...sent) {
	t.Helper()
	config := sarama.NewConfig()
	config.Version = sarama.V2_8_0_0
	config.Producer.Return.Successes = true
	config.Producer.MaxMessageBytes = 1_040_000
	config.Producer.Partitioner = exactlyonce.Murmur2.Partitioner()
	producer, err := sarama.NewSyncProducer([]string{broker}, config)
	require.NoError(t, err)
	defer func() { require.NoError(t, producer.Close()) }()
	for _, r := range records {
		m := &sarama.ProducerMessage{
			Topic: topic, Key: sarama.StringEncoder(r.key),
			Value: sarama.StringEncoder(r.value), Timestamp: time.Now().Add(-r.ago),
		}
		for k, v := range r.headers {
			m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(k), Value: []byte(v)})
		}
		_, _, err := producer.SendMessage(m)
		require.NoError(t, err)
	}
}

// served is a service on a fake broker.
type served struct {
	address, broker, http, admin string
	stop                         func() outcome
}

func serveFor(t *testing.T, partitions string, flags ...string) *served {
	t.Helper()
	return serveAt(t, startBroker(t), partitions, flags...)
}

func serveAt(t *testing.T, address, partitions string, flags ...string) *served {
	t.Helper()
	s := &served{address: address, http: freeAddress(t), admin: freeAddress(t)}
	s.broker = "--kafka-brokers=" + s.address
	require.Equal(t, 0, invoke(t, "topics", "create", s.broker, "--partitions="+partitions, "--replication-factor=1").code)
	_, s.stop = background(t, append([]string{
		"serve", s.broker, "--allow-unsafe", "--instance-id=one", "--session-timeout=6s", "--log-level=error",
		"--state-dir=" + t.TempDir(), "--http-address=" + s.http, "--admin-address=" + s.admin,
	}, flags...)...)
	awaitReady(t, s.admin)
	return s
}

// await waits until the counts are as given and nothing lags.
func (s *served) await(t *testing.T, part string) {
	t.Helper()
	eventually(t, "the answer has "+part, func() (string, bool) {
		_, body := get(t, "http://"+s.http+"/v1/counts")
		return body, strings.Contains(body, part) && strings.Contains(body, `"lag_records":0`)
	})
}

func TestExplainTellsEachEventAndTheRow(t *testing.T) {
	s := serveFor(t, "2")
	send(t, s.address, event("a", "CREATED", 50*time.Minute), event("a", "DELIVERING", 30*time.Minute),
		event("a", "PICKED_UP", 40*time.Minute), sent{key: "a", value: "{"}, event("a", "DELIVERED", 20*time.Minute))
	s.await(t, `"DELIVERED":1`)

	got := invoke(t, "explain", s.broker, "a")

	require.Equal(t, 0, got.code, got.stderr)
	var whats []string
	for line := range strings.Lines(got.stdout) {
		for _, what := range []string{"applied", "stale", "refused: unreadable", "closed  "} {
			if strings.Contains(line, "  "+what) {
				whats = append(whats, strings.TrimSpace(what))
			}
		}
	}
	require.Equal(t, []string{"applied", "applied", "stale", "refused: unreadable", "applied", "closed"}, whats, got.stdout)
	require.Contains(t, got.stdout, " PICKED_UP orders before ")
	require.Contains(t, got.stdout, "\nrow: DELIVERED since ")
	require.Contains(t, got.stdout, "\nthe table agrees at position 5\n")

	unknown := invoke(t, "explain", s.broker, "nobody")
	require.Equal(t, 0, unknown.code, unknown.stderr)
	require.Contains(t, unknown.stdout, "no record of it")
	require.Contains(t, unknown.stdout, "row: none\nthe table agrees at position ")
}

// A row that somebody wrote into the table by hand is found out.
func TestExplainFindsARowThatNoEventMade(t *testing.T) {
	s := serveFor(t, "2")
	send(t, s.address, event("a", "CREATED", time.Minute), event("b", "CREATED", time.Minute), event("c", "CREATED", time.Minute))
	s.await(t, `"CREATED":3`)
	require.Equal(t, 0, s.stop().code)
	forgeRow(t, s.address)

	got := invoke(t, "explain", s.broker, "forged")

	require.Equal(t, 1, got.code, got.stdout)
	require.Contains(t, got.stdout, "delivery forged in partition 1 of")
	require.Contains(t, got.stdout, "the table has a row, the events lead to none")
	require.Len(t, got.lines(), 1)
}

// The beginning of the log is gone: no false alarm, but a note.
func TestExplainSaysWhereRetentionHasCutThePast(t *testing.T) {
	s := serveFor(t, "1")
	send(t, s.address, event("a", "CREATED", 50*time.Minute), event("a", "ASSIGNED", 30*time.Minute), event("b", "CREATED", time.Minute))
	s.await(t, `"ASSIGNED":1`)
	admin, err := sarama.NewClusterAdmin([]string{s.address}, sarama.NewConfig())
	require.NoError(t, err)
	require.NoError(t, admin.DeleteRecords("delivery-events", map[int32]int64{0: 2}))
	require.NoError(t, admin.Close())

	got := invoke(t, "explain", s.broker, "a")

	require.Equal(t, 0, got.code, got.stderr)
	require.Contains(t, got.stdout, "note: retention has cut offsets 0 to 1")
	require.Contains(t, got.stdout, "row: none\nnot compared with the table, which reflects position 3\n")

	verified := invoke(t, "verify", s.broker, "--from=events")
	require.Equal(t, 2, verified.code)
	require.Contains(t, verified.stderr, "offset 0 is gone, the log begins at 2")
}

func TestExplainNeedsATableAndAPartitionOfTheInput(t *testing.T) {
	broker := "--kafka-brokers=" + startBroker(t)
	missing := invoke(t, "explain", broker, "a")
	require.Equal(t, 2, missing.code)
	require.Contains(t, missing.stderr, "topic latest-delivery-table does not exist")

	require.Equal(t, 0, invoke(t, "topics", "create", broker, "--partitions=2", "--replication-factor=1").code)
	empty := invoke(t, "explain", broker, "a")
	require.Equal(t, 2, empty.code)
	require.Contains(t, empty.stderr, "has no progress row")
	wrong := invoke(t, "explain", broker, "a", "--partition=2")
	require.Equal(t, 2, wrong.code)
	require.Contains(t, wrong.stderr, "--partition=2: delivery-events has partitions 0 to 1")
}
