package views

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"deliverystat/codecs"
	"deliverystat/processors"
	"deliverystat/processors/exactlyonce"
)

// Counts is the view of the table count-per-status: one immutable snapshot of
// all scopes at one position, replaced when a progress row arrives.
//
// The first snapshot appears once the table has recovered and says of every
// input partition that it told everything since its last gap. From then on
// there always is one: while the table recovers again, or is incomplete, the
// old one stays. Within one life of the input topic no partition's position
// ever goes back, and a former life never returns.
type Counts struct {
	table   Table
	logger  *slog.Logger
	current atomic.Pointer[published]
	reset   chan struct{} // holds one if the table began anew

	mu      sync.Mutex
	fold    *processors.CountsTable
	newest  *codecs.Counts      // of fold, published or not
	broken  bool                // fold lacks a row that could not be read
	retired map[string]struct{} // IDs of former lives of the input topic
}

// published is a snapshot and the promise of the next one.
type published struct {
	counts *codecs.Counts // nil before the first
	next   chan struct{}  // closed when there is a newer one
}

// NewCounts makes the view over the table that follow makes.
func NewCounts(follow Follow, logger *slog.Logger) (*Counts, error) {
	c := &Counts{
		logger:  logger,
		reset:   make(chan struct{}, 1),
		fold:    processors.NewCountsTable(),
		retired: map[string]struct{}{},
	}
	c.current.Store(&published{next: make(chan struct{})})
	table, err := follow(countsSink{c})
	if err != nil {
		return nil, err
	}
	c.table = table
	return c, nil
}

// Remaining returns for each partition of the table how many offsets are left to
// read before it has recovered; nothing before the partitions are known.
func (c *Counts) Remaining() []int64 { return remaining(c.table) }

// Run follows the table until ctx ends.
func (c *Counts) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.table.Run(ctx) })
	group.Go(func() error {
		// The last batch of a recovery comes before the table is recovered.
		for await(ctx, recoveryPoll, c.table.Recovered) {
			c.mu.Lock()
			c.publish()
			c.mu.Unlock()
			select {
			case <-ctx.Done():
				return nil
			case <-c.reset:
			}
		}
		return nil
	})
	return group.Wait()
}

// Snapshot returns the newest counts, or nil before there are any. It never
// blocks. What it returns must not be changed.
func (c *Counts) Snapshot() *codecs.Counts { return c.current.Load().counts }

// Wait returns the first snapshot that reaches p, or the context's error.
func (c *Counts) Wait(ctx context.Context, p codecs.Position) (*codecs.Counts, error) {
	for {
		now := c.current.Load()
		if now.counts != nil && now.counts.Position.Reaches(p) {
			return now.counts, nil
		}
		select {
		case <-now.next:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// countsSink takes what the table tells.
type countsSink struct{ c *Counts }

// Reset implements Sink. The snapshot stays until there is one to follow it.
func (s countsSink) Reset(int32) {
	c := s.c
	c.mu.Lock()
	c.fold, c.newest, c.broken = processors.NewCountsTable(), nil, false
	c.mu.Unlock()
	select {
	case c.reset <- struct{}{}:
	default:
	}
}

// Applied implements Sink.
func (s countsSink) Applied(_ int32, rows []exactlyonce.Change) {
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken {
		return
	}
	newest, err := c.fold.Apply(rows)
	if err != nil {
		c.broken = true
		c.logger.Error("unreadable row in the counts table, the counts stay as they are", "err", err)
		return
	}
	c.newest = newest
	c.publish()
}

// publish replaces the snapshot by the newest, if that is complete and does not
// go back.
func (c *Counts) publish() {
	old, next := c.current.Load(), c.newest
	if c.broken || next == nil || !next.Complete || next == old.counts || !c.table.Recovered() {
		return
	}
	if old.counts != nil && !c.follows(old.counts.Position, next.Position) {
		return
	}
	c.current.Store(&published{counts: next, next: make(chan struct{})})
	close(old.next)
}

// follows reports whether a snapshot at next may replace one at old.
func (c *Counts) follows(old, next codecs.Position) bool {
	if old.TopicID == next.TopicID {
		return next.Reaches(old)
	}
	if _, ok := c.retired[next.TopicID]; ok {
		return false
	}
	c.retired[old.TopicID] = struct{}{}
	return true
}
