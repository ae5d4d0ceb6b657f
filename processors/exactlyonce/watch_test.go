package exactlyonce

import (
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// endings counts the ends of attempts by reason.
type endings struct {
	unobserved

	mu    sync.Mutex
	count map[string]int
}

func (e *endings) AttemptEnded(_, reason string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.count == nil {
		e.count = map[string]int{}
	}
	e.count[reason]++
}

func (e *endings) stalls() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.count["stalled"]
}

func (e *endings) all() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, c := range e.count {
		n += c
	}
	return n
}

// A callback that hangs half way holds its partition, and every commit. The
// attempt ends, another does the record again, and what the first one does when
// it wakes up counts for nothing.
func TestAHangingCallbackEndsTheAttempt(t *testing.T) {
	w := newWorld(t, fakeBroker(t))
	r := w.replica(t, "a")
	var ended endings
	var hung atomic.Bool
	wake, woken := make(chan struct{}), make(chan struct{})
	stop := r.inProcess(t, func(c *Config, _ func(*Attempt) *goka.GroupGraph) func(*Attempt) *goka.GroupGraph {
		c.Observer, c.StallAfter, c.RebalanceTimeout = &ended, 500*time.Millisecond, 2*time.Second
		return func(a *Attempt) *goka.GroupGraph {
			return goka.DefineGroup(goka.Group(w.Group),
				Consume(a, w.Input, func(l *ledger, r *Record) error {
					if r.Offset == 300 && hung.CompareAndSwap(false, true) {
						defer close(woken)
						<-wake
					}
					return l.observe(r)
				}),
				goka.Output(goka.Stream(w.Totals), RawCodec{}), goka.Persist(RawCodec{}))
		}
	})
	w.produce(t, 4000)
	w.waitConsumed(t)
	require.Equal(t, 1, ended.stalls())
	require.Equal(t, 1, ended.all())
	close(wake)
	<-woken
	w.produce(t, 1000)
	w.waitConsumed(t)
	stop()
	w.requireExact(t, r.Dir)
}

// silence makes the broker keep the records of a topic from the consumer that
// lets it wait so long, as if that had gone silent, until over.
func silence(t *testing.T, cluster *kfake.Cluster, topic string, waits time.Duration, over func() bool) (silent *atomic.Bool, kept *atomic.Int64) {
	t.Helper()
	silent, kept = &atomic.Bool{}, &atomic.Int64{}
	cluster.ControlKey(int16(kmsg.Fetch), func(request kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		fetch := request.(*kmsg.FetchRequest)
		if !silent.Load() || int64(fetch.MaxWaitMillis) != waits.Milliseconds() || len(fetch.Topics) == 0 || fetch.Topics[0].Topic != topic || over() {
			return nil, nil, false
		}
		cluster.SleepControl(func() { _ = pause(t.Context(), 20*time.Millisecond) })
		kept.Add(1)
		response := fetch.ResponseKind().(*kmsg.FetchResponse)
		for _, topic := range fetch.Topics {
			answer := kmsg.NewFetchResponseTopic()
			answer.Topic = topic.Topic
			for _, partition := range topic.Partitions {
				nothing := kmsg.NewFetchResponseTopicPartition()
				nothing.Partition = partition.Partition
				answer.Partitions = append(answer.Partitions, nothing)
			}
			response.Topics = append(response.Topics, answer)
		}
		return response, nil, true
	})
	return silent, kept
}

// A consumer of sarama's that goes silent is told from an idle partition: others
// can read the records.
func TestASilentConsumerEndsTheAttempt(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DefaultNumPartitions(1))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	w := newWorld(t, cluster.ListenAddrs())
	r := w.replica(t, "a")
	var ended endings
	silent, kept := silence(t, cluster, w.Input, memberWait, func() bool { return ended.stalls() > 0 })
	stop := r.inProcess(t, func(c *Config, g func(*Attempt) *goka.GroupGraph) func(*Attempt) *goka.GroupGraph {
		c.Observer, c.StallAfter = &ended, 500*time.Millisecond
		return g
	})
	w.produce(t, 1000)
	w.waitConsumed(t)
	require.Zero(t, ended.all())
	silent.Store(true)
	wait(t, 60*time.Second, func() bool { return kept.Load() > 1 }, func() string { return "nobody reads" })
	w.produce(t, 1000)
	w.waitConsumed(t)
	require.Equal(t, 1, ended.stalls())
	require.Equal(t, 1, ended.all())
	stop()
	w.requireExact(t, r.Dir)
}

// So is one that goes silent in a recovery.
func TestASilentRecoveryEndsTheAttempt(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DefaultNumPartitions(1))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	w := newWorld(t, cluster.ListenAddrs())
	r := w.replica(t, "a")
	stop := r.inProcess(t, nil)
	w.produce(t, 1000)
	w.waitConsumed(t)
	stop()
	require.NoError(t, os.RemoveAll(r.Dir))
	var ended endings
	silent, kept := silence(t, cluster, w.table(), memberWait, func() bool { return ended.stalls() > 0 })
	silent.Store(true)
	stop = r.inProcess(t, func(c *Config, g func(*Attempt) *goka.GroupGraph) func(*Attempt) *goka.GroupGraph {
		c.Observer, c.StallAfter = &ended, 500*time.Millisecond
		return g
	})
	w.produce(t, 1000)
	w.waitConsumed(t)
	require.Positive(t, kept.Load())
	require.Equal(t, 1, ended.stalls())
	require.Equal(t, 1, ended.all())
	stop()
	w.requireExact(t, r.Dir)
}

// A follower whose consumer has gone silent begins anew too.
func TestASilentFollowerBeginsAnew(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DefaultNumPartitions(1))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	w := newWorld(t, cluster.ListenAddrs())
	var log lines
	const said = "records can be read there"
	silent, kept := silence(t, cluster, w.table(), followerWait, func() bool { return strings.Contains(log.String(), said) })
	r := w.replica(t, "a")
	p := r.start(t)
	w.produce(t, 1000)
	w.waitConsumed(t)
	f, a, stop := w.followWith(t, t.TempDir(), slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), &log), nil)))
	w.waitFollowed(t, f)
	silent.Store(true)
	wait(t, 60*time.Second, func() bool { return kept.Load() > 1 }, func() string { return "nobody reads" })
	w.produce(t, 1000)
	w.waitConsumed(t)
	log.wait(t, said)
	w.waitFollowed(t, f)
	stop()
	p.stop(t)
	require.Empty(t, a.wrong)
	for p := range int32(partitions) {
		require.Equal(t, w.perPart[p], a.sum(p))
	}
}

// What looks like standing still and is not: an input without records, one whose
// end is all markers, and one that an open transaction of somebody hides.
func TestWhoHasNothingToReadIsNotStalled(t *testing.T) {
	w := newWorld(t, fakeBroker(t))
	r := w.replica(t, "a")
	var ended endings
	var seen atomic.Int64
	stop := r.inProcess(t, func(c *Config, g func(*Attempt) *goka.GroupGraph) func(*Attempt) *goka.GroupGraph {
		c.Observer, c.StallAfter = &ended, 300*time.Millisecond
		c.crash = func(point string) {
			if point == "watched" {
				seen.Add(1)
			}
		}
		return g
	})
	watched := func() { // for several times as long as a stall may last
		from := seen.Load()
		wait(t, 60*time.Second, func() bool { return seen.Load() > from+4*looks }, func() string { return "nobody watches" })
	}
	watched()
	w.produce(t, 400)
	w.waitConsumed(t)
	aborted := w.open(t, "aborted-in-"+w.Input)
	aborted.add(t, w.Input, 1)
	aborted.abort(t)
	watched()
	open := w.open(t, "open-in-"+w.Input)
	open.add(t, w.Input, 2)
	w.produce(t, 400)
	watched()
	require.Zero(t, ended.all())
	open.abort(t)
	w.produce(t, 400) // behind the marker
	w.waitConsumed(t)
	require.Zero(t, ended.all())
	stop()
	w.requireExact(t, r.Dir)
}
