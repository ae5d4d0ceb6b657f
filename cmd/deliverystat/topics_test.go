package main

import (
	"strings"
	"testing"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
)

// makeTopic makes a topic by hand.
func makeTopic(t *testing.T, broker, name string, partitions int32, settings map[string]string) {
	t.Helper()
	admin, err := sarama.NewClusterAdmin([]string{broker}, sarama.NewConfig())
	require.NoError(t, err)
	defer func() { require.NoError(t, admin.Close()) }()
	detail := &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1, ConfigEntries: map[string]*string{}}
	for k, v := range settings {
		detail.ConfigEntries[k] = &v
	}
	require.NoError(t, admin.CreateTopic(name, detail, false))
}

func TestTopicsAreCreatedOnce(t *testing.T) {
	broker := "--kafka-brokers=" + startBroker(t)

	first := invoke(t, "topics", "create", broker, "--topic-prefix=a-", "--partitions=3", "--replication-factor=1")

	require.Equal(t, 0, first.code, first.stderr)
	require.Equal(t, "created a-delivery-events\ncreated a-latest-delivery-table\ncreated a-status-tallies\n"+
		"created a-count-per-status-table\ncreated a-delivery-events-dead-letter\ncreated a-delivery-summaries\n"+
		"created a-deliverystat-control\n", first.stdout)

	again := invoke(t, "topics", "create", broker, "--topic-prefix=a-", "--replication-factor=1")
	require.Equal(t, 0, again.code, again.stderr)
	require.NotContains(t, again.stdout, "created")

	check := invoke(t, "topics", "check", broker, "--topic-prefix=a-", "--allow-unsafe")
	require.Equal(t, 0, check.code, check.stdout)
	require.True(t, strings.HasSuffix(check.stdout, "\n7 topics are as they must be\n"), check.stdout)
	strict := invoke(t, "topics", "check", broker, "--topic-prefix=a-")
	require.Equal(t, 1, strict.code)
	require.Contains(t, strict.stdout, "unsafe: topic a-delivery-events has replication factor 1: the loss of one broker loses its records\n")
	require.Len(t, strict.lines(), 1)
	require.NotContains(t, strict.stdout, "as they must be")
}

// Serve goes on without a source that does not exist, but a check is asked whether
// all is there. With sources we write to the input, so batches must fit there too.
func TestAMissingSourceIsAFaultOfTheCheck(t *testing.T) {
	address := startBroker(t)
	broker := "--kafka-brokers=" + address
	makeTopic(t, address, "delivery-events", 2, map[string]string{"max.message.bytes": "1000"})
	makeTopic(t, address, "orders", 2, nil)

	created := invoke(t, "topics", "create", broker, "--replication-factor=1", "--sources=orders,parcels=easypost")
	checked := invoke(t, "topics", "check", broker, "--allow-unsafe", "--sources=orders,parcels=easypost")
	without := invoke(t, "topics", "check", broker, "--allow-unsafe")

	require.Equal(t, 2, created.code)
	require.Contains(t, created.stdout, "warning: source parcels does not exist: who writes it makes it\n")
	require.NotContains(t, created.stdout, "orders")
	require.Equal(t, []string{"deliverystat: existing topics are wrong: topic delivery-events has max.message.bytes=1000, want at least 1048588"}, created.lines())
	require.Equal(t, 1, checked.code)
	require.Contains(t, checked.stdout, "wrong: source parcels does not exist\n")
	require.Contains(t, checked.stdout, "wrong: topic delivery-events has max.message.bytes=1000, want at least 1048588\n")
	require.Equal(t, []string{"deliverystat: topics are not as they must be: 2 faults"}, checked.lines())
	require.Equal(t, 0, without.code, without.stdout)
	require.Contains(t, without.stdout, "7 topics are as they must be\n")

	makeTopic(t, address, "parcels", 2, nil)
	makeTopic(t, address, "big", 2, nil)
	again := invoke(t, "topics", "check", broker, "--allow-unsafe", "--events-topic=big", "--sources=orders,parcels=easypost")
	require.Equal(t, 0, again.code, again.stdout)
	require.Contains(t, again.stdout, "\n9 topics are as they must be\n")

	itself := invoke(t, "topics", "check", broker, "--sources=status-tallies")
	require.Equal(t, 2, itself.code)
	require.Contains(t, itself.stderr, "--sources: status-tallies is written by this deployment")
}

func TestTablesTakeThePartitionsOfAnInputThatExists(t *testing.T) {
	address := startBroker(t)
	makeTopic(t, address, "delivery-events", 5, nil)

	got := invoke(t, "topics", "create", "--kafka-brokers="+address, "--partitions=3", "--replication-factor=1")

	require.Equal(t, 0, got.code, got.stderr)
	admin, err := sarama.NewClusterAdmin([]string{address}, sarama.NewConfig())
	require.NoError(t, err)
	defer func() { require.NoError(t, admin.Close()) }()
	described, err := admin.DescribeTopics([]string{"latest-delivery-table", "count-per-status-table", "status-tallies"})
	require.NoError(t, err)
	counts := map[string]int{}
	for _, d := range described {
		counts[d.Name] = len(d.Partitions)
	}
	require.Equal(t, map[string]int{"latest-delivery-table": 5, "count-per-status-table": 1, "status-tallies": 1}, counts)
}

func TestWrongTopicsAreNamed(t *testing.T) {
	address := startBroker(t)
	makeTopic(t, address, "delivery-events", 4, nil)
	makeTopic(t, address, "latest-delivery-table", 3, map[string]string{"cleanup.policy": "compact"})
	makeTopic(t, address, "count-per-status-table", 1, map[string]string{"cleanup.policy": "delete"})

	created := invoke(t, "topics", "create", "--kafka-brokers="+address, "--replication-factor=1")
	checked := invoke(t, "topics", "check", "--kafka-brokers="+address, "--allow-unsafe")
	served := invoke(t, "serve", "--kafka-brokers="+address, "--allow-unsafe", "--state-dir="+t.TempDir(),
		"--http-address=127.0.0.1:0", "--admin-address=127.0.0.1:0", "--log-level=error")

	require.Equal(t, 2, created.code)
	require.Equal(t, []string{"deliverystat: existing topics are wrong: topic latest-delivery-table has 3 partitions, want 4; " +
		"topic count-per-status-table has cleanup.policy=delete, want compact"}, created.lines())
	require.Contains(t, created.stdout, "created status-tallies\n", "what is missing is created all the same")
	require.Equal(t, 1, checked.code)
	require.Contains(t, checked.stdout, "wrong: topic latest-delivery-table has 3 partitions, want 4\n")
	require.Equal(t, 2, served.code)
	require.Len(t, served.lines(), 1)
	for _, part := range []string{
		"topic latest-delivery-table has 3 partitions, want 4", "topic count-per-status-table has cleanup.policy=delete, want compact",
		"deliverystat topics create --kafka-brokers=" + address,
	} {
		require.Contains(t, served.stderr, part)
	}
}

func TestServeNamesMissingTopicsAndTheCommandThatMakesThem(t *testing.T) {
	address := startBroker(t)

	got := invoke(t, "serve", "--kafka-brokers="+address, "--topic-prefix=x-", "--events-topic=orders", "--state-dir="+t.TempDir(),
		"--http-address=127.0.0.1:0", "--admin-address=127.0.0.1:0", "--log-level=error")

	require.Equal(t, 2, got.code)
	require.Equal(t, []string{"deliverystat: topics are not as they must be: topic orders does not exist; " +
		"topic x-latest-delivery-table does not exist; topic x-status-tallies does not exist; " +
		"topic x-count-per-status-table does not exist; topic x-delivery-events-dead-letter does not exist; topic x-delivery-summaries does not exist; " +
		"create what is missing by: deliverystat topics create --kafka-brokers=" + address + " --topic-prefix=x- --events-topic=orders"}, got.lines())
}

// Both are unsafe where one broker is all there is, so serve says how to go on.
func TestServeRefusesUnsafeTopics(t *testing.T) {
	address := startBroker(t)
	require.Equal(t, 0, invoke(t, "topics", "create", "--kafka-brokers="+address, "--replication-factor=1").code)

	got := invoke(t, "serve", "--kafka-brokers="+address, "--state-dir="+t.TempDir(),
		"--http-address=127.0.0.1:0", "--admin-address=127.0.0.1:0", "--log-level=error")

	require.Equal(t, 2, got.code)
	require.Len(t, got.lines(), 1)
	require.True(t, strings.HasSuffix(got.lines()[0], "(--allow-unsafe accepts what is unsafe, for development and tests)"), got.stderr)
}

func TestMoreReplicasThanBrokers(t *testing.T) {
	got := invoke(t, "topics", "create", "--kafka-brokers="+startBroker(t))

	require.Equal(t, 2, got.code)
	require.Equal(t, []string{"deliverystat: creating topic delivery-events with --replication-factor=3: more than there are brokers"}, got.lines())
}
