//go:build e2e

package exactlyonce

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// visibleEndEqualsReaders compares VisibleEnd with what a read-committed reader
// sees, over partitions that end in commit and abort markers of interleaved
// producers.
func visibleEndEqualsReaders(t *testing.T, brokers []string) {
	const parts = 24
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	w := newWorld(t, brokers)
	topic := w.Input + "-tails"
	w.create(t, topic, parts, nil)
	producers := make([]*kgo.Client, 3)
	for i := range producers {
		var err error
		producers[i], err = kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.TransactionalID(fmt.Sprint(topic, i)),
			kgo.RecordPartitioner(kgo.ManualPartitioner()))
		require.NoError(t, err)
		defer producers[i].Close()
	}
	for part := range int32(parts) {
		for range rng.IntN(6) {
			p := producers[rng.IntN(len(producers))]
			require.NoError(t, p.BeginTransaction())
			records := make([]*kgo.Record, 1+rng.IntN(40))
			for i := range records {
				records[i] = &kgo.Record{Topic: topic, Partition: part, Key: []byte("k")}
			}
			require.NoError(t, p.ProduceSync(t.Context(), records...).FirstErr())
			require.NoError(t, p.EndTransaction(t.Context(), kgo.TransactionEndTry(rng.IntN(3) > 0)))
		}
	}
	client, err := sarama.NewClient(brokers, ClientConfig{Brokers: brokers}.Sarama())
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	seen := w.read(t, topic)
	for part := range int32(parts) {
		want := int64(0)
		for _, r := range seen[part] {
			want = r.Offset + 1
		}
		end, err := client.GetOffset(topic, part, sarama.OffsetNewest)
		require.NoError(t, err)
		got, err := VisibleEnd(t.Context(), client, topic, part, 0, end)
		require.NoError(t, err)
		require.Equal(t, want, got, "partition %d of log end %d", part, end)
		behind, err := VisibleEnd(t.Context(), client, topic, part, want, end)
		require.NoError(t, err)
		require.Equal(t, want, behind, "nothing is visible behind the last record of partition %d", part)
	}
}

// visibleEndOfCompactedTail lets the broker remove everything that was visible:
// rows that were deleted, then their tombstones, between markers that stay.
func visibleEndOfCompactedTail(t *testing.T, brokers []string) {
	w := newWorld(t, brokers)
	topic := w.Input + "-compacted"
	s := kadm.StringPtr
	w.create(t, topic, 1, map[string]*string{
		"cleanup.policy": s("compact"), "segment.ms": s("500"), "min.cleanable.dirty.ratio": s("0.001"),
		"delete.retention.ms": s("0"), "max.compaction.lag.ms": s("1000"),
	})
	p, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.TransactionalID(topic), kgo.DefaultProduceTopic(topic))
	require.NoError(t, err)
	defer p.Close()
	write := func(commit bool, value []byte, n int) {
		require.NoError(t, p.BeginTransaction())
		records := make([]*kgo.Record, n)
		for i := range records {
			records[i] = &kgo.Record{Key: fmt.Append(nil, "k", i), Value: value}
		}
		require.NoError(t, p.ProduceSync(t.Context(), records...).FirstErr())
		require.NoError(t, p.EndTransaction(t.Context(), kgo.TransactionEndTry(commit)))
	}
	client, err := sarama.NewClient(brokers, ClientConfig{Brokers: brokers}.Sarama())
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	write(true, []byte("v"), 100)
	_ = pause(t.Context(), 600*time.Millisecond) // the next write rolls the segment
	write(true, nil, 100)
	visible := -1
	wait(t, 120*time.Second, func() bool {
		write(false, []byte("aborted"), 1) // keeps the segments rolling
		records := w.read(t, topic)[0]
		visible = len(records)
		oldest, err := client.GetOffset(topic, 0, sarama.OffsetOldest)
		require.NoError(t, err)
		end, err := client.GetOffset(topic, 0, sarama.OffsetNewest)
		require.NoError(t, err)
		got, err := VisibleEnd(t.Context(), client, topic, 0, oldest, end)
		require.NoError(t, err)
		if again := w.read(t, topic)[0]; len(again) != visible {
			return false // compacted between the two looks
		}
		want := oldest
		if visible > 0 {
			want = records[visible-1].Offset + 1
		}
		require.Equal(t, want, got, "%d visible records in [%d, %d)", visible, oldest, end)
		return visible == 0
	}, func() string { return fmt.Sprint("still visible: ", visible) })
}

// compactionPassesAStandby lets the broker remove rows that a standby has not
// read yet, and some that it has: what is left takes it to the same table.
func compactionPassesAStandby(t *testing.T, brokers []string) {
	w := newWorld(t, brokers)
	for name, value := range map[string]string{"segment.ms": "500", "min.cleanable.dirty.ratio": "0.001", "max.compaction.lag.ms": "1000"} {
		w.alter(t, w.table(), name, value)
	}
	a, b := w.replica(t, "a"), w.replica(t, "b")
	b.Standby = true
	pa := a.start(t)
	w.produce(t, 5000)
	w.waitConsumed(t)
	rt, stop := b.run(t, nil)
	w.waitWarm(t, rt)
	behind := map[int32]int64{} // where the standby stands
	for _, k := range rt.Standby() {
		behind[k.Partition] = rt.stores.get(w.table(), k.Partition).offset()
	}
	stop()
	state := ""
	wait(t, 120*time.Second, func() bool {
		w.produce(t, 500) // keeps the segments rolling
		for p, at := range behind {
			records := w.visible(t, w.table())[p]
			state = fmt.Sprintf("partition %d begins at %d and stood at %d", p, records[0].Offset, at)
			if records[0].Offset <= at+100 {
				return false
			}
		}
		return true
	}, func() string { return state })
	rt, stop = b.run(t, nil)
	w.waitConsumed(t)
	w.waitWarm(t, rt)
	pa.kill()
	w.expel(t, "a")
	w.produce(t, 500)
	w.waitConsumed(t)
	stop()
	w.requireExact(t, b.Dir)
}
