//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/e2e/broker"
	"deliverystat/e2e/harness"
	"deliverystat/e2e/kafka"
	"deliverystat/processors/market"
	"deliverystat/processors/processorstest"
)

// Two processes on a real Kafka behave as the model says. The behaviour that
// restarts brokers has some of its own.
func TestBehaviour(t *testing.T) {
	processorstest.Run(t, func(t *testing.T, rules market.Rules) processorstest.Harness {
		config := harness.Config{Binary: binary, Brokers: shared.Addresses(), Partitions: 4, Replicas: 2}
		if strings.HasSuffix(t.Name(), "/BrokerRestart") {
			onThreeBrokers(t, &config)
		}
		return harness.Start(t, config, rules)
	})
}

// onThreeBrokers has config run on a cluster whose brokers are killed and
// started again by turns. A single broker would not do: while its partitions
// have no leader it forgets to write the markers of transactions that are being
// decided (KAFKA-20734). They stay open then until an operator ends them, which
// no service can heal.
func onThreeBrokers(t *testing.T, config *harness.Config) {
	t.Helper()
	const nodes = 3
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cluster, err := broker.Start(ctx, t.TempDir(), nodes)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, cluster.Close())
		if t.Failed() {
			for node := 1; node <= nodes; node++ {
				keepLog(os.Stderr, fmt.Sprintf("%s-broker-%d", t.Name(), node), cluster.LogFile(node))
			}
		}
	})
	client := connect(t, cluster)
	restarts := 0
	config.Brokers, config.ReplicationFactor = cluster.Addresses(), nodes
	config.RestartBroker = func(testing.TB) {
		node := restarts%nodes + 1
		restarts++
		require.NoError(t, cluster.KillNode(node))
		require.NoError(t, cluster.StartNode(node))
		// The next one must not be the only one that has everything.
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		require.NoError(t, cluster.WaitReady(ctx))
		waitInSync(t, client)
	}
}

func waitInSync(t *testing.T, client *kafka.Client) {
	t.Helper()
	eventually(t, "all replicas are in sync", func() (string, bool) {
		inSync, state, err := client.InSync(t.Context())
		if err != nil {
			return err.Error(), false
		}
		return state, inSync
	})
}
