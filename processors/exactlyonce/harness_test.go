package exactlyonce

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The test application counts the records of each key. That is not idempotent,
// so an epoch that is lost or repeated shows in a row. At the end of each epoch
// it writes a boundary row with the next offset, last, and emits its total.

const (
	boundary   = "\x00progress"
	partitions = 4
)

type names struct{ Input, Group, Totals string }

func (n names) table() string { return n.Group + "-table" }

type ledger struct {
	n         names
	partition int32
	counts    map[string]int
	dirty     map[string]bool
	next      int64
	total     int
	started   bool
	committed int          // epochs
	starts    chan<- Input // may be nil
}

func (l *ledger) Recover(a *Assignment) error {
	rows, failed := a.Rows()
	for k, v := range rows {
		n, err := strconv.Atoi(string(v))
		if err != nil {
			return err
		}
		if k == boundary {
			l.next = int64(n)
			continue
		}
		l.counts[k] = n
		l.total += n
	}
	in := a.Inputs[0]
	l.next = in.Start
	if l.starts != nil {
		l.starts <- *in
	}
	return failed()
}

func (l *ledger) observe(r *Record) error {
	l.counts[string(r.Key)]++
	l.total++
	l.dirty[string(r.Key)] = true
	l.next = r.Offset + 1
	return nil
}

func (l *ledger) Cut() Epoch {
	if len(l.dirty) == 0 && l.started {
		return nil
	}
	l.started = true
	e := &ledgerEpoch{totals: l.n.Totals, partition: l.partition, next: l.next, total: l.total, rows: map[string]int{}}
	for k := range l.dirty {
		e.rows[k] = l.counts[k]
	}
	clear(l.dirty)
	return e
}

func (l *ledger) Committed() { l.committed++ }

type ledgerEpoch struct {
	totals    string
	partition int32
	next      int64
	total     int
	rows      map[string]int
}

func (e *ledgerEpoch) Write(w *Writer) error {
	for k, n := range e.rows {
		w.Row(k, []byte(strconv.Itoa(n)))
	}
	w.Row(boundary, []byte(strconv.FormatInt(e.next, 10)))
	w.Record(e.totals, strconv.Itoa(int(e.partition)), []byte(strconv.Itoa(e.total)), nil)
	return nil
}

func (n names) graph(a *Attempt) *goka.GroupGraph {
	return goka.DefineGroup(goka.Group(n.Group),
		Consume(a, n.Input, (*ledger).observe),
		goka.Output(goka.Stream(n.Totals), RawCodec{}),
		goka.Persist(RawCodec{}))
}

// replica is what one process, or goroutine, of the application needs.
type replica struct {
	Brokers    []string
	Names      names
	Instance   string
	Dir        string
	Standby    bool
	CrashPoint string // where to die
	CrashAt    int    // which time
}

func (r replica) config(log *slog.Logger) Config {
	return Config{
		Client: ClientConfig{Brokers: r.Brokers}, Group: r.Names.Group, Instance: r.Instance, StateDir: r.Dir, Standby: r.Standby, Logger: log,
		SessionTimeout: 6 * time.Second, CommitInterval: 10 * time.Millisecond, MaxEpochEvents: 500, FlushInterval: 50 * time.Millisecond,
		NewState: func(p int32) State {
			return &ledger{n: r.Names, partition: p, counts: map[string]int{}, dirty: map[string]bool{}}
		},
	}
}

// asProcess runs the application in this process until it is killed.
func (r replica) asProcess() error {
	cfg := r.config(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	times := 0
	var mu sync.Mutex
	cfg.crash = func(point string) {
		mu.Lock()
		defer mu.Unlock()
		if point != r.CrashPoint {
			return
		}
		if times++; times == r.CrashAt {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	}
	rt, err := New(cfg, r.Names.graph)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { // the parent closes the pipe to end us, and so does its death
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return rt.Run(ctx)
}

const childVar = "EXACTLYONCE_TEST_REPLICA"

func TestMain(m *testing.M) {
	if spec := os.Getenv(childVar); spec != "" {
		var r replica
		err := json.Unmarshal([]byte(spec), &r)
		if err == nil {
			err = r.asProcess()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// process is the application as a process of its own, so that it can be killed.
type process struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	log    *bytes.Buffer
	exited chan struct{}
}

func (r replica) start(t *testing.T) *process {
	t.Helper()
	spec, err := json.Marshal(r)
	require.NoError(t, err)
	p := &process{cmd: exec.Command(os.Args[0]), log: &bytes.Buffer{}, exited: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), childVar+"="+string(spec))
	p.cmd.Stderr = p.log
	p.stdin, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("log of %s:\n%s", r.Instance, p.log)
		}
	})
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have exited
	<-p.exited
}

// stop ends the process in good order.
func (p *process) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, p.stdin.Close())
	select {
	case <-p.exited:
	case <-time.After(20 * time.Second):
		t.Fatal("the replica did not stop")
	}
	require.Equal(t, 0, p.cmd.ProcessState.ExitCode(), p.log.String())
}

// waitKilled waits until the process has killed itself at its crash point.
func (p *process) waitKilled(t *testing.T) {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(60 * time.Second):
		t.Fatal("the crash point was not reached")
	}
	require.Equal(t, syscall.SIGKILL, p.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(), p.log.String())
}

// world is the broker, the topics of one test, and what was produced.
type world struct {
	brokers []string
	client  *kgo.Client
	names
	keys     int // over which produce spreads its records
	produced map[string]int
	perPart  [partitions]int
}

func fakeBroker(t *testing.T) []string {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DefaultNumPartitions(1))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c.ListenAddrs()
}

func newWorld(t *testing.T, brokers []string) *world {
	t.Helper()
	id := strings.ReplaceAll(t.Name(), "/", "-") + "-" + strconv.FormatInt(time.Now().UnixNano()%1e6, 10)
	w := &world{brokers: brokers, names: names{Input: id + "-in", Group: id, Totals: id + "-totals"}, keys: 97, produced: map[string]int{}}
	var err error
	w.client, err = kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	t.Cleanup(w.client.Close)
	w.create(t, w.Input, partitions, nil)
	w.create(t, w.Totals, 1, nil)
	w.create(t, w.table(), partitions, map[string]*string{"cleanup.policy": new("compact")})
	return w
}

func (w *world) create(t *testing.T, topic string, n int32, config map[string]*string) {
	t.Helper()
	_, err := kadm.NewClient(w.client).CreateTopic(t.Context(), n, 1, config, topic)
	require.NoError(t, err)
}

func (w *world) replica(t *testing.T, instance string) replica {
	t.Helper()
	return replica{Brokers: w.brokers, Names: w.names, Instance: instance, Dir: filepath.Join(t.TempDir(), "state")}
}

// produce writes n records over keys "k0"… to the partitions of their keys.
func (w *world) produce(t *testing.T, n int) {
	t.Helper()
	records := make([]*kgo.Record, n)
	for i := range records {
		key := "k" + strconv.Itoa(i%w.keys)
		p := Murmur2.Partition([]byte(key), partitions)
		records[i] = &kgo.Record{Topic: w.Input, Partition: p, Key: []byte(key), Value: []byte("v")}
		w.produced[key]++
		w.perPart[p]++
	}
	require.NoError(t, w.client.ProduceSync(t.Context(), records...).FirstErr())
}

// waitConsumed waits until the group has committed the end of the input.
func (w *world) waitConsumed(t *testing.T) {
	t.Helper()
	admin := kadm.NewClient(w.client)
	ends, err := admin.ListCommittedOffsets(t.Context(), w.Input)
	require.NoError(t, err)
	var last kadm.OffsetResponses
	wait(t, 60*time.Second, func() bool {
		if last, err = admin.FetchOffsets(t.Context(), w.Group); err != nil {
			return false
		}
		for p := range int32(partitions) {
			end, _ := ends.Lookup(w.Input, p)
			at, ok := last.Lookup(w.Input, p)
			if !ok || at.At < end.Offset {
				return false
			}
		}
		return true
	}, func() string { return fmt.Sprint("committed: ", last, err) })
}

// waitVisible waits until no transaction holds back a partition of the input.
func (w *world) waitVisible(t *testing.T, partition int32) {
	t.Helper()
	admin := kadm.NewClient(w.client)
	var visible, end kadm.ListedOffset
	wait(t, 30*time.Second, func() bool {
		committed, err := admin.ListCommittedOffsets(t.Context(), w.Input)
		require.NoError(t, err)
		ends, err := admin.ListEndOffsets(t.Context(), w.Input)
		require.NoError(t, err)
		visible, _ = committed.Lookup(w.Input, partition)
		end, _ = ends.Lookup(w.Input, partition)
		return visible.Offset == end.Offset
	}, func() string { return fmt.Sprintf("visible to %d of %d", visible.Offset, end.Offset) })
}

// wait polls until ok.
func wait(t *testing.T, limit time.Duration, ok func() bool, state func() string) {
	t.Helper()
	for end := time.Now().Add(limit); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("waited %v; %s", limit, state())
		}
		_ = pause(t.Context(), 10*time.Millisecond)
	}
}

// read returns the committed records of a topic per partition, once every
// transaction in it is decided: one that a dead process left open hides what
// follows until the coordinator times it out.
func (w *world) read(t *testing.T, topic string) map[int32][]*kgo.Record {
	t.Helper()
	admin := kadm.NewClient(w.client)
	wait(t, 60*time.Second, func() bool {
		ends, err := admin.ListEndOffsets(t.Context(), topic)
		require.NoError(t, err)
		visible, err := admin.ListCommittedOffsets(t.Context(), topic)
		require.NoError(t, err)
		decided := true
		ends.Each(func(o kadm.ListedOffset) {
			v, ok := visible.Lookup(topic, o.Partition)
			decided = decided && ok && v.Offset >= o.Offset
		})
		return decided
	}, func() string { return "a transaction is open in " + topic })
	return w.visible(t, topic)
}

// visible returns the records that can be read now.
func (w *world) visible(t *testing.T, topic string) map[int32][]*kgo.Record {
	t.Helper()
	ends, err := kadm.NewClient(w.client).ListCommittedOffsets(t.Context(), topic)
	require.NoError(t, err)
	client, err := kgo.NewClient(kgo.SeedBrokers(w.brokers...), kgo.ConsumeTopics(topic), kgo.KeepControlRecords(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	all, reached := map[int32][]*kgo.Record{}, map[int32]int64{}
	missing := func() (n int) {
		ends.Each(func(o kadm.ListedOffset) {
			if o.Offset > 0 && reached[o.Partition] < o.Offset {
				n++
			}
		})
		return n
	}
	for missing() > 0 {
		fetches := client.PollFetches(ctx)
		require.NoError(t, errors.Join(fetches.Err(), ctx.Err()))
		fetches.EachRecord(func(r *kgo.Record) {
			reached[r.Partition] = r.Offset + 1
			if !r.Attrs.IsControl() {
				all[r.Partition] = append(all[r.Partition], r)
			}
		})
	}
	return all
}

// requireExact compares tables, totals and local stores with what was produced.
func (w *world) requireExact(t *testing.T, dirs ...string) {
	t.Helper()
	table := w.read(t, w.table())
	counts := map[string]int{}
	for p, records := range table {
		for _, r := range records {
			n, err := strconv.Atoi(string(r.Value))
			require.NoError(t, err)
			if string(r.Key) == boundary {
				continue
			}
			require.Greater(t, n, counts[string(r.Key)], "row %s of partition %d goes back", r.Key, p)
			counts[string(r.Key)] = n
		}
		require.Equal(t, boundary, string(records[len(records)-1].Key), "the boundary row is the last of partition %d", p)
	}
	require.Equal(t, w.produced, counts)
	totals := map[string]string{}
	for _, r := range w.read(t, w.Totals)[0] {
		totals[string(r.Key)] = string(r.Value)
	}
	for p, n := range w.perPart {
		require.Equal(t, strconv.Itoa(n), totals[strconv.Itoa(p)], "total of partition %d", p)
	}
	for _, dir := range dirs {
		for p := range int32(partitions) {
			requirePrefix(t, filepath.Join(dir, fmt.Sprintf("%s.%d", w.table(), p)), table[p])
		}
	}
}

// requirePrefix demands that a store left on disk equals the fold of the
// committed changelog up to the offset stored in it.
func requirePrefix(t *testing.T, dir string, changelog []*kgo.Record) {
	t.Helper()
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return
	}
	st := &store{dir: dir, interval: time.Hour, log: slog.New(slog.DiscardHandler)}
	st.flushMu.Lock()
	err := st.openDB()
	st.flushMu.Unlock()
	require.NoError(t, err)
	defer func() { require.NoError(t, st.close()) }()
	want := map[string]string{}
	for _, r := range changelog {
		if r.Offset <= st.offset() {
			want[string(r.Key)] = string(r.Value)
		}
	}
	got := map[string]string{}
	rows, failed := st.rows()
	for k, v := range rows {
		got[k] = string(v)
	}
	require.NoError(t, failed())
	require.Equal(t, want, got, "%s up to offset %d", dir, st.offset())
}

// requireStores demands that every store below dir is a prefix of its
// changelog.
func (w *world) requireStores(t *testing.T, dir string) {
	t.Helper()
	table := w.visible(t, w.table())
	for p := range int32(partitions) {
		requirePrefix(t, filepath.Join(dir, fmt.Sprintf("%s.%d", w.table(), p)), table[p])
	}
}
