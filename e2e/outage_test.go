//go:build e2e

package e2e_test

import (
	"context"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/e2e/broker"
)

// ownBroker starts a broker that the test may stop.
func ownBroker(t *testing.T) *broker.Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cluster, err := broker.Start(ctx, t.TempDir(), 1)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, cluster.Close())
		if t.Failed() {
			keepLog(os.Stderr, t.Name()+"-broker", cluster.LogFile(1))
		}
	})
	return cluster
}

func restart(t *testing.T, cluster *broker.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, cluster.StartNode(1))
	require.NoError(t, cluster.WaitReady(ctx))
}

// The broker is not there when serve starts: it lives, is not ready, says what
// it waits for, and goes on once the broker is there.
func TestServeWaitsForAnAbsentBroker(t *testing.T) {
	cluster := ownBroker(t)
	d := newDeploymentOn(t, cluster)
	d.createTopics("--partitions=" + strconv.Itoa(partitions))
	d.produce(d.record(idIn(0, 0), "CREATED", 0))
	require.NoError(t, cluster.StopNode(1))

	r := d.serve("one")
	eventually(t, "serve says that it waits", func() (string, bool) {
		log, err := os.ReadFile(r.LogFile())
		require.NoError(t, err)
		return lastLine(log), strings.Contains(string(log), "waiting for Kafka")
	})
	live, err := r.GetAdmin(t.Context(), "/livez")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, live.Status)
	ready, state := r.Ready(t.Context())
	require.False(t, ready, state)
	counts, err := r.Get(t.Context(), "/v1/counts")
	require.NoError(t, err)
	require.Equal(t, http.StatusServiceUnavailable, counts.Status)
	require.NotEmpty(t, counts.Header.Get("Retry-After"))

	restart(t, cluster)
	waitReady(t, r)
	d.requireExact(truth{Counts: map[string]int64{"CREATED": 1}, Live: 1}, r)
}

func lastLine(log []byte) string {
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	return lines[len(lines)-1]
}

// The only broker is out of reach for 30 seconds in the midst of the load. The
// replica answers what it knows meanwhile, says that this is stale, and is exact
// again by itself. The broker lives on: one that is killed alone may lose the
// markers of transactions (KAFKA-20734), which nobody heals by himself.
func TestABrokerOutageHealsByItself(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cluster, err := broker.StartProxied(ctx, t.TempDir(), 1)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cluster.Close()) })
	d := newDeploymentOn(t, cluster.Cluster)
	d.createTopics("--partitions=" + strconv.Itoa(partitions))
	r := d.serve("one", "--stale-after=5s", "--kafka-brokers="+cluster.ClientAddresses())
	waitReady(t, r)
	simulation := d.simulate("--events=60000", "--deliveries=10000", "--rate=3000", "--seed=5",
		"--duplicates=0.1", "--out-of-order=0.1", "--malformed=0.01")
	d.waitProduced(20000)
	before, err := r.Counts(t.Context(), "")
	require.NoError(t, err)

	cluster.Proxies[0].Refuse(true)
	outage := time.NewTimer(30 * time.Second)
	eventually(t, "the answers say that they are stale", func() (string, bool) {
		counts, err := r.Counts(t.Context(), "")
		require.NoError(t, err, "a replica that was ready goes on answering")
		return counts.AsOf.Position, counts.AsOf.Stale
	})
	<-outage.C
	cluster.Proxies[0].Refuse(false)

	truth := simulation.wait(t)
	require.Positive(t, truth.Live)
	d.requireExact(truth, r)
	after, err := r.Counts(t.Context(), "")
	require.NoError(t, err)
	require.False(t, after.AsOf.Stale)
	then, err := before.AsOf.Positions(partitions)
	require.NoError(t, err)
	now, err := after.AsOf.Positions(partitions)
	require.NoError(t, err)
	for p := range then {
		require.GreaterOrEqual(t, now[p], then[p], "partition %d went back", p)
	}
}
