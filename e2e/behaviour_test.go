//go:build e2e

package e2e_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/e2e/harness"
	"deliverystat/processors/market"
	"deliverystat/processors/processorstest"
)

// Two processes on a real Kafka behave as the model says. The behaviour that
// stops the broker has one of its own. It is stopped in good order: one that is
// killed may forget, when it starts again, to write the markers of open
// transactions (KAFKA-20734). They stay open then until an operator ends them,
// which no service can heal.
func TestBehaviour(t *testing.T) {
	processorstest.Run(t, func(t *testing.T, rules market.Rules) processorstest.Harness {
		config := harness.Config{Binary: binary, Brokers: shared.Addresses(), Partitions: 4, Replicas: 2}
		if strings.HasSuffix(t.Name(), "/BrokerRestart") {
			cluster := ownBroker(t)
			config.Brokers = cluster.Addresses()
			config.RestartBroker = func(tb testing.TB) {
				tb.Helper()
				require.NoError(tb, cluster.StopNode(1))
				require.NoError(tb, cluster.StartNode(1))
				require.NoError(tb, cluster.WaitReady(tb.Context()))
			}
		}
		return harness.Start(t, config, rules)
	})
}
