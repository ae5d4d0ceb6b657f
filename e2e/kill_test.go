//go:build e2e

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/e2e/kafka"
	"deliverystat/e2e/replica"
)

// One of two replicas is killed three times in the midst of the load, and comes
// back on its disk or on an empty one. Every answer that either API gives
// meanwhile is the truth at the position that the answer names, and in the end
// all is exact.
func TestKillsNeverShowInAnAnswer(t *testing.T) {
	d := install(t)
	one, two := d.serve("one", "--audit-interval=1s"), d.serve("two", "--audit-interval=1s")
	waitReady(t, one, two)
	watchOne, watchTwo := watch(t, one), watch(t, two)

	// Slow enough that the load outlasts three restarts.
	simulation := d.simulate(append(load, "--rate=12000")...)
	for _, kill := range []struct {
		at   int64 // events in the input
		wipe bool
	}{{60000, false}, {130000, true}, {200000, false}} {
		d.waitProduced(kill.at)
		require.NoError(t, one.Kill())
		if kill.wipe {
			require.NoError(t, one.WipeDisk())
		}
		require.NoError(t, one.Start())
		waitReady(t, one)
	}
	truth := simulation.wait(t)
	d.requireExact(truth, one, two)
	require.Equal(t, truth.Malformed, sum(d.deadLetters()))

	world := d.world()
	for _, w := range []*watcher{watchOne, watchTwo} {
		answers := w.stop()
		require.Empty(t, w.unexpected, "replica %s", w.replica.Name)
		behind, distinct, last := 0, map[string]bool{}, make([]int64, partitions)
		for _, a := range answers {
			at, err := a.AsOf.Positions(partitions)
			require.NoError(t, err)
			for p := range at {
				require.GreaterOrEqual(t, at[p], last[p], "replica %s went back in partition %d: %s", w.replica.Name, p, a.AsOf.Position)
			}
			last = at
			live, closed := world.Counts("", at)
			require.Equal(t, nonZero(wide(live)), nonZero(a.Counts), "replica %s at %s", w.replica.Name, a.AsOf.Position)
			require.Equal(t, nonZero(wide(closed)), nonZero(a.Closed), "replica %s at %s", w.replica.Name, a.AsOf.Position)
			require.Equal(t, sum(a.Counts), a.Live)
			distinct[a.AsOf.Position] = true
			if a.AsOf.LagRecords > 0 {
				behind++
			}
		}
		t.Logf("replica %s: %d answers, %d of them behind the end, %d positions", w.replica.Name, len(answers), behind, len(distinct))
		// Not a measure of speed: without these the test could pass on refusals.
		require.GreaterOrEqual(t, behind, 100, "answers of replica %s that lag", w.replica.Name)
		require.GreaterOrEqual(t, len(distinct), 30, "positions of replica %s", w.replica.Name)
	}
	require.Zero(t, watchTwo.refusals, "the replica that was not killed was ready all the time")
	found, audited := drift(t, two)
	require.True(t, audited, "the rows of each partition were recounted")
	require.Empty(t, nonZero(found), "an audit finds no drift that is none")
}

// A replica that is frozen for longer than its session loses its partitions.
// When it wakes it believes that they are still its own: what it goes on to
// write must count for nothing, and it must find its way back.
func TestAFrozenReplicaDoesNoHarm(t *testing.T) {
	d := install(t)
	one, two := d.serve("one"), d.serve("two")
	waitReady(t, one, two)
	d.waitOwns(two, partitions/2)
	simulation := d.simulate("--events=60000", "--deliveries=10000", "--rate=3000", "--seed=13", "--duplicates=0.1", "--out-of-order=0.1")
	d.waitProduced(10000)

	require.NoError(t, one.Pause())
	d.waitOwns(two, partitions)
	require.NoError(t, one.Resume())

	truth := simulation.wait(t)
	d.requireExact(truth, one, two)
	d.waitOwns(one, partitions/2)
	d.requireExact(truth, one, two)
}

// A replica dies with an open transaction on the tallies, of which all counts are
// made. The others do not wait until the broker gives it up.
func TestADeadReplicasTransactionHoldsNoCountsBack(t *testing.T) {
	d := install(t)
	one := d.serve("one")
	waitReady(t, one)
	require.NoError(t, d.client.HoldTransaction(t.Context(), d.topic("latest-delivery")+"/ghost",
		kafka.Record{Topic: d.topic("status-tallies"), Key: []byte("0"), Value: []byte("never committed")}))
	truth := d.simulate("--events=2000", "--deliveries=400", "--seed=17").wait(t)
	d.requireExact(truth, one)
}

// waitProduced waits until the input holds n records.
func (d *deployment) waitProduced(n int64) {
	d.t.Helper()
	eventually(d.t, fmt.Sprintf("%d events are produced", n), func() (string, bool) {
		ends, err := d.client.Ends(d.t.Context(), d.events(), kafka.Committed)
		if err != nil {
			return err.Error(), false
		}
		var total int64
		for _, end := range ends {
			total += end
		}
		return strconv.FormatInt(total, 10), total >= n
	})
}

// watcher asks a replica for its counts every 50 ms and keeps the answers.
type watcher struct {
	replica    *replica.Replica
	answers    []replica.Counts
	refusals   int      // 503
	unexpected []string // answers that are neither counts nor a 503
	cancel     context.CancelFunc
	stopped    sync.WaitGroup
}

func watch(t *testing.T, r *replica.Replica) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &watcher{replica: r, cancel: cancel}
	t.Cleanup(func() { w.stop() })
	w.stopped.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				w.ask(ctx)
			}
		}
	})
	return w
}

func (w *watcher) ask(ctx context.Context) {
	a, err := w.replica.Get(ctx, "/v1/counts")
	if err != nil {
		return // not there: killed a moment ago
	}
	var counts replica.Counts
	switch {
	case a.Status == http.StatusServiceUnavailable:
		w.refusals++
	case a.Status != http.StatusOK || json.Unmarshal(a.Body, &counts) != nil:
		w.unexpected = append(w.unexpected, fmt.Sprintf("%d %s", a.Status, a.Body))
	default:
		w.answers = append(w.answers, counts)
	}
}

// stop ends the watching and returns the answers in order.
func (w *watcher) stop() []replica.Counts {
	w.cancel()
	w.stopped.Wait()
	return w.answers
}
