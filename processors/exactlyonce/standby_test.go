package exactlyonce

import (
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
)

// waitWarm waits until a replica keeps partitions for others, and has stored all
// that can be read of them.
func (w *world) waitWarm(t *testing.T, rt *Runtime) {
	t.Helper()
	var state string
	wait(t, 60*time.Second, func() bool {
		state = fmt.Sprint("owned: ", rt.Status(), ", kept: ", rt.Standby())
		table, kept := w.visible(t, w.table()), rt.Standby()
		if len(kept) == 0 || len(kept)+len(rt.Status()) != partitions {
			return false
		}
		for _, k := range kept {
			records := table[k.Partition]
			if at := rt.stores.get(w.table(), k.Partition).offset(); len(records) == 0 || at != records[len(records)-1].Offset {
				state += fmt.Sprintf(", partition %d stored to %d", k.Partition, at)
				return false
			}
		}
		return true
	}, func() string { return state })
}

// expel takes the instance out of the group, as an operator does.
func (w *world) expel(t *testing.T, instance string) {
	t.Helper()
	client, err := sarama.NewClient(w.brokers, ClientConfig{}.Sarama())
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	_, err = Expel(t.Context(), client, w.Group, instance)
	require.NoError(t, err)
}

// Whenever it dies, a standby leaves prefixes of the changelog on its disk, of the
// partitions that it owned and of those that it kept.
func standbyIsAPrefix(t *testing.T, brokers []string) {
	w := newWorld(t, brokers)
	a, b := w.replica(t, "a"), w.replica(t, "b")
	b.Standby = true
	pa := a.start(t)
	for range 3 {
		w.produce(t, 3000)
		pb := b.start(t)
		w.produce(t, 3000)
		wait(t, 60*time.Second, func() bool { // LevelDB has made them
			made, err := filepath.Glob(filepath.Join(b.Dir, "*", "CURRENT"))
			return err == nil && len(made) == partitions
		}, func() string { return "the standby does not store every partition" })
		for range 4 {
			w.produce(t, 1000)
		}
		pb.kill()
		w.requireStores(t, b.Dir)
	}
	w.waitConsumed(t)
	pa.stop(t)
	w.requireExact(t, a.Dir, b.Dir)
}

// A standby has stored what the others wrote before it takes over, goes on
// exactly, and keeps the partitions that it gives back.
func standbyTakesOver(t *testing.T, brokers []string) {
	w := newWorld(t, brokers)
	a, b := w.replica(t, "a"), w.replica(t, "b")
	b.Standby = true
	w.keys = 5000 // a changelog of many batches
	var ended endings
	var log lines
	pa := a.start(t)
	w.produce(t, 20_000)
	w.waitConsumed(t)
	rt, stop := b.run(t, func(c *Config, g func(*Attempt) *goka.GroupGraph) func(*Attempt) *goka.GroupGraph {
		c.Observer, c.Logger = &ended, slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), &log), nil))
		return g
	})
	w.waitWarm(t, rt)
	w.produce(t, 5000)
	w.waitConsumed(t)
	w.waitWarm(t, rt)

	w.produce(t, 1000)
	pa.kill()
	w.expel(t, "a")
	w.produce(t, 1000)
	w.waitConsumed(t)
	require.Len(t, rt.Status(), partitions)
	require.Empty(t, rt.Standby())

	pa = a.start(t)
	w.produce(t, 5000)
	w.waitConsumed(t)
	w.waitWarm(t, rt)
	w.produce(t, 1000)
	w.waitConsumed(t)
	stop()
	require.Zero(t, ended.all())
	require.NotContains(t, log.String(), "standing by ended", "it lets go of what it owns")
	pa.stop(t)
	w.requireExact(t, a.Dir, b.Dir)
}

// What a standby missed for too long may have held deletions that are gone from
// the log: it begins anew.
func oldStandbyBeginsAnew(t *testing.T, brokers []string) {
	w := newWorld(t, brokers)
	a, b := w.replica(t, "a"), w.replica(t, "b")
	b.Standby = true
	pa := a.start(t)
	w.produce(t, 2000)
	rt, stop := b.run(t, nil)
	w.waitConsumed(t)
	w.waitWarm(t, rt)
	kept := rt.Standby()
	stop()
	w.alter(t, w.table(), "delete.retention.ms", "1")
	w.produce(t, 2000)
	wait(t, 60*time.Second, func() bool {
		table := w.visible(t, w.table())
		for _, k := range kept {
			records := table[k.Partition]
			if records[len(records)-1].Offset <= rt.stores.get(w.table(), k.Partition).offset() {
				return false
			}
		}
		return true
	}, func() string { return "the other writes nothing" })
	var log lines
	rt, stop = b.run(t, func(c *Config, g func(*Attempt) *goka.GroupGraph) func(*Attempt) *goka.GroupGraph {
		c.Logger = slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), &log), nil))
		return g
	})
	w.waitConsumed(t)
	w.waitWarm(t, rt)
	stop()
	for _, k := range kept {
		require.Regexp(t, fmt.Sprintf(`rebuilding it from the changelog.*%s\.%d.*older than half the tombstone retention`, w.table(), k.Partition), log.String())
	}
	pa.stop(t)
	w.requireExact(t, a.Dir, b.Dir)
}

// alter sets a topic setting.
func (w *world) alter(t *testing.T, topic, name, value string) {
	t.Helper()
	answers, err := kadm.NewClient(w.client).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: name, Value: &value}}, topic)
	require.NoError(t, err)
	for _, a := range answers {
		require.NoError(t, a.Err)
	}
}
