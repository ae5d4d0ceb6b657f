package harness

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/e2e/kafka"
	"deliverystat/e2e/replica"
	"deliverystat/processors/market"
	"deliverystat/processors/processorstest"
)

// The input grows by portions in time, at most 2000 records a second: a test
// that asks between two batches then finds the service at work.
const (
	portion = 25
	pace    = 12500 * time.Microsecond
)

// Config says what to run, and where.
type Config struct {
	Binary     replica.Binary
	Env        []string // added to the environment of every process
	Brokers    string   // addresses, separated by commas
	Partitions int      // of the input
	Replicas   int      // that run all the time
	// ReplicationFactor is that of all topics; 0 means 1.
	ReplicationFactor int16
	// RestartBroker stops the broker and starts it again with its data; nil if
	// that can not be done.
	RestartBroker func(t testing.TB)
}

// Deployment is one installation of the service: topics under a prefix of its
// own, and the replicas that work on them. It implements
// [processorstest.Harness].
type Deployment struct {
	config    Config
	rules     market.Rules
	prefix    string
	client    *kafka.Client
	replicas  []*replica.Replica
	passenger *replica.Replica // comes and goes to make partitions move
	moves     int              // calls of Rebalance
	pace      *time.Ticker
	log       [][]processorstest.LogRecord // nil: has grown since it was read
}

var _ processorstest.Harness = (*Deployment)(nil)

var deployments atomic.Int64

// Start makes the topics, starts the replicas and waits until all are ready.
// Everything ends with t; if t has failed, it shows the end of the replicas'
// logs.
func Start(t *testing.T, config Config, rules market.Rules) *Deployment {
	t.Helper()
	client, err := kafka.Connect(config.Brokers)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	d := &Deployment{
		config: config, rules: rules, client: client,
		prefix: fmt.Sprintf("b%d-", deployments.Add(1)),
		pace:   time.NewTicker(pace),
	}
	t.Cleanup(d.pace.Stop)
	d.createTopics(t)
	dir := t.TempDir()
	for i := range config.Replicas {
		r := d.prepare(t, dir, fmt.Sprintf("resident-%d", i))
		require.NoError(t, r.Start())
		d.replicas = append(d.replicas, r)
	}
	d.passenger = d.prepare(t, dir, "passenger")
	for _, r := range d.replicas {
		eventually(t, "replica "+r.Name+" is ready", r, func() (string, bool) {
			ready, state := r.Ready(t.Context())
			return state, ready
		})
	}
	return d
}

// createTopics makes the input itself: its records bear times of a fixed day,
// which a broker may find too old to keep.
func (d *Deployment) createTopics(t *testing.T) {
	t.Helper()
	factor := max(1, d.config.ReplicationFactor)
	require.NoError(t, d.client.CreateTopics(t.Context(), kafka.Topic{
		Name: d.events(), Partitions: int32(d.config.Partitions), Replicas: factor,
		Configs: map[string]string{
			"cleanup.policy": "delete", "retention.ms": "-1", "min.insync.replicas": strconv.Itoa(max(1, int(factor)-1)),
		},
	}))
	result, err := d.config.Binary.Run(t.Context(), d.config.Env, "topics", "create", "--kafka-brokers="+d.config.Brokers,
		"--topic-prefix="+d.prefix, "--replication-factor="+strconv.Itoa(int(factor)))
	require.NoError(t, err)
	require.Zero(t, result.ExitCode, "creating topics\n%s%s", result.Stdout, result.Stderr)
}

// prepare makes a replica that does not run yet.
func (d *Deployment) prepare(t *testing.T, dir, name string) *replica.Replica {
	t.Helper()
	r, err := replica.New(replica.Options{
		Binary: d.config.Binary, Env: d.config.Env, Brokers: d.config.Brokers, Prefix: d.prefix, Name: name, Dir: dir,
		Flags: append(flags(d.rules), "--allow-unsafe", "--session-timeout=6s"),
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, r.Kill())
		if t.Failed() {
			t.Logf("end of the log of replica %s:\n%s", name, tail(r.LogFile()))
		}
	})
	return r
}

// flags are the rules as serve takes them.
func flags(rules market.Rules) []string {
	order := "event-time"
	if rules.BySequence {
		order = "sequence"
	}
	flags := []string{
		"--order-by=" + order,
		"--allowed-lateness=" + rules.Lateness.String(),
		"--abandon-after=" + rules.AbandonAfter.String(),
		"--max-future=" + rules.MaxFuture.String(),
		"--terminal-skew=" + rules.TerminalSkew.String(),
	}
	if len(rules.Dimensions) > 0 {
		names := make([]string, len(rules.Dimensions))
		for i, a := range rules.Dimensions {
			names[i] = a.String()
		}
		flags = append(flags, "--dimensions="+strings.Join(names, ","))
	}
	return flags
}

func tail(path string) []byte {
	b, err := os.ReadFile(filepath.Clean(path))
	if os.IsNotExist(err) {
		return []byte("it never ran")
	}
	if err != nil {
		return []byte(err.Error())
	}
	lines := bytes.SplitAfter(b, []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-30):], nil)
}

func (d *Deployment) topic(name string) string { return d.prefix + name }

func (d *Deployment) events() string { return d.topic("delivery-events") }

// Features implements [processorstest.Harness].
func (d *Deployment) Features() processorstest.Features {
	return processorstest.Features{Crash: true, Rebalance: true, BrokerRestart: d.config.RestartBroker != nil}
}

// Partitions implements [processorstest.Harness].
func (d *Deployment) Partitions() int { return d.config.Partitions }

// Replicas implements [processorstest.Harness].
func (d *Deployment) Replicas() int { return len(d.replicas) }

// Produce implements [processorstest.Harness].
func (d *Deployment) Produce(t testing.TB, records []processorstest.Record) {
	t.Helper()
	d.log = nil
	out := make([]kafka.Record, len(records))
	for i, r := range records {
		key := []byte(r.Key)
		out[i] = kafka.Record{
			Topic: d.events(), Partition: processorstest.Partition(key, int32(d.config.Partitions)),
			Timestamp: r.Timestamp, Key: key, Value: r.Value,
		}
	}
	for records := range slices.Chunk(out, portion) {
		<-d.pace.C
		_, err := d.client.Produce(t.Context(), records...)
		require.NoError(t, err)
	}
}

// Log implements [processorstest.Harness].
func (d *Deployment) Log(t testing.TB) [][]processorstest.LogRecord {
	t.Helper()
	if d.log != nil {
		return d.log
	}
	read, err := d.client.ReadAll(t.Context(), d.events())
	require.NoError(t, err)
	log := make([][]processorstest.LogRecord, len(read))
	for p, records := range read {
		for _, r := range records {
			log[p] = append(log[p], logRecord(r))
		}
	}
	d.log = log
	return log
}

func logRecord(r kafka.Record) processorstest.LogRecord {
	headers := make([]codecs.Header, len(r.Headers))
	for i, h := range r.Headers {
		headers[i] = codecs.Header{Key: h.Key, Value: h.Value}
	}
	return processorstest.LogRecord{
		Record:  processorstest.Record{Key: string(r.Key), Value: r.Value, Timestamp: r.Timestamp},
		Offset:  r.Offset,
		Headers: func() []codecs.Header { return headers },
	}
}

// end is the position after the last record of each partition.
func (d *Deployment) end(t testing.TB) []int64 {
	t.Helper()
	log := d.Log(t)
	end := make([]int64, len(log))
	for p, records := range log {
		if n := len(records); n > 0 {
			end[p] = records[n-1].Offset + 1
		}
	}
	return end
}

// DeadLetters implements [processorstest.Harness].
func (d *Deployment) DeadLetters(t testing.TB) map[codecs.Reason]int {
	t.Helper()
	topic := d.topic("delivery-events-dead-letter")
	// What a transaction wrote becomes visible in one partition after another.
	eventually(t, "all dead letters are decided", nil, func() (string, bool) {
		written, err := d.client.Ends(t.Context(), topic, kafka.Uncommitted)
		require.NoError(t, err)
		visible, err := d.client.Ends(t.Context(), topic, kafka.Committed)
		require.NoError(t, err)
		return fmt.Sprintf("visible up to %v of %v", visible, written), fmt.Sprint(visible) == fmt.Sprint(written)
	})
	read, err := d.client.ReadAll(t.Context(), topic)
	require.NoError(t, err)
	reasons := map[codecs.Reason]int{}
	for _, records := range read {
		for _, r := range records {
			reasons[reason(t, r)]++
		}
	}
	return reasons
}

func reason(t testing.TB, r kafka.Record) codecs.Reason {
	t.Helper()
	for _, h := range r.Headers {
		if h.Key == "deliverystat.reason" {
			return codecs.Reason(h.Value)
		}
	}
	t.Fatalf("dead letter %d of partition %d says no reason", r.Offset, r.Partition)
	return ""
}

// patience is how long a condition may take to come true. It bounds a hang, it
// measures nothing.
const patience = 2 * time.Minute

// eventually waits until probe says that what holds. It fails with the last
// state that probe saw, or when r, if any, has ended.
func eventually(t testing.TB, what string, r *replica.Replica, probe func() (state string, ok bool)) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	for {
		state, ok := probe()
		if ok {
			return
		}
		if r != nil && !r.Process().Running() {
			t.Fatalf("%s: it ended with code %d", what, r.Process().ExitCode())
		}
		select {
		case <-pause.C:
		case <-deadline.C:
			t.Fatalf("%s: not within %s; last seen: %s", what, patience, state)
		}
	}
}
