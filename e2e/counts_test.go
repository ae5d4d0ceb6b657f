//go:build e2e

package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/e2e/replica"
)

// load is the input of the tests that need a large one: what real inputs do
// wrong is all in it.
var load = []string{
	"--events=300000", "--deliveries=50000", "--seed=11",
	"--duplicates=0.1", "--out-of-order=0.1", "--malformed=0.01", "--unknown-status=0.01",
}

// Two replicas share the work on 300,000 events of 50,000 deliveries. In the
// end both APIs, both scrapes and the audit say what the simulator says, to the
// unit, and exactly the malformed records are dead letters.
func TestEveryReaderSeesTheTruth(t *testing.T) {
	d := install(t)
	one, two := d.serve("one"), d.serve("two")

	truth := d.simulate(load...).wait(t)

	require.EqualValues(t, 300000, truth.Events)
	require.Positive(t, truth.Malformed)
	waitReady(t, one, two)
	d.requireExact(truth, one, two)
	require.Equal(t, truth.Malformed, sum(d.deadLetters()))
	results := map[string]int64{}
	for _, r := range []*replica.Replica{one, two} {
		m, err := r.Metrics(t.Context())
		require.NoError(t, err)
		for result, n := range m.By("deliverystat_events_total", "result") {
			results[result] += n
		}
	}
	require.EqualValues(t, 300000, sum(results), "events read by both owners: %v", results)
	require.Equal(t, truth.Malformed, results["dead_letter"])
}
