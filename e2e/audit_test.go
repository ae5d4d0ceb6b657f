//go:build e2e

package e2e_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/e2e/kafka"
	"deliverystat/e2e/replica"
)

// drift returns what the last audits found, as a replica exports it, and whether
// it exports that.
func drift(t *testing.T, r *replica.Replica) (byStatus map[string]int64, audited bool) {
	m, err := r.Metrics(t.Context())
	require.NoError(t, err)
	_, audited = m["deliverystat_audit_last_success_timestamp_seconds"]
	return m.By("deliverystat_count_drift", "status"), audited
}

// Somebody writes a wrong tally, while nothing else happens that could mend it.
// The counts are wrong until the next audit; that mends them, and all replicas say
// how much was wrong until the one after it.
func TestAWrongTallyIsFoundAndMended(t *testing.T) {
	d := install(t)
	one, two := d.serve("one", "--audit-interval=2s"), d.serve("two", "--audit-interval=2s")
	truth := d.simulate("--events=20000", "--seed=5").wait(t)
	waitReady(t, one, two)
	d.requireExact(truth, one, two)
	for _, r := range []*replica.Replica{one, two} {
		eventually(t, "replica "+r.Name+" has audited, and found nothing", func() (string, bool) {
			found, audited := drift(t, r)
			return fmt.Sprint(found), audited && len(nonZero(found)) == 0
		})
	}
	tally := d.lastTally(0)
	wrong := *tally
	wrong.Full, wrong.Check, wrong.Audited, wrong.Part, wrong.Parts = false, false, codecs.None, 0, 1
	wrong.Scopes = []codecs.ScopeCounts{{Counts: []codecs.StatusCount{{Status: "CREATED", Live: 7_000_000}}}}

	_, err := d.client.Produce(t.Context(), kafka.Record{
		Topic: d.topic("status-tallies"), Key: []byte("0"), Value: codecs.AppendTally(nil, &wrong),
	})
	require.NoError(t, err)

	for _, r := range []*replica.Replica{one, two} {
		eventually(t, "replica "+r.Name+" tells of the drift", func() (string, bool) {
			found, _ := drift(t, r)
			return fmt.Sprint(found), found["CREATED"] < -6_000_000
		})
	}
	d.requireExact(truth, one, two)
	for _, r := range []*replica.Replica{one, two} {
		eventually(t, "replica "+r.Name+" tells of no drift any more", func() (string, bool) {
			found, _ := drift(t, r)
			return fmt.Sprint(found), len(nonZero(found)) == 0
		})
	}
	var logs string
	for _, r := range []*replica.Replica{one, two} {
		b, err := os.ReadFile(r.LogFile())
		require.NoError(t, err)
		logs += string(b)
	}
	require.Contains(t, logs, "counts differed from what their partition tells, and are corrected")
}

// lastTally returns the newest tally of a source partition.
func (d *deployment) lastTally(partition int32) *codecs.Tally {
	d.t.Helper()
	all, err := d.client.ReadAll(d.t.Context(), d.topic("status-tallies"))
	require.NoError(d.t, err)
	var last *codecs.Tally
	for _, rec := range all[0] {
		tally, err := codecs.ReadTally(rec.Value)
		require.NoError(d.t, err)
		if tally.Partition == partition {
			last = tally
		}
	}
	require.NotNil(d.t, last)
	return last
}
