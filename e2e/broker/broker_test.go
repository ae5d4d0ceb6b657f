//go:build e2e

package broker_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/e2e/broker"
	"deliverystat/e2e/kafka"
)

func TestOneNode(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cluster, err := broker.Start(ctx, t.TempDir(), 1)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cluster.Close()) })
	client, err := kafka.Connect(cluster.Addresses())
	require.NoError(t, err)
	t.Cleanup(client.Close)
	t.Run("readers see committed records only", func(t *testing.T) { onlyCommittedRecordsAreRead(ctx, t, client) })
	t.Run("it comes back with its data", func(t *testing.T) { comesBackWithItsData(ctx, t, cluster, client) })
}

// A node that was killed and one that was shut down come back with what they
// held, on the same address.
func comesBackWithItsData(ctx context.Context, t *testing.T, cluster *broker.Cluster, client *kafka.Client) {
	t.Helper()
	require.NoError(t, client.CreateTopics(ctx, kafka.Topic{Name: "events", Partitions: 2}))
	_, err := client.Produce(ctx,
		kafka.Record{Topic: "events", Partition: 1, Key: []byte("a"), Value: []byte("1")},
		kafka.Record{Topic: "events", Partition: 1, Key: []byte("b"), Value: nil})
	require.NoError(t, err)

	for name, end := range map[string]func(int) error{"killed": cluster.KillNode, "shut down": cluster.StopNode} {
		require.NoError(t, end(1), name)
		require.False(t, cluster.Process(1).Running(), name)
		require.NoError(t, cluster.StartNode(1), name)
		require.NoError(t, cluster.WaitReady(ctx), name)

		read, err := client.ReadAll(ctx, "events")
		require.NoError(t, err, name)
		require.Empty(t, read[0], name)
		require.Len(t, read[1], 2, name)
		require.Equal(t, []byte("1"), read[1][0].Value, name)
		require.Nil(t, read[1][1].Value, name)
	}
}

// What an aborted transaction wrote is never read, and a partition that ends
// in a marker is read to its end.
func onlyCommittedRecordsAreRead(ctx context.Context, t *testing.T, client *kafka.Client) {
	t.Helper()
	require.NoError(t, client.CreateTopics(ctx, kafka.Topic{Name: "transactions", Partitions: 1}))
	record := func(v string) kafka.Record {
		return kafka.Record{Topic: "transactions", Key: []byte("k"), Value: []byte(v), Headers: []kafka.Header{{Key: "h", Value: []byte(v)}}}
	}
	_, err := client.ProduceTransaction(ctx, "t", true, record("kept"))
	require.NoError(t, err)
	_, err = client.ProduceTransaction(ctx, "t", false, record("dropped"))
	require.NoError(t, err)

	read, err := client.ReadAll(ctx, "transactions")
	require.NoError(t, err)
	require.Len(t, read[0], 1)
	require.Equal(t, []byte("kept"), read[0][0].Value)
	require.Equal(t, []kafka.Header{{Key: "h", Value: []byte("kept")}}, read[0][0].Headers)
	ends, err := client.Ends(ctx, "transactions", kafka.Committed)
	require.NoError(t, err)
	require.Equal(t, []int64{4}, ends, "two records and two markers")
}

// Three nodes form one cluster and go on without one of them.
func TestThreeNodesSurviveOne(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cluster, err := broker.Start(ctx, t.TempDir(), 3)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cluster.Close()) })
	require.NoError(t, cluster.KillNode(2))
	client, err := kafka.Connect(cluster.Addresses())
	require.NoError(t, err)
	t.Cleanup(client.Close)
	require.Eventually(t, func() bool {
		return client.CreateTopics(ctx, kafka.Topic{Name: "events", Partitions: 1}) == nil
	}, time.Minute, 100*time.Millisecond)
}
