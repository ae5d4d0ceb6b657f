//go:build e2e

package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/e2e/kafka"
)

// What was refused is listed, mended and sent back, twice. It counts once.
func TestAReplayedFixedEventCountsOnce(t *testing.T) {
	d := install(t)
	id, good := idIn(2, 0), idIn(5, 0)
	broken := d.record(id, "CREATED", 0)
	broken.Value = []byte(strings.Replace(string(broken.Value), `"status":"CREATED"`, `"status":7`, 1))
	broken.Headers = []kafka.Header{{Key: "trace", Value: []byte("t1")}}
	d.produce(broken, d.record(good, "CREATED", 0))
	r := d.serve("one")
	waitReady(t, r)
	d.requireExact(truth{Counts: map[string]int64{"CREATED": 1}, Live: 1}, r)

	listed := d.run([]string{"dead-letters", "list"}, "--reason=wrong_type", "--delivery-id="+id, "--output=json")
	require.Zero(t, listed.ExitCode, listed.Stderr)
	require.Len(t, lines(listed.Stdout), 1)
	path := filepath.Join(d.dir, "mended.jsonl")
	mended := strings.Replace(listed.Stdout, `\"status\":7`, `\"status\":\"CREATED\"`, 1)
	require.NotEqual(t, listed.Stdout, mended)
	require.NoError(t, os.WriteFile(path, []byte(mended), 0o600))
	dry := d.run([]string{"dead-letters", "replay"}, "--from="+path, "--dry-run")
	require.Contains(t, dry.Stdout, "1 would be sent to "+d.events())
	for range 2 {
		d.mustRun([]string{"dead-letters", "replay"}, "--from="+path)
	}

	d.requireExact(truth{Counts: map[string]int64{"CREATED": 2}, Live: 2}, r)
	d.mustRun([]string{"verify"}, "--from=events")
	log, err := d.client.ReadAll(t.Context(), d.events())
	require.NoError(t, err)
	require.Len(t, log[2], 3, "the dry run sent nothing")
	require.Equal(t, []kafka.Header{{Key: "trace", Value: []byte("t1")}}, log[2][1].Headers)
	require.Equal(t, map[string]int64{"wrong_type": 1}, d.deadLetters())
	require.Contains(t, d.run([]string{"explain", id}).Stdout, "the table agrees at position 3")
}

// The first event of a delivery comes after the delivery was closed and
// forgotten. It is applied only on demand, and nothing else resurrects.
func TestALateEventIsAppliedOnDemand(t *testing.T) {
	d := newDeployment(t)
	d.createTopics("--partitions=1")
	at := func(id, status string, second, recorded int) kafka.Record {
		r := d.record(id, status, second)
		r.Partition, r.Timestamp = 0, start.Add(time.Duration(recorded)*time.Second)
		return r
	}
	d.produce(at("a", "DELIVERED", 10, 10), at("b", "CREATED", 100, 100), at("a", "CREATED", 0, 101), at("a", "PICKED_UP", 5, 102))
	r := d.serve("one", "--allowed-lateness=1m", "--abandon-after=1h", "--max-future=1m")
	waitReady(t, r)
	d.requireExact(truth{Counts: map[string]int64{"CREATED": 1}, Live: 1}, r)
	require.Equal(t, map[string]int64{"late": 2}, d.deadLetters())

	without := d.run([]string{"dead-letters", "replay"}, "--delivery-id=a")
	require.Zero(t, without.ExitCode, without.Stderr)
	require.Contains(t, without.Stdout, "0 sent to "+d.events()+"; left out: 2 late")
	for range 2 {
		d.mustRun([]string{"dead-letters", "replay"}, "--delivery-id=a", "--accept-late", "--limit=1")
	}

	d.requireExact(truth{Counts: map[string]int64{"CREATED": 2}, Live: 2}, r)
	d.produce(at("a", "PICKED_UP", 5, 103))
	d.requireExact(truth{Counts: map[string]int64{"CREATED": 2}, Live: 2}, r)
	require.Equal(t, map[string]int64{"late": 3}, d.deadLetters())
	d.mustRun([]string{"verify"}, "--from=events")
	explained := d.run([]string{"explain", "a"})
	require.Zero(t, explained.ExitCode, explained.Stdout)
	require.Contains(t, explained.Stdout, "it is late, and marked to be applied all the same")
	require.Contains(t, explained.Stdout, "the table agrees at position 7")
}
