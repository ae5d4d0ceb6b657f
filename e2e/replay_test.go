//go:build e2e

package e2e_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/e2e/replica"
)

// Another installation reads the same input from its beginning, with groups,
// tables and partitions of a disk of its own: it says the same.
func TestAReplayIntoANewGroupSaysTheSame(t *testing.T) {
	d := install(t)
	one := d.serve("one")
	truth := d.simulate("--events=40000", "--deliveries=8000", "--seed=19", "--duplicates=0.1", "--out-of-order=0.1",
		"--malformed=0.01", "--unknown-status=0.01").wait(t)
	d.requireExact(truth, one)

	again := newDeployment(t)
	again.flags = []string{"--events-topic=" + d.events()}
	again.createTopics("--partitions=" + strconv.Itoa(partitions))
	two := again.serve("two")
	waitReady(t, two)
	end := "/v1/counts?min_position=" + d.end() + "&wait=5s"
	var second replica.Answer
	eventually(t, "the new installation answers at the end of the input", func() (string, bool) {
		var err error
		second, err = two.Get(t.Context(), end)
		require.NoError(t, err)
		return string(second.Body), second.Status == http.StatusOK
	})
	first, err := one.Get(t.Context(), end)
	require.NoError(t, err)
	require.Equal(t, withoutAge(t, first.Body), withoutAge(t, second.Body))
	again.mustRun([]string{"verify"})
	again.mustRun([]string{"verify"}, "--from=events")
	require.Equal(t, truth.Malformed, sum(again.deadLetters()))
}

// withoutAge is an answer without what says who gives it, and how old it is.
func withoutAge(t *testing.T, body []byte) map[string]any {
	t.Helper()
	var answer map[string]any
	require.NoError(t, json.Unmarshal(body, &answer))
	asOf, ok := answer["as_of"].(map[string]any)
	require.True(t, ok)
	delete(asOf, "staleness_seconds")
	delete(asOf, "replica")
	return answer
}

// The table is gone and made anew, while the group's offsets stand at the end of
// the input: everything is read again, and nothing is counted twice.
func TestARestartWithAnEmptyTable(t *testing.T) {
	d := install(t)
	one := d.serve("one")
	truth := d.simulate("--events=20000", "--deliveries=4000", "--seed=23", "--duplicates=0.1", "--out-of-order=0.1").wait(t)
	d.requireExact(truth, one)
	code, err := one.Stop()
	require.NoError(t, err)
	require.Zero(t, code)
	require.NoError(t, d.client.DeleteTopic(t.Context(), d.topic("latest-delivery-table")))
	eventually(t, "the table is made anew", func() (string, bool) {
		result := d.run([]string{"topics", "create"}, "--replication-factor=1", "--allow-unsafe")
		return result.Stdout + result.Stderr, result.ExitCode == 0
	})

	require.NoError(t, one.Start())
	waitReady(t, one)
	d.requireExact(truth, one)
}
