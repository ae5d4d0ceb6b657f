//go:build chaos

package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/e2e/broker"
	"deliverystat/e2e/chaos"
	"deliverystat/e2e/kafka"
	"deliverystat/e2e/replica"
	"deliverystat/processors/market"
	"deliverystat/processors/processorstest"
)

const (
	partitions = 6
	prefix     = "chaos-"
	// Event time runs so much faster than the clock that deliveries are closed,
	// abandoned and forgotten within seconds, under every fault.
	acceleration = 30
	lateness     = 90 * time.Second  // 3 s of the clock
	abandonAfter = 300 * time.Second // 10 s of the clock
	pace         = 600               // records a second
	portion      = 20                // records in a write

	// patience is how long anything may take. It bounds a hang, it measures
	// nothing.
	patience = 3 * time.Minute
)

// rig is a deployment under fire: three brokers behind proxies, three replicas,
// two writers, and a reader for each replica.
type rig struct {
	*chaos.History
	t        *testing.T
	brokers  *broker.Proxied
	client   *kafka.Client // talks to the brokers directly
	binary   replica.Binary
	replicas []*replica.Replica
	rules    market.Rules
	decoder  *codecs.Decoder

	audits           atomic.Int64 // scrapes that told of an audit of every partition
	writing, reading context.CancelFunc
	writers, readers sync.WaitGroup
}

// deploy starts everything but the load.
func deploy(t *testing.T) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	dir := t.TempDir()
	r := &rig{History: &chaos.History{}, t: t, rules: market.DefaultRules()}
	r.rules.Lateness, r.rules.AbandonAfter = lateness, abandonAfter
	var err error
	r.decoder, err = codecs.NewDecoder(codecs.FormatAuto, r.rules.Lifecycle)
	require.NoError(t, err)
	r.binary, err = replica.Build(ctx, dir, os.Getenv("E2E_RACE") != "")
	require.NoError(t, err)
	r.brokers, err = broker.StartProxied(ctx, dir, 3, "log.cleaner.backoff.ms=1000")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.brokers.Close()) })
	r.client, err = kafka.Connect(r.brokers.Addresses())
	require.NoError(t, err)
	t.Cleanup(r.client.Close)
	r.mustRun("topics", "create", "--replication-factor=3", fmt.Sprintf("--partitions=%d", partitions))
	for _, name := range []string{"one", "two", "three"} {
		r.replicas = append(r.replicas, r.prepare(dir, name))
	}
	for _, one := range r.replicas {
		require.NoError(t, one.Start())
	}
	r.awaitReady(r.replicas...)
	return r
}

// prepare makes a replica that does not run yet.
func (r *rig) prepare(dir, name string) *replica.Replica {
	r.t.Helper()
	one, err := replica.New(replica.Options{
		Binary: r.binary, Brokers: r.brokers.ClientAddresses(), Prefix: prefix, Name: name, Dir: dir,
		Flags: []string{
			"--session-timeout=6s", "--audit-interval=2s", "--allow-unsafe", "--allowed-lateness=" + lateness.String(), "--abandon-after=" + abandonAfter.String(),
		},
	})
	require.NoError(r.t, err)
	r.t.Cleanup(func() {
		require.NoError(r.t, one.Kill())
		if r.t.Failed() {
			r.keepLog(one)
		}
	})
	return one
}

// keepLog copies a replica's log to where it outlives the test.
func (r *rig) keepLog(one *replica.Replica) {
	cache, err := broker.CacheDir()
	if err != nil {
		r.t.Log(err)
		return
	}
	kept := fmt.Sprintf("%s/failed/chaos-%s.log", cache, one.Name)
	b, err := os.ReadFile(one.LogFile())
	if err == nil {
		err = os.MkdirAll(cache+"/failed", 0o750)
	}
	if err == nil {
		err = os.WriteFile(kept, b, 0o600)
	}
	r.t.Log("log kept:", kept, err)
}

func (r *rig) args(command ...string) []string {
	return append(command, "--kafka-brokers="+r.brokers.Addresses(), "--topic-prefix="+prefix)
}

func (r *rig) mustRun(command ...string) {
	r.t.Helper()
	result, err := r.binary.Run(r.t.Context(), nil, r.args(command...)...)
	require.NoError(r.t, err)
	require.Zero(r.t, result.ExitCode, "%v\n%s%s", command, result.Stdout, result.Stderr)
}

// eventually waits until probe says that what holds.
func (r *rig) eventually(what string, probe func() (state string, ok bool)) {
	r.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		state, ok := probe()
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			r.t.Fatalf("%s: not within %s; last seen: %s", what, patience, state)
		}
	}
}

func (r *rig) awaitReady(replicas ...*replica.Replica) {
	r.t.Helper()
	for _, one := range replicas {
		r.eventually("replica "+one.Name+" is ready", func() (string, bool) {
			if !one.Process().Running() {
				r.t.Fatalf("replica %s ended with code %d", one.Name, one.Process().ExitCode())
			}
			ready, state := one.Ready(r.t.Context())
			return state, ready
		})
	}
}

// load starts writers, for as long as length at most, and readers.
func (r *rig) load(seed uint64, length time.Duration) {
	r.t.Helper()
	n := int(length.Seconds() * pace)
	span := max(time.Minute, acceleration*length)
	m, err := market.New(market.Options{
		Events: n, Deliveries: n / 6, Seed: seed, End: time.Now().Add(-time.Minute), Span: span,
		Duplicates: 0.1, OutOfOrder: 0.1, Late: 0.02, Malformed: 0.01, UnknownStatus: 0.02,
	})
	require.NoError(r.t, err)
	writing, cancel := context.WithCancel(r.t.Context())
	r.writing = cancel
	reading, cancel := context.WithCancel(r.t.Context())
	r.reading = cancel
	r.t.Cleanup(func() { r.writing(); r.reading(); r.writers.Wait(); r.readers.Wait() })
	w := &writer{rig: r, market: m, at: time.Now().Add(-time.Minute - span)}
	r.writers.Go(func() { w.run(writing, w.produce) })
	r.writers.Go(func() { w.run(writing, w.transact) })
	for _, one := range r.replicas {
		r.readers.Go(func() { r.watch(reading, one) })
	}
}

// settle stops the writers and waits until every replica reflects everything.
func (r *rig) settle() [][]kafka.Record {
	r.t.Helper()
	r.writing()
	r.writers.Wait() // what they began is acknowledged after this only
	r.eventually("everything written is decided", func() (string, bool) {
		written, err := r.client.Ends(r.t.Context(), prefix+"delivery-events", kafka.Uncommitted)
		require.NoError(r.t, err)
		visible, err := r.client.Ends(r.t.Context(), prefix+"delivery-events", kafka.Committed)
		require.NoError(r.t, err)
		return fmt.Sprint(visible, written), slices.Equal(visible, written)
	})
	log, err := r.client.ReadAll(r.t.Context(), prefix+"delivery-events")
	require.NoError(r.t, err)
	end := make([]int64, partitions)
	for p, records := range log {
		if n := len(records); n > 0 {
			end[p] = records[n-1].Offset + 1
		}
	}
	for _, one := range r.replicas {
		r.eventually("replica "+one.Name+" reflects everything", func() (string, bool) {
			counts, err := one.Counts(r.t.Context(), "")
			if err != nil {
				return err.Error(), false
			}
			next, err := position(counts.AsOf.Position)
			require.NoError(r.t, err)
			reached := counts.AsOf.LagRecords == 0
			for p := range end {
				reached = reached && next[p] >= end[p] // beyond it where aborted records follow
			}
			return fmt.Sprintf("%+v of %v", counts.AsOf, end), reached
		})
	}
	r.reading()
	r.readers.Wait()
	return log
}

// judge settles, and demands that no answer was ever wrong.
func (r *rig) judge() *chaos.Report {
	r.t.Helper()
	log := r.settle()
	values := make([]map[int64]string, partitions)
	records := make([][]processorstest.LogRecord, partitions)
	for p := range log {
		values[p] = map[int64]string{}
		for _, record := range log[p] {
			values[p][record.Offset] = string(record.Value)
			records[p] = append(records[p], processorstest.LogRecord{
				Record: processorstest.Record{Key: string(record.Key), Value: record.Value, Timestamp: record.Timestamp}, Offset: record.Offset,
			})
		}
	}
	world := processorstest.Truth(r.rules, r.decoder, records)
	report := chaos.Check(r.History, func(next []int64) (map[string]int, map[string]int) { return world.Counts("", next) }, values)
	require.Empty(r.t, report.Wrong)
	r.requireRows(records)
	r.mustRun("verify")
	r.mustRun("verify", "--from=events")
	for _, one := range r.replicas {
		r.mustRun("verify", "--url=http://"+one.HTTP)
	}
	return report
}

// requireRows demands that the folded table is what the reference model makes
// of the input, rows that only wait for their deletion aside.
func (r *rig) requireRows(log [][]processorstest.LogRecord) {
	r.t.Helper()
	table, err := r.client.ReadAll(r.t.Context(), prefix+"latest-delivery-table")
	require.NoError(r.t, err)
	for p, changes := range table {
		rows := map[string][]byte{}
		for _, c := range changes {
			if rows[string(c.Key)] = c.Value; c.Value == nil {
				delete(rows, string(c.Key))
			}
		}
		model := market.NewModel(r.rules)
		for _, e := range log[p] {
			model.Apply(processorstest.Entry(r.decoder, &e, processorstest.Partition([]byte(e.Key), partitions) != int32(p)))
		}
		want := model.Rows()
		for id, delivery := range want {
			row, err := r.rules.Lifecycle.ReadRow(rows[id])
			require.NoError(r.t, err, "row of %s in partition %d", id, p)
			require.Equal(r.t, delivery.RawStatus, row.RawStatus, "row of %s", id)
			require.Equal(r.t, delivery.OccurredAt, row.Winner.OccurredAt, "row of %s", id)
			require.Equal(r.t, delivery.Timeline, row.Timeline, "row of %s", id)
		}
		for id := range rows {
			if _, ok := want[id]; ok || id == codecs.ProgressKey {
				continue
			}
			row, err := r.rules.Lifecycle.ReadRow(rows[id])
			require.NoError(r.t, err)
			require.Less(r.t, row.Winner.OccurredAt+int64(lateness), model.Clock, "row of %s should not be there", id)
		}
	}
}

// watch asks a replica until ctx ends.
func (r *rig) watch(ctx context.Context, one *replica.Replica) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		before, ok := r.ask(ctx, one)
		if ok && i%10 == 0 {
			r.compareGauges(ctx, one, before)
		}
	}
}

func (r *rig) ask(ctx context.Context, one *replica.Replica) (chaos.Answer, bool) {
	a, err := one.Get(ctx, "/v1/counts")
	if err != nil {
		return chaos.Answer{}, false // dead, or frozen
	}
	var body replica.Counts
	switch {
	case a.Status == http.StatusServiceUnavailable && a.Header.Get("Retry-After") != "":
		r.Refused()
		return chaos.Answer{}, false
	case a.Status != http.StatusOK || json.Unmarshal(a.Body, &body) != nil:
		r.Strange(fmt.Sprintf("replica %s: %d %s", one.Name, a.Status, a.Body))
		return chaos.Answer{}, false
	}
	next, err := position(body.AsOf.Position)
	if err != nil {
		r.Strange(err.Error())
		return chaos.Answer{}, false
	}
	answer := chaos.Answer{
		Replica: one.Name, At: time.Now(), Next: next, Live: body.Counts, Closed: body.Closed, Sum: body.Live,
		Lag: body.AsOf.LagRecords, From: "counts",
	}
	r.Read(answer)
	return answer, true
}

// compareGauges reads the gauges as an answer, if the replica did not move on
// meanwhile.
func (r *rig) compareGauges(ctx context.Context, one *replica.Replica, before chaos.Answer) {
	metrics, err := one.Metrics(ctx)
	if err != nil {
		return
	}
	for status, n := range metrics.By("deliverystat_count_drift", "status") {
		if n != 0 {
			r.t.Errorf("replica %s: an audit found %d deliveries in %s more than were counted", one.Name, n, status)
		}
	}
	if _, audited := metrics["deliverystat_audit_last_success_timestamp_seconds"]; audited {
		r.audits.Add(1)
	}
	after, ok := r.ask(ctx, one)
	live := metrics.By("deliverystat_deliveries", "status")
	if !ok || !slices.Equal(before.Next, after.Next) || len(live) == 0 {
		return
	}
	var sum int64
	for n := range maps.Values(live) {
		sum += n
	}
	r.Read(chaos.Answer{
		Replica: one.Name, At: after.At, Next: after.Next, Live: live, Closed: metrics.By("deliverystat_closed_deliveries", "status"),
		Sum: sum, Lag: after.Lag, From: "gauges",
	})
}

// position reads the position of an answer; -1 where nothing is reflected.
func position(text string) ([]int64, error) {
	if text == "" {
		return slices.Repeat([]int64{-1}, partitions), nil
	}
	p, err := codecs.ParsePosition(text, partitions)
	if err != nil {
		return nil, err
	}
	return p.Next, nil
}
