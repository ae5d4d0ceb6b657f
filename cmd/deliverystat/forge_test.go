package main

import (
	"testing"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
)

// forgeRow writes one row more into partition 1 of the table, and the partition's
// progress row again behind it.
func forgeRow(t *testing.T, broker string) {
	t.Helper()
	config := sarama.NewConfig()
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Return.Successes = true
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	client, err := sarama.NewClient([]string{broker}, config)
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()

	const table, partition = "latest-delivery-table", 1
	l := codecs.BuiltinLifecycle()
	created, ok := l.Lookup("CREATED")
	require.True(t, ok)
	progress := lastProgress(t, client, table, partition)
	row := l.AppendRow(nil, &codecs.Row{
		Winner:   codecs.OrderKey{OccurredAt: progress.Clock, Status: created},
		Timeline: []codecs.StatusTimes{{Status: created, First: progress.Clock, Last: progress.Clock}},
		Horizon:  codecs.None,
	})
	producer, err := sarama.NewSyncProducerFromClient(client)
	require.NoError(t, err)
	defer func() { require.NoError(t, producer.Close()) }()
	for _, m := range []*sarama.ProducerMessage{
		{Topic: table, Partition: partition, Key: sarama.StringEncoder("forged"), Value: sarama.ByteEncoder(row)},
		{Topic: table, Partition: partition, Key: sarama.StringEncoder(codecs.ProgressKey), Value: sarama.ByteEncoder(codecs.AppendProgress(nil, progress))},
	} {
		_, _, err = producer.SendMessage(m)
		require.NoError(t, err)
	}
}

// lastProgress returns the last progress row of a table partition.
func lastProgress(t *testing.T, client sarama.Client, table string, partition int32) *codecs.Progress {
	t.Helper()
	consumer, err := sarama.NewConsumerFromClient(client)
	require.NoError(t, err)
	defer func() { require.NoError(t, consumer.Close()) }()
	records, err := consumer.ConsumePartition(table, partition, sarama.OffsetOldest)
	require.NoError(t, err)
	defer func() { require.NoError(t, records.Close()) }()
	end, err := client.GetOffset(table, partition, sarama.OffsetNewest)
	require.NoError(t, err)
	var last *codecs.Progress
	for m := range records.Messages() {
		if string(m.Key) == codecs.ProgressKey {
			last, err = codecs.ReadProgress(m.Value)
			require.NoError(t, err)
		}
		if m.Offset >= end-2 { // a transaction marker follows the last row
			break
		}
	}
	require.NotNil(t, last)
	return last
}
