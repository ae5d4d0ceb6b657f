//go:build e2e

package e2e_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/e2e/kafka"
	"deliverystat/e2e/replica"
)

// A table that somebody made by hand with another number of partitions than the
// input would split deliveries: serve refuses, and so does topics check.
func TestATableWithOtherPartitionsIsRefused(t *testing.T) {
	d := newDeployment(t)
	table := d.topic("latest-delivery-table")
	require.NoError(t, d.client.CreateTopics(t.Context(),
		kafka.Topic{Name: d.events(), Partitions: partitions},
		kafka.Topic{Name: table, Partitions: 3, Configs: map[string]string{"cleanup.policy": "compact"}}))
	d.run([]string{"topics", "create"}, "--replication-factor=1", "--allow-unsafe")

	message := d.requireRefusal(d.serve("one"))

	require.Contains(t, message, table)
	check := d.run([]string{"topics", "check"}, "--allow-unsafe")
	require.Equal(t, 1, check.ExitCode)
	require.Contains(t, check.Stdout+check.Stderr, table)
}

// A table topic that deletes by age would forget deliveries that still run.
func TestATableThatDeletesIsRefused(t *testing.T) {
	d := newDeployment(t)
	table := d.topic("latest-delivery-table")
	require.NoError(t, d.client.CreateTopics(t.Context(),
		kafka.Topic{Name: d.events(), Partitions: partitions},
		kafka.Topic{Name: table, Partitions: partitions, Configs: map[string]string{"cleanup.policy": "delete"}}))
	d.run([]string{"topics", "create"}, "--replication-factor=1", "--allow-unsafe")

	message := d.requireRefusal(d.serve("one"))

	require.Contains(t, message, table)
	require.Contains(t, message, "cleanup.policy")
	check := d.run([]string{"topics", "check"}, "--allow-unsafe")
	require.Equal(t, 1, check.ExitCode)
	require.Contains(t, check.Stdout+check.Stderr, "cleanup.policy")
}

// Without topics serve creates none, and says how to.
func TestMissingTopicsAreNamed(t *testing.T) {
	d := newDeployment(t)

	message := d.requireRefusal(d.serve("one"))

	for _, topic := range []string{"delivery-events", "latest-delivery-table", "status-tallies", "count-per-status-table", "delivery-events-dead-letter"} {
		require.Contains(t, message, d.topic(topic))
	}
	require.Contains(t, message, "topics create")
}

// Topics as `topics create` makes them pass `topics check`.
func TestCreatedTopicsPassTheCheck(t *testing.T) {
	d := install(t)

	check := d.run([]string{"topics", "check"}, "--allow-unsafe")

	require.Zero(t, check.ExitCode, "%s%s", check.Stdout, check.Stderr)
}

// requireRefusal waits until a replica has ended by itself because of its
// topics, and returns what it said.
func (d *deployment) requireRefusal(r *replica.Replica) string {
	d.t.Helper()
	select {
	case <-r.Process().Done():
	case <-time.After(patience):
		d.t.Fatal("serve does not refuse")
	}
	require.Equal(d.t, 2, r.Process().ExitCode())
	log, err := os.ReadFile(r.LogFile())
	require.NoError(d.t, err)
	return string(log)
}
