package kafka

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Table is a running fold of a compacted topic: the last value of each key
// that read_committed readers can see.
type Table struct {
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu   sync.Mutex
	rows map[string][]byte
	err  error
}

// Follow folds topic from its beginning until Close.
func (c *Client) Follow(topic string) (*Table, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.seeds...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		return nil, fmt.Errorf("making a reader: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t := &Table{cancel: cancel, rows: map[string][]byte{}}
	t.done.Go(func() {
		defer cl.Close()
		for ctx.Err() == nil {
			t.fold(cl.PollFetches(ctx))
		}
	})
	return t, nil
}

func (t *Table) fold(fetches kgo.Fetches) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range fetches.Errors() {
		t.err = fmt.Errorf("following topic %s: %w", e.Topic, e.Err)
	}
	fetches.EachRecord(func(r *kgo.Record) {
		if r.Value == nil {
			delete(t.rows, string(r.Key))
			return
		}
		t.rows[string(r.Key)] = r.Value
	})
}

// Get returns the value of key, nil if there is none.
func (t *Table) Get(key string) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rows[key], t.err
}

// Close ends the fold.
func (t *Table) Close() {
	t.cancel()
	t.done.Wait()
}
