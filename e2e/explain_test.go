//go:build e2e

package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/e2e/kafka"
	"deliverystat/processors/market"
	"deliverystat/processors/processorstest"
)

// A market in which deliveries close, fall silent and are forgotten within
// seconds: what explain says of a delivery is what the reference model says, and
// the table agrees. Then the beginning of the log goes.
func TestExplainAgreesWithTheTableAndTheModel(t *testing.T) {
	d := newDeployment(t)
	require.NoError(t, d.client.CreateTopics(t.Context(), kafka.Topic{
		Name: d.events(), Partitions: partitions, Configs: map[string]string{"retention.ms": "-1"},
	}))
	d.createTopics()
	rules := market.DefaultRules()
	rules.Lateness, rules.AbandonAfter, rules.MaxFuture = 2*time.Minute, 5*time.Minute, time.Hour
	models := make([]*market.Model, partitions)
	for p := range models {
		models[p] = market.NewModel(rules)
	}
	decoder, err := codecs.NewDecoder(codecs.FormatAuto, rules.Lifecycle)
	require.NoError(t, err)
	var keys []string
	var records []kafka.Record
	for _, r := range processorstest.Market(t, 7, 3000) {
		p := processorstest.Partition([]byte(r.Key), partitions)
		models[p].Apply(processorstest.Entry(decoder, &processorstest.LogRecord{Record: r}, false))
		records = append(records, kafka.Record{Topic: d.events(), Partition: p, Timestamp: r.Timestamp, Key: []byte(r.Key), Value: r.Value})
		keys = append(keys, r.Key)
	}
	d.produce(records...)
	r := d.serve("one", "--allowed-lateness=2m", "--abandon-after=5m", "--max-future=1h")
	waitReady(t, r)
	d.countsAtEnd(r)

	rows := map[string]int{}
	for i := 0; i < len(keys); i += 211 {
		id := keys[i]
		got := d.run([]string{"explain", id})

		require.Zero(t, got.ExitCode, "%s%s", got.Stdout, got.Stderr)
		require.Contains(t, got.Stdout, "\nthe table agrees at position ")
		row := "row: none\n"
		if want, ok := models[processorstest.Partition([]byte(id), partitions)].Rows()[id]; ok {
			row = "row: " + rules.Lifecycle.Name(want.Status) + " since " + time.Unix(0, want.Since).UTC().Format(time.RFC3339Nano)
		}
		require.Contains(t, got.Stdout, "\n"+row)
		rows[row[:8]]++
	}
	require.Greater(t, len(rows), 1, "some are forgotten, some are not: %v", rows)

	last := string(records[len(records)-1].Key)
	p := processorstest.Partition([]byte(last), partitions)
	require.NoError(t, d.client.DeleteRecords(t.Context(), d.events(), p, 5))
	cut := d.run([]string{"explain", last})
	require.Zero(t, cut.ExitCode, cut.Stderr)
	require.Contains(t, cut.Stdout, "note: retention has cut offsets 0 to 4")
	verified := d.run([]string{"verify"}, "--from=events")
	require.Equal(t, 2, verified.ExitCode, verified.Stdout)
	require.Contains(t, verified.Stderr, "offset 0 is gone, the log begins at 5")
}
