package views_test

import (
	"encoding/hex"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"deliverystat/codecs"
	"deliverystat/processors"
	"deliverystat/processors/exactlyonce"
	"deliverystat/views"
)

const patience = 30 * time.Second

// kafka is an in-memory broker and what tests do to it.
type kafka struct {
	*kfake.Cluster
	admin *kadm.Client
}

func newKafka(t *testing.T, brokers int) *kafka {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(brokers))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return &kafka{Cluster: cluster, admin: kadm.NewClient(client)}
}

// create makes a topic and returns its ID as positions spell it.
func (k *kafka) create(t *testing.T, topic string, partitions int32) string {
	t.Helper()
	compact := "compact"
	config := map[string]*string{}
	if topic != "in" {
		config["cleanup.policy"] = &compact
	}
	created, err := k.admin.CreateTopic(t.Context(), partitions, 1, config, topic)
	require.NoError(t, err)
	return hex.EncodeToString(created.ID[:])
}

func (k *kafka) config() exactlyonce.ClientConfig {
	return exactlyonce.ClientConfig{Brokers: k.ListenAddrs(), ClientID: "test"}
}

// writer is a transactional producer with a transaction that is open.
func (k *kafka) writer(t *testing.T, id string) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(k.ListenAddrs()...), kgo.TransactionalID(id),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	require.NoError(t, client.BeginTransaction())
	return client
}

func put(t *testing.T, client *kgo.Client, topic string, partition int32, rows ...exactlyonce.Change) {
	t.Helper()
	for _, row := range rows {
		record := &kgo.Record{Topic: topic, Partition: partition, Key: []byte(row.Key), Value: row.Value}
		require.NoError(t, client.ProduceSync(t.Context(), record).FirstErr())
	}
}

func end(t *testing.T, client *kgo.Client, how kgo.TransactionEndTry) {
	t.Helper()
	require.NoError(t, client.EndTransaction(t.Context(), how))
}

// commit writes rows in a transaction of their own.
func (k *kafka) commit(t *testing.T, topic string, partition int32, rows ...exactlyonce.Change) {
	t.Helper()
	w := k.writer(t, "committer-"+topic)
	put(t, w, topic, partition, rows...)
	end(t, w, kgo.TryCommit)
	w.Close()
}

func event(key string) exactlyonce.Change {
	return exactlyonce.Change{Key: key, Value: []byte("{}")}
}

func newLog(t *testing.T, config exactlyonce.ClientConfig) *views.KafkaLog {
	t.Helper()
	log := views.NewKafkaLog(config, "in")
	t.Cleanup(func() { require.NoError(t, log.Close()) })
	return log
}

func TestKafkaLogTellsTheEndsThatReadersSee(t *testing.T) {
	t.Parallel()
	k := newKafka(t, 3) // partitions with different leaders
	id := k.create(t, "in", 4)
	log := newLog(t, k.config())
	p, err := log.Probe(t.Context())
	require.NoError(t, err)
	require.Equal(t, id, p.TopicID)
	require.Equal(t, []int64{0, 0, 0, 0}, p.Stable)

	k.commit(t, "in", 1, event("a"), event("b")) // and a marker
	aborted := k.writer(t, "aborted")
	put(t, aborted, "in", 2, event("c"))
	end(t, aborted, kgo.TryAbort)
	open := k.writer(t, "open")
	put(t, open, "in", 3, event("d"), event("e"))

	before := time.Now()
	p, err = log.Probe(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int64{0, 3, 2, 0}, p.Stable)
	require.Equal(t, []int64{0, 3, 2, 2}, p.High)
	require.False(t, p.At.Before(before))
	require.False(t, p.At.After(time.Now()))

	for _, look := range []struct {
		partition       int32
		from, end, want int64
	}{
		{1, 0, 3, 2}, // the marker is nothing that a reader sees
		{1, 2, 3, 2},
		{2, 0, 2, 0}, // nor is what was aborted
	} {
		got, err := log.VisibleEnd(t.Context(), look.partition, look.from, look.end)
		require.NoError(t, err)
		require.Equal(t, look.want, got, look)
	}
	end(t, open, kgo.TryCommit)
}

func TestKafkaLogFindsNothingInWhatWasTrimmed(t *testing.T) {
	t.Parallel()
	k := newKafka(t, 1)
	k.create(t, "in", 1)
	k.commit(t, "in", 0, event("a"), event("b"))
	var offsets kadm.Offsets
	offsets.Add(kadm.Offset{Topic: "in", Partition: 0, At: 3})
	_, err := k.admin.DeleteRecords(t.Context(), offsets)
	require.NoError(t, err)
	got, err := newLog(t, k.config()).VisibleEnd(t.Context(), 0, 2, 3)
	require.NoError(t, err)
	require.Equal(t, int64(2), got)
}

func TestKafkaLogNoticesATopicCreatedAnew(t *testing.T) {
	t.Parallel()
	k := newKafka(t, 1)
	first := k.create(t, "in", 2)
	log := newLog(t, k.config())
	p, err := log.Probe(t.Context())
	require.NoError(t, err)
	require.Equal(t, first, p.TopicID)

	_, err = k.admin.DeleteTopic(t.Context(), "in")
	require.NoError(t, err)
	_, err = log.Probe(t.Context())
	require.Error(t, err)
	second := k.create(t, "in", 3)
	require.NotEqual(t, first, second)
	require.Eventually(t, func() bool {
		p, err = log.Probe(t.Context())
		return err == nil
	}, patience, 10*time.Millisecond)
	require.Equal(t, second, p.TopicID)
	require.Len(t, p.Stable, 3)
}

func TestKafkaLogWaitsForABrokerThatIsAbsent(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	log := newLog(t, exactlyonce.ClientConfig{Brokers: []string{address}, ClientID: "test"})
	_, err = log.Probe(t.Context())
	require.Error(t, err)
	_, err = log.VisibleEnd(t.Context(), 0, 0, 1)
	require.Error(t, err)
}

// TestReplicaFollowsTablesOnKafka reads tables written by transactions, as the
// processors do it, and an input that ends in markers.
func TestReplicaFollowsTablesOnKafka(t *testing.T) {
	k := newKafka(t, 1)
	id := k.create(t, "in", 2)
	topics := processors.NewTopics("", "in")
	k.create(t, topics.DeliveryTable, 2)
	k.create(t, topics.CountsTable, 1)
	now := time.Now().UnixNano()
	home := exactlyonce.Murmur2.Partition([]byte("D"), 2)
	other := 1 - home
	k.commit(t, "in", home, event("D")) // offset 0, and a marker at 1
	k.commit(t, topics.DeliveryTable, home, rowIn(t, "D", "CREATED", now), progress(id, 1, now))
	k.commit(t, topics.DeliveryTable, other, progress(id, 0, codecs.None))
	positions := []int64{0, 0}
	positions[home] = 1
	k.commit(t, topics.CountsTable, 0, total("", live("CREATED", 1)), countsProgress(id, positions...))

	config := views.Config{
		Client: k.config(), Topics: topics, Settings: processors.DefaultSettings(),
		StateDir: filepath.Join(t.TempDir(), "state"), Logger: quiet(),
	}
	run := func(t *testing.T) *views.Replica {
		t.Helper()
		replica, err := views.New(config)
		require.NoError(t, err)
		start(t, replica.Run)
		require.Eventually(t, func() bool {
			ready, _ := replica.Ready()
			return ready
		}, patience, 5*time.Millisecond)
		return replica
	}
	t.Run("from nothing", func(t *testing.T) {
		replica := run(t)
		counts := replica.Counts.Snapshot()
		require.Equal(t, codecs.Position{TopicID: id, Next: positions}, counts.Position)
		require.Equal(t, []codecs.StatusCount{live("CREATED", 1)}, counts.All.Counts)
		lag, _, known := replica.Freshness.Of(counts.Position)
		require.True(t, known, "the marker at the end of the input keeps nobody waiting")
		require.Zero(t, lag)
		d, at, found, ready := replica.Deliveries.Get("D")
		require.True(t, ready)
		require.True(t, found)
		require.Equal(t, status(t, "CREATED"), d.Status)
		require.Equal(t, int64(1), at.Next[home])

		// An epoch that is open, or aborted, is never seen; the next one is.
		w := k.writer(t, "owner")
		put(t, w, topics.CountsTable, 0, total("", live("CREATED", 99)), countsProgress(id, 9, 9))
		end(t, w, kgo.TryAbort)
		k.commit(t, topics.CountsTable, 0, total("", live("ASSIGNED", 1)), countsProgress(id, 2, 2))
		counts, err := replica.Counts.Wait(t.Context(), codecs.Position{Next: []int64{2, 2}})
		require.NoError(t, err)
		require.Equal(t, []codecs.StatusCount{live("ASSIGNED", 1)}, counts.All.Counts)

		k.commit(t, topics.DeliveryTable, home, rowIn(t, "D", "ASSIGNED", now+1), progress(id, 2, now+1))
		wanted := codecs.Position{Next: []int64{-1, -1}}
		wanted.Next[home] = 2
		require.NoError(t, replica.Deliveries.Wait(t.Context(), wanted))
		d, _, _, _ = replica.Deliveries.Get("D")
		require.Equal(t, status(t, "ASSIGNED"), d.Status)
	})
	t.Run("from its disk", func(t *testing.T) {
		replica := run(t)
		require.Equal(t, []codecs.StatusCount{live("ASSIGNED", 1)}, replica.Counts.Snapshot().All.Counts)
		d, _, _, _ := replica.Deliveries.Get("D")
		require.Equal(t, status(t, "ASSIGNED"), d.Status)
		stuck, ready := replica.Deliveries.Stuck(time.Now().Add(time.Hour), map[codecs.Status]time.Duration{status(t, "ASSIGNED"): time.Minute})
		require.True(t, ready)
		require.Equal(t, int64(1), stuck[status(t, "ASSIGNED")], "the index holds what the disk held")
	})
}
