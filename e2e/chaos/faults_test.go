//go:build chaos

package chaos_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/e2e/chaos"
	"deliverystat/e2e/kafka"
	"deliverystat/e2e/proxy"
	"deliverystat/e2e/replica"
)

// leastPositions is how many different positions have to be answered from the
// moment at which a fault strikes: silence must not pass.
const leastPositions = 5

// strike lets a fault happen, heals it, and waits until every replica is ready
// and reflects what was written when it was healed.
func (r *rig) strike(s chaos.Step) {
	r.t.Helper()
	r.t.Logf("%s", s)
	r.During(string(s.Fault), func() {
		began := time.Now()
		r.inflict(s)
		r.awaitReady(r.replicas...)
		r.catchUp()
		r.eventually("enough is answered", func() (string, bool) {
			n := r.Positions(began)
			return strconv.Itoa(n), n >= leastPositions
		})
	})
	r.calm(s.Calm)
}

func (r *rig) inflict(s chaos.Step) {
	r.t.Helper()
	target := r.replicas[s.Target]
	switch s.Fault {
	case chaos.KillReplica, chaos.KillAndWipe:
		require.NoError(r.t, target.Kill())
		if s.Fault == chaos.KillAndWipe {
			require.NoError(r.t, target.WipeDisk())
		}
		require.NoError(r.t, target.Start())
	case chaos.KillAtFrame:
		r.killAt(target, chaos.Frames[s.Frame])
		require.NoError(r.t, target.Start())
	case chaos.WipeTwo:
		other := r.replicas[(s.Target+1)%3]
		for _, one := range []*replica.Replica{target, other} {
			require.NoError(r.t, one.Kill())
			require.NoError(r.t, one.WipeDisk())
		}
		require.NoError(r.t, target.Start())
		r.cutAll(s.Lasts / 2)
		require.NoError(r.t, other.Start()) // which moves partitions in the midst of it
		r.cutAll(s.Lasts / 2)
	case chaos.LeaveForGood:
		require.NoError(r.t, target.Kill())
		r.awaitTakeover(target)
		require.NoError(r.t, target.Start())
	case chaos.FreezeReplica:
		require.NoError(r.t, target.Pause())
		r.awaitTakeover(target)
		require.NoError(r.t, target.Resume())
	case chaos.FreezeLonger:
		require.NoError(r.t, target.Pause())
		r.calm(transactionTimeout)
		r.awaitTakeover(target)
		require.NoError(r.t, target.Resume())
	case chaos.Scale:
		for _, one := range []*replica.Replica{target, r.replicas[(s.Target+1)%3]} {
			code, err := one.Stop()
			require.NoError(r.t, err)
			require.Zero(r.t, code, "replica %s", one.Name)
		}
		last := r.replicas[(s.Target+2)%3]
		r.eventually("replica "+last.Name+" owns all partitions", func() (string, bool) {
			n, err := last.Owned(r.t.Context(), prefix+"latest-delivery")
			return fmt.Sprint(n, err), n == partitions
		})
		require.NoError(r.t, target.Start())
		require.NoError(r.t, r.replicas[(s.Target+1)%3].Start())
	case chaos.Twin:
		r.twin(target)
	case chaos.RestartAll:
		for _, one := range r.replicas {
			code, err := one.Stop()
			require.NoError(r.t, err)
			require.Zero(r.t, code, "replica %s", one.Name)
			require.NoError(r.t, one.Start())
			r.awaitReady(one)
		}
	case chaos.KillBroker:
		require.NoError(r.t, r.brokers.KillNode(s.Target+1))
		r.calm(s.Lasts)
		require.NoError(r.t, r.brokers.StartNode(s.Target+1))
		r.awaitInSync()
	case chaos.SlowBroker:
		r.brokers.Proxies[s.Target].Slow(200 * time.Millisecond)
		r.calm(s.Lasts)
		r.brokers.Proxies[s.Target].Slow(0)
	case chaos.CutAll:
		r.cutAll(s.Lasts)
	case chaos.LoseOutcomes:
		r.loseOutcomes(10)
	default:
		r.t.Fatalf("unknown fault %q", s.Fault)
	}
}

// transactionTimeout is longer than the brokers wait for the end of one.
const transactionTimeout = 12 * time.Second

// cutAll ends all connections four times within d.
func (r *rig) cutAll(d time.Duration) {
	r.t.Helper()
	for range 4 {
		for _, p := range r.brokers.Proxies {
			p.CutAll()
		}
		r.calm(d / 4)
	}
}

// twin runs a second process under the name of a replica. One of the two has to
// end by itself, with an alarm; whichever is left, the replica goes on alone.
func (r *rig) twin(target *replica.Replica) {
	r.t.Helper()
	twin := r.prepare(r.t.TempDir(), target.Name)
	require.NoError(r.t, twin.Start())
	select {
	case <-target.Process().Done():
		require.Equal(r.t, 1, target.Process().ExitCode())
		require.NoError(r.t, twin.Kill())
		require.NoError(r.t, target.Start())
	case <-twin.Process().Done():
		require.Equal(r.t, 1, twin.Process().ExitCode())
	case <-time.After(patience):
		r.t.Fatal("both of two twins go on")
	}
}

// calm lets time pass while writers and readers are at work: the fault, or its
// absence, is what takes this long.
func (r *rig) calm(d time.Duration) {
	r.t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.t.Context().Done():
	}
}

// judgeAll lets judge decide on the frames of all brokers; nil heals.
func (r *rig) judgeAll(judge func(proxy.Frame) proxy.Verdict) {
	for _, p := range r.brokers.Proxies {
		p.Judge(judge)
	}
}

// killAt kills a replica when it sends, or is about to be told, what at says.
func (r *rig) killAt(target *replica.Replica, at proxy.Frame) {
	r.t.Helper()
	hit := make(chan struct{})
	var once sync.Once
	r.judgeAll(func(f proxy.Frame) proxy.Verdict {
		if f.API != at.API || f.Answer != at.Answer || f.ClientID != "deliverystat-"+target.Name {
			return proxy.Pass
		}
		once.Do(func() {
			_ = target.Process().Signal(9) // its end is awaited below
			close(hit)
		})
		return proxy.Cut
	})
	r.eventually("replica "+target.Name+" comes to the point of its death", func() (string, bool) {
		select {
		case <-hit:
			return "", true
		default:
			return "", false
		}
	})
	<-target.Process().Done()
	r.judgeAll(nil)
}

// loseOutcomes cuts the connection between a commit and its answer, n times.
func (r *rig) loseOutcomes(n int64) {
	r.t.Helper()
	var lost atomic.Int64
	r.judgeAll(func(f proxy.Frame) proxy.Verdict {
		if f.API == proxy.EndTxn && f.Answer && lost.Add(1) <= n {
			return proxy.Cut
		}
		return proxy.Pass
	})
	r.eventually("outcomes are lost", func() (string, bool) {
		return strconv.FormatInt(lost.Load(), 10), lost.Load() >= n
	})
	r.judgeAll(nil)
}

// awaitTakeover waits until the others own all partitions.
func (r *rig) awaitTakeover(dead *replica.Replica) {
	r.t.Helper()
	r.eventually("the others own all partitions", func() (string, bool) {
		owned := 0
		for _, one := range r.replicas {
			if one != dead {
				n, err := one.Owned(r.t.Context(), prefix+"latest-delivery")
				if err != nil {
					return err.Error(), false
				}
				owned += n
			}
		}
		return strconv.Itoa(owned), owned == partitions
	})
}

func (r *rig) awaitInSync() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	require.NoError(r.t, r.brokers.WaitReady(ctx))
	r.eventually("all replicas of all partitions are in sync", func() (string, bool) {
		ok, state, err := r.client.InSync(r.t.Context())
		if err != nil {
			return err.Error(), false
		}
		return state, ok
	})
}

// catchUp waits until every replica reflects what is written now.
func (r *rig) catchUp() {
	r.t.Helper()
	end, err := r.client.Ends(r.t.Context(), prefix+"delivery-events", kafka.Committed)
	require.NoError(r.t, err)
	for _, one := range r.replicas {
		r.eventually("replica "+one.Name+" catches up", func() (string, bool) {
			counts, err := one.Counts(r.t.Context(), "")
			if err != nil {
				return err.Error(), false
			}
			next, err := position(counts.AsOf.Position)
			require.NoError(r.t, err)
			for p := range end {
				// The last record before a marker, or before aborted ones.
				if next[p] < end[p]-2*portion {
					return counts.AsOf.Position, false
				}
			}
			return counts.AsOf.Position, true
		})
	}
}
