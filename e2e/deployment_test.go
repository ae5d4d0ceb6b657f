//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/e2e/broker"
	"deliverystat/e2e/kafka"
	"deliverystat/e2e/replica"
)

// partitions is how many partitions the input of a deployment has unless a
// test says otherwise.
const partitions = 8

// patience is how long a condition may take to come true. It bounds a hang, it
// measures nothing.
const patience = 2 * time.Minute

// deployment is one installation of the service: its topics under a prefix of
// their own, and the replicas that a test starts.
type deployment struct {
	t       *testing.T
	cluster *broker.Cluster
	client  *kafka.Client
	prefix  string
	flags   []string // of every command that knows them: topics and formats
	dir     string
}

var deployments atomic.Int64

// newDeployment names an installation on the shared broker. Its topics do not
// exist yet.
func newDeployment(t *testing.T) *deployment {
	t.Helper()
	return newDeploymentOn(t, shared)
}

func newDeploymentOn(t *testing.T, cluster *broker.Cluster) *deployment {
	t.Helper()
	return &deployment{
		t: t, cluster: cluster, client: connect(t, cluster), dir: t.TempDir(),
		prefix: fmt.Sprintf("t%d-", deployments.Add(1)),
	}
}

// install names an installation on the shared broker and makes its topics.
func install(t *testing.T) *deployment {
	t.Helper()
	d := newDeployment(t)
	d.createTopics("--partitions=" + strconv.Itoa(partitions))
	return d
}

func (d *deployment) topic(name string) string { return d.prefix + name }

// events is the input topic.
func (d *deployment) events() string { return d.topic("delivery-events") }

// args puts the flags that all commands of this installation share after a
// command's name.
func (d *deployment) args(command ...string) []string {
	args := append(slices.Clone(command), "--kafka-brokers="+d.cluster.Addresses(), "--topic-prefix="+d.prefix)
	return append(args, d.flags...)
}

// run runs a command of this installation to its end.
func (d *deployment) run(command []string, flags ...string) replica.Result {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), 5*time.Minute)
	defer cancel()
	result, err := binary.Run(ctx, nil, append(d.args(command...), flags...)...)
	require.NoError(d.t, err)
	return result
}

// mustRun runs a command that has to succeed.
func (d *deployment) mustRun(command []string, flags ...string) {
	d.t.Helper()
	result := d.run(command, flags...)
	require.Zero(d.t, result.ExitCode, "%v %v\n%s%s", command, flags, result.Stdout, result.Stderr)
}

func (d *deployment) createTopics(flags ...string) {
	d.t.Helper()
	d.mustRun([]string{"topics", "create"}, append(flags, "--replication-factor=1", "--allow-unsafe")...)
}

// truth is what simulate says the service has to answer in the end.
type truth struct {
	Counts    map[string]int64 `json:"counts"`
	Live      int64            `json:"live"`
	Closed    map[string]int64 `json:"closed"`
	Events    int64            `json:"events"`
	Malformed int64            `json:"malformed"`
}

// simulation is a running `deliverystat simulate`.
type simulation struct {
	done chan struct{}
	path string
	out  replica.Result
	err  error
}

// simulate starts to produce simulated events.
func (d *deployment) simulate(flags ...string) *simulation {
	d.t.Helper()
	s := &simulation{done: make(chan struct{}), path: filepath.Join(d.dir, "truth.json")}
	args := append(d.args("simulate"), append(flags, "--truth="+s.path)...)
	ctx, cancel := context.WithCancel(d.t.Context())
	d.t.Cleanup(func() { cancel(); <-s.done })
	go func() {
		defer close(s.done)
		s.out, s.err = binary.Run(ctx, nil, args...)
	}()
	return s
}

// wait waits until everything is produced and returns the truth about it.
func (s *simulation) wait(t *testing.T) truth {
	t.Helper()
	select {
	case <-s.done:
	case <-time.After(5 * time.Minute):
		t.Fatal("simulate does not end")
	}
	require.NoError(t, s.err)
	require.Zero(t, s.out.ExitCode, s.out.Stderr)
	b, err := os.ReadFile(s.path)
	require.NoError(t, err)
	var truth truth
	require.NoError(t, json.Unmarshal(b, &truth), "%s", b)
	return truth
}

// replica prepares a replica that is killed when the test ends, if not before.
func (d *deployment) replica(name string, flags ...string) *replica.Replica {
	d.t.Helper()
	r, err := replica.New(replica.Options{
		Binary: binary, Brokers: d.cluster.Addresses(), Prefix: d.prefix, Name: name, Dir: d.dir,
		Flags: append(append([]string{"--session-timeout=6s", "--allow-unsafe"}, d.flags...), flags...),
	})
	require.NoError(d.t, err)
	d.t.Cleanup(func() {
		require.NoError(d.t, r.Kill())
		if d.t.Failed() {
			d.showLog(r)
		}
	})
	return r
}

// serve starts a replica.
func (d *deployment) serve(name string, flags ...string) *replica.Replica {
	d.t.Helper()
	r := d.replica(name, flags...)
	require.NoError(d.t, r.Start())
	return r
}

// showLog puts the end of a replica's log into the output of the test.
func (d *deployment) showLog(r *replica.Replica) {
	b, err := os.ReadFile(r.LogFile())
	if err != nil {
		d.t.Log(err)
		return
	}
	lines := bytes.SplitAfter(b, []byte("\n"))
	d.t.Logf("end of the log of replica %s:\n%s", r.Name, bytes.Join(lines[max(0, len(lines)-25):], nil))
	var where bytes.Buffer
	keepLog(&where, d.t.Name()+"-"+r.Name, r.LogFile())
	d.t.Log(strings.TrimSpace(where.String()))
}

// eventually waits until probe says that what holds. It fails with the last
// state that probe saw.
func eventually(t *testing.T, what string, probe func() (state string, ok bool)) {
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
		select {
		case <-pause.C:
		case <-deadline.C:
			t.Fatalf("%s: not within %s; last seen: %s", what, patience, state)
		}
	}
}

// waitReady waits until /readyz of each replica says so.
func waitReady(t *testing.T, replicas ...*replica.Replica) {
	t.Helper()
	for _, r := range replicas {
		eventually(t, "replica "+r.Name+" is ready", func() (string, bool) {
			if !r.Process().Running() {
				t.Fatalf("replica %s ended with code %d", r.Name, r.Process().ExitCode())
			}
			ready, state := r.Ready(t.Context())
			return state, ready
		})
	}
}

// waitOwns waits until r owns n partitions of the input.
func (d *deployment) waitOwns(r *replica.Replica, n int) {
	d.t.Helper()
	eventually(d.t, fmt.Sprintf("replica %s owns %d partitions", r.Name, n), func() (string, bool) {
		owned, err := r.Owned(d.t.Context(), d.topic("latest-delivery"))
		if err != nil {
			return err.Error(), false
		}
		return strconv.Itoa(owned), owned == n
	})
}

// end returns the position after the last record of each input partition, in
// the form that min_position takes; a transaction marker is no record.
func (d *deployment) end() string {
	d.t.Helper()
	log, err := d.client.ReadAll(d.t.Context(), d.events())
	require.NoError(d.t, err)
	var parts []string
	for p, records := range log {
		if n := len(records); n > 0 {
			parts = append(parts, fmt.Sprintf("%d:%d", p, records[n-1].Offset+1))
		}
	}
	return strings.Join(parts, ",")
}

// countsAtEnd returns what r answers once it reflects the whole input and says
// that it lags no record behind.
func (d *deployment) countsAtEnd(r *replica.Replica) replica.Counts {
	d.t.Helper()
	query := ""
	if end := d.end(); end != "" {
		query = "min_position=" + end + "&wait=5s"
	}
	var counts replica.Counts
	eventually(d.t, "replica "+r.Name+" answers at the end of the input", func() (string, bool) {
		var err error
		if counts, err = r.Counts(d.t.Context(), query); err != nil {
			return err.Error(), false
		}
		return fmt.Sprintf("%+v", counts), counts.AsOf.LagRecords == 0
	})
	return counts
}

// requireExact demands that every reader of each replica, and verify, see the
// truth at the end of the input.
func (d *deployment) requireExact(want truth, replicas ...*replica.Replica) {
	d.t.Helper()
	for _, r := range replicas {
		got := d.countsAtEnd(r)
		require.Equal(d.t, nonZero(want.Counts), nonZero(got.Counts), "live counts of replica %s", r.Name)
		require.Equal(d.t, want.Live, got.Live, "live deliveries of replica %s", r.Name)
		require.Equal(d.t, nonZero(want.Closed), nonZero(got.Closed), "closed counts of replica %s", r.Name)
		d.requireGauges(want, r)
	}
	d.mustRun([]string{"verify"})
	d.mustRun([]string{"verify"}, "--url=http://"+replicas[0].HTTP)
}

// requireGauges demands that the gauges of a replica whose counts are at the
// end of the input show the truth.
func (d *deployment) requireGauges(want truth, r *replica.Replica) {
	d.t.Helper()
	m, err := r.Metrics(d.t.Context())
	require.NoError(d.t, err)
	require.Equal(d.t, nonZero(want.Counts), nonZero(m.By("deliverystat_deliveries", "status")), "live gauges of replica %s", r.Name)
	require.Equal(d.t, nonZero(want.Closed), nonZero(m.By("deliverystat_closed_deliveries", "status")), "closed gauges of replica %s", r.Name)
}

// nonZero drops the statuses that count nothing.
func nonZero(counts map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for status, n := range counts {
		if n != 0 {
			out[status] = n
		}
	}
	return out
}

// deadLetters counts the dead letters by reason.
func (d *deployment) deadLetters() map[string]int64 {
	d.t.Helper()
	log, err := d.client.ReadAll(d.t.Context(), d.topic("delivery-events-dead-letter"))
	require.NoError(d.t, err)
	reasons := map[string]int64{}
	for _, records := range log {
		for _, r := range records {
			for _, h := range r.Headers {
				if h.Key == "deliverystat.reason" {
					reasons[string(h.Value)]++
				}
			}
		}
	}
	return reasons
}

func sum(counts map[string]int64) (total int64) {
	for _, n := range counts {
		total += n
	}
	return total
}

// requireStatus waits until r says that a delivery has a status.
func (d *deployment) requireStatus(r *replica.Replica, id, status string) {
	d.t.Helper()
	eventually(d.t, "delivery "+id+" is "+status, func() (string, bool) {
		delivery, err := r.Delivery(d.t.Context(), url.PathEscape(id))
		if err != nil {
			return err.Error(), false
		}
		return delivery.Status, delivery.Status == status
	})
}
