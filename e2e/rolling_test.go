//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/e2e/replica"
)

// Both replicas are restarted in turn, twice, as a deployment rolls, in the midst
// of the load. A client that sends its requests to those that say they are ready
// sees no error, no partition moves, and all is exact.
func TestARollingDeployLosesNoRequest(t *testing.T) {
	d := install(t)
	flags := []string{"--drain-delay=1s", "--session-timeout=60s"}
	one, two := d.serve("one", flags...), d.serve("two", flags...)
	waitReady(t, one, two)
	d.waitShared(one, two)
	simulation := d.simulate("--events=120000", "--deliveries=20000", "--rate=3000", "--seed=29", "--duplicates=0.1", "--out-of-order=0.1")
	d.waitProduced(5000)

	b := balance(t, one, two)
	for round := range 2 {
		for _, r := range []*replica.Replica{one, two} {
			other := one
			if r == one {
				other = two
			}
			generations := d.generations(other)
			answered := b.answered(other)
			code, err := r.Stop()
			require.NoError(t, err)
			require.Zero(t, code, "exit code of replica %s", r.Name)
			require.NoError(t, r.Start())
			waitReady(t, r)
			b.waitAnswers(r, b.answered(r)+20)
			require.Greater(t, b.answered(other), answered, "requests went to the other")
			require.Equal(t, generations, d.generations(other), "round %d: the group of replica %s has not rebalanced", round, other.Name)
			require.Equal(t, map[string]int64{d.topic("latest-delivery"): 1, d.topic("count-per-status"): 1}, d.generations(r))
		}
	}

	require.Empty(t, b.stop())
	d.requireExact(simulation.wait(t), one, two)
}

// generations returns how many generations of its groups a replica has joined.
func (d *deployment) generations(r *replica.Replica) map[string]int64 {
	d.t.Helper()
	m, err := r.Metrics(d.t.Context())
	require.NoError(d.t, err)
	return m.By("deliverystat_rebalances_total", "group")
}

// balancer sends requests to ready replicas in turn, as a load balancer does.
type balancer struct {
	t        *testing.T
	replicas []*replica.Replica
	ready    []atomic.Bool
	answers  []atomic.Int64
	cancel   context.CancelFunc
	running  sync.WaitGroup

	mu     sync.Mutex
	errors []string
}

// balance starts to send requests, and to ask for readiness several times within
// a drain delay.
func balance(t *testing.T, replicas ...*replica.Replica) *balancer {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b := &balancer{t: t, replicas: replicas, ready: make([]atomic.Bool, len(replicas)), answers: make([]atomic.Int64, len(replicas)), cancel: cancel}
	t.Cleanup(func() { b.stop() })
	for i, r := range replicas {
		b.ready[i].Store(true)
		b.running.Go(func() {
			for ctx.Err() == nil {
				ready, _ := r.Ready(ctx)
				b.ready[i].Store(ready)
				wait(ctx, 100*time.Millisecond)
			}
		})
	}
	b.running.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			if n := i % len(replicas); b.ready[n].Load() {
				b.ask(ctx, n)
			}
			wait(ctx, 5*time.Millisecond)
		}
	})
	return b
}

func (b *balancer) ask(ctx context.Context, n int) {
	a, err := b.replicas[n].Get(ctx, "/v1/counts")
	switch {
	case ctx.Err() != nil:
	case err != nil:
		b.fail(err.Error())
	case a.Status != http.StatusOK:
		b.fail(fmt.Sprintf("replica %s: %d %s", b.replicas[n].Name, a.Status, a.Body))
	default:
		b.answers[n].Add(1)
	}
}

func (b *balancer) fail(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.errors = append(b.errors, text)
}

// answered returns how many requests r has answered.
func (b *balancer) answered(r *replica.Replica) int64 {
	for i := range b.replicas {
		if b.replicas[i] == r {
			return b.answers[i].Load()
		}
	}
	return 0
}

// waitAnswers waits until r has answered n requests.
func (b *balancer) waitAnswers(r *replica.Replica, n int64) {
	b.t.Helper()
	eventually(b.t, fmt.Sprintf("replica %s has answered %d requests", r.Name, n), func() (string, bool) {
		got := b.answered(r)
		return fmt.Sprint(got), got >= n
	})
}

// stop ends the requests and returns the errors that there were.
func (b *balancer) stop() []string {
	b.cancel()
	b.running.Wait()
	return b.errors
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
