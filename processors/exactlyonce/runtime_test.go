package exactlyonce

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
)

// behaviour is what the runtime promises, shown on the broker that it is given:
// the fake one in plain tests, Apache Kafka with the tag e2e.
var behaviour = []struct {
	name string
	test func(t *testing.T, brokers []string)
}{
	{"counts exactly", countsExactly},
	{"killed at each point of an epoch", killedAtEachPoint},
	{"another replica takes over", anotherTakesOver},
	{"a zombie is fenced and rejoins", zombieIsFenced},
	{"a second replica joins and leaves", replicaJoins},
	{"an expelled replica is waited for no more", expelledIsNotWaitedFor},
	{"one of two twins ends", twinsEnd},
	{"an assignment commits the offsets of idle partitions", idlePartitionsAreCommitted},
	{"a panic in a callback commits nothing of it", panicCommitsNothing},
	{"an open transaction that nobody may end is named", openTransactionIsNamed},
	{"a writer of the input that hangs is fenced", hangingWriterIsFenced},
	{"what retention trimmed is counted as lost", trimmedInputIsCounted},
	{"the stores of a killed standby are prefixes", standbyIsAPrefix},
	{"a standby takes over", standbyTakesOver},
	{"a standby that is too old begins anew", oldStandbyBeginsAnew},
	{"a follower sees whole epochs only", followerSeesWholeEpochs},
	{"a follower starts from its disk", followerStartsFromDisk},
}

func TestOnFakeBroker(t *testing.T) {
	brokers := fakeBroker(t)
	for _, b := range behaviour {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			b.test(t, brokers)
		})
	}
}

func countsExactly(t *testing.T, brokers []string) {
	w := newWorld(t, brokers)
	r := w.replica(t, "a")
	w.produce(t, 5000)
	p := r.start(t)
	w.produce(t, 5000)
	w.waitConsumed(t)
	p.stop(t)
	w.requireExact(t, r.Dir)
}

// Whatever point of an epoch a replica is killed at, the next one gives the
// same tables as if nothing had happened: on the same disk, on an empty one.
func killedAtEachPoint(t *testing.T, brokers []string) {
	for _, point := range []string{"begun", "mid-produce", "produced", "before-commit", "after-commit", "stored"} {
		for _, disk := range []string{"same", "empty"} {
			t.Run(point+"/"+disk, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, brokers)
				r := w.replica(t, "a")
				dying := r
				dying.CrashPoint, dying.CrashAt = point, 3
				p := dying.start(t)
				for range 6 { // several epochs
					w.produce(t, 1000)
				}
				p.waitKilled(t)
				w.requireStores(t, r.Dir)
				if disk == "empty" {
					require.NoError(t, os.RemoveAll(r.Dir))
				}
				p = r.start(t)
				w.produce(t, 1000)
				w.waitConsumed(t)
				p.stop(t)
				w.requireExact(t, r.Dir)
			})
		}
	}
}

// A replica that does not come back loses its partitions, and its open
// transaction, to another.
func anotherTakesOver(t *testing.T, brokers []string) {
	w := newWorld(t, brokers)
	a, b := w.replica(t, "a"), w.replica(t, "b")
	a.CrashPoint, a.CrashAt = "produced", 3
	p := a.start(t)
	for range 6 {
		w.produce(t, 1000)
	}
	p.waitKilled(t)
	p = b.start(t)
	w.produce(t, 1000)
	w.waitConsumed(t)
	p.stop(t)
	w.requireExact(t, a.Dir, b.Dir)
}

// A process that stood still while another took over wakes up with an epoch
// that it must not commit.
func zombieIsFenced(t *testing.T, brokers []string) {
	w := newWorld(t, brokers)
	a, b := w.replica(t, "a"), w.replica(t, "b")
	pa := a.start(t)
	w.produce(t, 2000)
	w.waitConsumed(t)
	w.produce(t, 500)
	require.NoError(t, pa.cmd.Process.Signal(syscall.SIGSTOP))
	w.produce(t, 2000)
	pb := b.start(t)
	w.waitConsumed(t)
	require.NoError(t, pa.cmd.Process.Signal(syscall.SIGCONT))
	w.produce(t, 2000)
	w.waitConsumed(t)
	w.waitMembers(t, "a", "b") // it has rejoined by itself
	w.produce(t, 2000)
	w.waitConsumed(t)
	pa.stop(t)
	pb.stop(t)
	w.requireExact(t, a.Dir, b.Dir)
}

func replicaJoins(t *testing.T, brokers []string) {
	w := newWorld(t, brokers)
	a, b := w.replica(t, "a"), w.replica(t, "b")
	pa := a.start(t)
	w.produce(t, 2000)
	pb := b.start(t)
	w.waitMembers(t, "a", "b")
	w.produce(t, 2000)
	w.waitConsumed(t)
	pb.kill()
	w.produce(t, 2000)
	w.waitConsumed(t)
	pa.stop(t)
	w.requireExact(t, a.Dir, b.Dir)
}

// A dead member that is expelled leaves its partitions, and what its open
// transaction held back, to the others at once: all else would last for hours.
func expelledIsNotWaitedFor(t *testing.T, brokers []string) {
	w := newWorld(t, brokers)
	a, b := w.replica(t, "a"), w.replica(t, "b")
	patient := func(c *Config, g func(*Attempt) *goka.GroupGraph) func(*Attempt) *goka.GroupGraph {
		c.SessionTimeout, c.CommitTimeout, c.FenceAfter = 5*time.Minute, 5*time.Minute, time.Hour
		return g
	}
	stop := a.inProcess(t, patient)
	w.produce(t, 1000)
	w.waitConsumed(t)
	stop()
	left := w.open(t, w.Group+"/a") // as if it had died in the midst of an epoch
	left.add(t, w.table(), 2)
	left.pend(t, w.Group, w.Input, 1)
	w.produce(t, 1000)
	stop = b.inProcess(t, patient)
	client, err := sarama.NewClient(brokers, ClientConfig{}.Sarama())
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()

	member, err := Expel(t.Context(), client, w.Group, "a")

	require.NoError(t, err)
	require.True(t, member)
	w.waitConsumed(t)
	member, err = Expel(t.Context(), client, w.Group, "a")
	require.NoError(t, err)
	require.False(t, member)
	stop()
	w.requireExact(t, a.Dir, b.Dir)
}

// Two processes with one name must not fence each other in turn for ever: one
// of them ends, and says why.
func twinsEnd(t *testing.T, brokers []string) {
	w := newWorld(t, brokers)
	older := w.replica(t, "a")
	pa := older.start(t)
	w.produce(t, 1000)
	w.waitConsumed(t)
	younger := w.replica(t, "a")
	younger.Dir = filepath.Join(t.TempDir(), "younger")
	pb := younger.start(t)
	var ended, stays *process
	wait(t, 60*time.Second, func() bool {
		w.produce(t, 100)
		select {
		case <-pa.exited:
			ended, stays = pa, pb
		case <-pb.exited:
			ended, stays = pb, pa
		default:
		}
		return ended != nil
	}, func() string { return "both twins live on" })
	require.Equal(t, 1, ended.cmd.ProcessState.ExitCode())
	require.Contains(t, ended.log.String(), ErrFencedInstance.Error())
	w.produce(t, 1000)
	w.waitConsumed(t)
	stays.stop(t)
	w.requireExact(t, older.Dir, younger.Dir)
}

// A partition without input is told of at assignment too, with its offset in
// the same transaction: otherwise its owner could not be fenced.
func idlePartitionsAreCommitted(t *testing.T, brokers []string) {
	w := newWorld(t, brokers)
	r := w.replica(t, "a")
	p := r.start(t)
	wait(t, 30*time.Second, func() bool {
		offsets, err := kadm.NewClient(w.client).FetchOffsets(t.Context(), w.Group)
		if err != nil {
			return false
		}
		for p := range int32(partitions) {
			if o, ok := offsets.Lookup(w.Input, p); !ok || o.At != 0 {
				return false
			}
		}
		return true
	}, func() string { return "not every partition has offset 0 committed" })
	p.stop(t)
	require.Len(t, w.read(t, w.Totals)[0], partitions)
	for p, rows := range w.read(t, w.table()) {
		require.Equal(t, boundary, string(rows[0].Key), p)
	}
	w.requireExact(t, r.Dir)
}

// inProcess runs the application in this process.
func (r replica) inProcess(t *testing.T, tune func(*Config, func(*Attempt) *goka.GroupGraph) func(*Attempt) *goka.GroupGraph) (stop func()) {
	t.Helper()
	_, stop = r.run(t, tune)
	return stop
}

// run is inProcess that also returns the runtime.
func (r replica) run(t *testing.T, tune func(*Config, func(*Attempt) *goka.GroupGraph) func(*Attempt) *goka.GroupGraph) (rt *Runtime, stop func()) {
	t.Helper()
	cfg := r.config(slog.New(slog.NewTextHandler(t.Output(), nil)))
	graph := r.Names.graph
	if tune != nil {
		graph = tune(&cfg, graph)
	}
	rt, err := New(cfg, graph)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- rt.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			require.NoError(t, <-done)
		})
	}
	t.Cleanup(stop)
	return rt, stop
}

// A callback that panics half way ends the attempt; the record is processed
// again from the committed state.
func panicCommitsNothing(t *testing.T, brokers []string) {
	w := newWorld(t, brokers)
	r := w.replica(t, "a")
	var mu sync.Mutex
	panics := 0
	stop := r.inProcess(t, func(_ *Config, _ func(*Attempt) *goka.GroupGraph) func(*Attempt) *goka.GroupGraph {
		return func(a *Attempt) *goka.GroupGraph {
			return goka.DefineGroup(goka.Group(w.Group),
				Consume(a, w.Input, func(l *ledger, r *Record) error {
					err := l.observe(r)
					mu.Lock()
					defer mu.Unlock()
					if r.Offset == 300 && panics < 2 {
						panics++
						panic("half a callback")
					}
					return err
				}),
				goka.Output(goka.Stream(w.Totals), RawCodec{}), goka.Persist(RawCodec{}))
		}
	})
	w.produce(t, 4000)
	w.waitConsumed(t)
	stop()
	require.Equal(t, 2, panics)
	w.requireExact(t, r.Dir)
}

// A transaction in the way that is not ours to abort, or whose markers the
// brokers have lost, is waited for: first of the offsets, then of the table. The
// log says so, and where the transaction is.
func openTransactionIsNamed(t *testing.T, brokers []string) {
	w := newWorld(t, brokers)
	w.produce(t, 400)
	table, offsets := w.open(t, "stranger-of-"+w.table()), w.open(t, "stranger-of-"+w.Group)
	table.add(t, w.table(), 2)
	offsets.pend(t, w.Group, w.Input, 2)
	r := w.replica(t, "a")
	var log lines
	stop := r.inProcess(t, func(c *Config, g func(*Attempt) *goka.GroupGraph) func(*Attempt) *goka.GroupGraph {
		c.FenceAfter = 20 * time.Millisecond
		c.Logger = slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), &log), nil))
		return g
	})
	log.wait(t, `"joining the group waits for the end of an open transaction that holds its offsets" group=`+w.Group)
	offsets.abort(t)
	log.wait(t, fmt.Sprintf(`"recovery waits for the end of an open transaction" group=%s instance_id=a topic=%s partition=2 producer_id=%d start_offset=0`,
		w.Group, w.table(), table.producer))
	table.abort(t)
	w.waitConsumed(t)
	stop()
	w.requireExact(t, r.Dir)
}

// A dead member of the group that writes our input left a transaction open: what
// was written behind it must not wait for the transaction's timeout. Those of
// others are none of our business.
func hangingWriterIsFenced(t *testing.T, brokers []string) {
	w := newWorld(t, brokers)
	r := w.replica(t, "a")
	writers := "writers-of-" + w.Input
	dead, other := w.open(t, writers+"/dead"), w.open(t, "others-of-"+w.Input+"/alive")
	dead.add(t, w.Input, 2)
	other.add(t, w.Input, 1)
	var log lines
	stop := r.inProcess(t, func(c *Config, g func(*Attempt) *goka.GroupGraph) func(*Attempt) *goka.GroupGraph {
		c.FenceAfter = 200 * time.Millisecond
		c.InputWriters = []string{writers}
		c.Logger = slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), &log), nil))
		return g
	})
	w.produce(t, 400)
	log.wait(t, "transactional_id="+writers+"/dead")
	w.waitVisible(t, 2)
	require.NotContains(t, log.String(), "alive")
	other.abort(t)
	w.waitVisible(t, 1)
	w.produce(t, 400) // behind the markers
	w.waitConsumed(t)
	stop()
	w.requireExact(t, r.Dir)
}

// Records that are gone before they were read do not vanish in silence.
func trimmedInputIsCounted(t *testing.T, brokers []string) {
	w := newWorld(t, brokers)
	r := w.replica(t, "a")
	p := r.start(t)
	w.produce(t, 400)
	w.waitConsumed(t)
	p.stop(t)
	p0 := int64(w.perPart[0])
	w.produce(t, 400)
	var trim kadm.Offsets
	trim.Add(kadm.Offset{Topic: w.Input, Partition: 0, At: p0 + 7})
	_, err := kadm.NewClient(w.client).DeleteRecords(t.Context(), trim)
	require.NoError(t, err)

	starts := make(chan Input, 100)
	stop := r.inProcess(t, func(c *Config, g func(*Attempt) *goka.GroupGraph) func(*Attempt) *goka.GroupGraph {
		c.NewState = func(p int32) State {
			return &ledger{n: w.names, partition: p, counts: map[string]int{}, dirty: map[string]bool{}, starts: starts}
		}
		return g
	})
	w.waitConsumed(t)
	stop()
	lost := map[int64]int{}
	for range partitions {
		in := <-starts
		lost[in.Lost]++
		if in.Lost > 0 {
			require.Equal(t, p0, in.Committed)
			require.Equal(t, p0+7, in.Start)
		}
	}
	require.Equal(t, map[int64]int{0: partitions - 1, 7: 1}, lost)
}

// auditor keeps what a follower shows and checks it at each boundary: the rows
// of a partition add up to the next offset.
type auditor struct {
	mu         sync.Mutex
	rows       [partitions]map[string]int
	boundaries int
	wrong      []string
}

func (a *auditor) reset(p int32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rows[p] = map[string]int{}
}

func (a *auditor) applied(p int32, batch []Change) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range batch {
		n, _ := strconv.Atoi(string(c.Value))
		a.rows[p][c.Key] = n
		if c.Key != boundary {
			continue
		}
		a.boundaries++
		if sum := a.sum(p); sum != n {
			a.wrong = append(a.wrong, fmt.Sprintf("partition %d: rows add up to %d at offset %d", p, sum, n))
		}
	}
}

func (a *auditor) sum(p int32) (sum int) {
	for k, n := range a.rows[p] {
		if k != boundary {
			sum += n
		}
	}
	return sum
}

func (w *world) follow(t *testing.T, dir string) (f *Follower, a *auditor, stop func()) {
	t.Helper()
	return w.followWith(t, dir, slog.New(slog.NewTextHandler(t.Output(), nil)))
}

func (w *world) followWith(t *testing.T, dir string, log *slog.Logger) (f *Follower, a *auditor, stop func()) {
	t.Helper()
	a = &auditor{}
	f, err := NewFollower(FollowerConfig{
		Client: ClientConfig{Brokers: w.brokers}, Table: w.table(), StateDir: dir, Boundary: boundary,
		StallAfter: time.Second, Logger: log, Reset: a.reset, Applied: a.applied,
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			require.NoError(t, <-done)
		})
	}
	t.Cleanup(stop)
	return f, a, stop
}

func (w *world) waitFollowed(t *testing.T, f *Follower) {
	t.Helper()
	wait(t, 30*time.Second, func() bool {
		if !f.Recovered() {
			return false
		}
		for p := range int32(partitions) {
			v, err := f.Get(p, boundary)
			if err != nil || string(v) != strconv.Itoa(w.perPart[p]) {
				return false
			}
		}
		return true
	}, func() string { return fmt.Sprint("recovered: ", f.Recovered()) })
}

// The rows that a follower shows add up to the offset of its boundary row, at
// each boundary.
func followerSeesWholeEpochs(t *testing.T, brokers []string) {
	w := newWorld(t, brokers)
	f, a, stop := w.follow(t, t.TempDir()) // before anything is there
	r := w.replica(t, "a")
	p := r.start(t)
	for range 10 {
		w.produce(t, 1000)
	}
	w.waitConsumed(t)
	w.waitFollowed(t, f)
	p.stop(t)
	stop()
	require.Empty(t, a.wrong)
	require.Greater(t, a.boundaries, partitions)
}

// A follower that starts again shows what it had, then what came meanwhile.
func followerStartsFromDisk(t *testing.T, brokers []string) {
	w := newWorld(t, brokers)
	dir := t.TempDir()
	r := w.replica(t, "a")
	p := r.start(t)
	w.produce(t, 1000)
	w.waitConsumed(t)
	f, _, stop := w.follow(t, dir)
	w.waitFollowed(t, f)
	stop()
	w.produce(t, 1000)
	w.waitConsumed(t)
	f, a, stop := w.follow(t, dir)
	w.waitFollowed(t, f)
	stop()
	p.stop(t)
	require.Empty(t, a.wrong)
	for p := range int32(partitions) {
		require.Equal(t, w.perPart[p], a.sum(p))
	}
}

func (w *world) waitMembers(t *testing.T, want ...string) {
	t.Helper()
	var last string
	wait(t, 60*time.Second, func() bool {
		groups, err := kadm.NewClient(w.client).DescribeGroups(t.Context(), w.Group)
		if err != nil {
			last = err.Error()
			return false
		}
		g := groups[w.Group]
		last = g.State
		have := map[string]bool{}
		for _, m := range g.Members {
			if m.InstanceID != nil {
				have[*m.InstanceID] = true
			}
		}
		last += fmt.Sprint(have)
		for _, i := range want {
			if !have[i] {
				return false
			}
		}
		return g.State == "Stable"
	}, func() string { return "group: " + last })
}
