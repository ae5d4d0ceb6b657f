package views_test

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/processors/exactlyonce"
	"deliverystat/views"
)

// fakeTable is a table in memory whose changelog is what the test tells it.
type fakeTable struct {
	sink      views.Sink
	recovered atomic.Bool

	mu   sync.RWMutex
	rows []map[string][]byte
	// hold, if not nil, is received from between announcing a batch and showing
	// it.
	hold chan struct{}
}

// newFakeTable makes a table of n partitions.
func newFakeTable(n int) *fakeTable {
	f := &fakeTable{}
	for range n {
		f.rows = append(f.rows, map[string][]byte{})
	}
	return f
}

func (f *fakeTable) follow(sink views.Sink) (views.Table, error) {
	f.sink = sink
	return f, nil
}

func (f *fakeTable) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (f *fakeTable) Recovered() bool { return f.recovered.Load() }

func (f *fakeTable) Partitions() int32 { return int32(len(f.rows)) }

func (f *fakeTable) Remaining(partition int32) int64 {
	if f.recovered.Load() {
		return 0
	}
	return 100 + int64(partition)
}

func (f *fakeTable) View(partition int32, read func(get func(string) ([]byte, error)) error) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return read(func(key string) ([]byte, error) { return f.rows[partition][key], nil })
}

// write commits one epoch.
func (f *fakeTable) write(partition int32, rows ...exactlyonce.Change) {
	f.sink.Applied(partition, rows)
	if f.hold != nil {
		<-f.hold
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, row := range rows {
		if row.Value == nil {
			delete(f.rows[partition], row.Key)
		} else {
			f.rows[partition][row.Key] = row.Value
		}
	}
}

// wipe makes the partition's copy start empty.
func (f *fakeTable) wipe(partition int32) {
	f.recovered.Store(false)
	f.mu.Lock()
	clear(f.rows[partition])
	f.mu.Unlock()
	f.sink.Reset(partition)
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// start runs run until the test ends, and fails the test if it fails.
func start(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
}

const lifeA, lifeB = "aaaa", "bbbb" // topic IDs

// total is the total row of scope.
func total(scope string, counts ...codecs.StatusCount) exactlyonce.Change {
	return exactlyonce.Change{Key: codecs.TotalKey(scope), Value: codecs.AppendCounts([]byte{}, counts)}
}

// countsProgress is the progress row of the counts table with one partition per
// position, all told and with equal settings.
func countsProgress(topicID string, positions ...int64) exactlyonce.Change {
	return countsProgressOf(func(*codecs.PartitionCounts) {}, topicID, positions...)
}

// countsProgressOf lets change have its way with each partition.
func countsProgressOf(change func(*codecs.PartitionCounts), topicID string, positions ...int64) exactlyonce.Change {
	p := codecs.CountsProgress{TopicID: "tallies"}
	for i, position := range positions {
		of := codecs.PartitionCounts{
			Partition: int32(i), TopicID: topicID, Position: position,
			Clock: position * 1e9, Horizon: codecs.None, SettingsHash: 7, Full: true, Audit: codecs.Audit{At: codecs.None},
		}
		change(&of)
		p.Partitions = append(p.Partitions, of)
	}
	return exactlyonce.Change{Key: codecs.ProgressKey, Value: codecs.AppendCountsProgress(nil, &p)}
}
