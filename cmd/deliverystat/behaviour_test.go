package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/e2e/harness"
	"deliverystat/e2e/replica"
	"deliverystat/processors/market"
	"deliverystat/processors/processorstest"
)

// asProgram makes the test binary act as the program, so that a replica is a
// process that can be killed.
const asProgram = "TEST_BINARY_AS_DELIVERYSTAT"

// Two processes on a fake broker behave as the model says, whatever is done to
// them.
func TestBehaviour(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	processorstest.Run(t, func(t *testing.T, rules market.Rules) processorstest.Harness {
		t.Parallel()
		return harness.Start(t, harness.Config{
			Binary: replica.Binary(self), Env: []string{asProgram + "=1"}, Brokers: startBroker(t), Partitions: 4, Replicas: 2,
		}, rules)
	})
}
