package exactlyonce

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
)

// standby keeps the local stores of the table partitions that other members own
// up to date, so that an assignment has to read the last records only.
//
// It reads the committed changelog as a recovery does, and writes to the same
// stores; so a takeover needs to know nothing of it. It keeps no rows in memory
// but those on their way to disk, and it gives way: one partition at a time is
// written, none while a session recovers, and a partition that is assigned is let
// go of before its recovery begins. (Goka's own standby makes the recovery of an
// assignment wait for that of all other partitions.)
//
// Any fault of the consumer begins anew with the question whether the store can
// be used: after a long silence tombstones may be gone from the log.
type standby struct {
	a        *Attempt
	consumer sarama.Consumer
	turn     chan struct{} // full while one writes, or a session recovers
	held     bool          // by a session; its goroutine only

	mu  sync.Mutex
	all map[int32]*bystander
}

// bystander is one partition that another member owns.
type bystander struct {
	s         *standby
	partition int32
	store     *store
	cancel    context.CancelFunc
	done      chan struct{}
	target    atomic.Int64 // end of the changelog to reach, as of the beginning; -1 until known
}

func newStandby(a *Attempt) (*standby, error) {
	consumer, err := sarama.NewConsumer(a.cfg.Client.Brokers, a.cfg.Client.Sarama())
	if err != nil {
		return nil, fmt.Errorf("opening the consumer of the standby: %w", err)
	}
	return &standby{a: a, consumer: consumer, turn: make(chan struct{}, 1), all: map[int32]*bystander{}}, nil
}

// yield gives way to a session that recovers, and lets go of its partitions.
func (s *standby) yield(assigned []int32) {
	if !s.held {
		s.turn <- struct{}{} // a batch at most is waited for
		s.held = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range assigned {
		if b := s.all[p]; b != nil {
			b.cancel()
			<-b.done
			delete(s.all, p)
		}
	}
}

// resume goes on, and takes up the partitions that are not the session's.
func (s *standby) resume(assigned []int32) {
	<-s.turn
	s.held = false
	table := s.a.cfg.table()
	partitions, err := s.a.cluster.Partitions(table)
	if err != nil {
		s.a.cfg.Logger.Warn("standing by for no more partitions, their number is not known", "topic", table, "err", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range partitions {
		if s.all[p] != nil || slices.Contains(assigned, p) {
			continue
		}
		b := &bystander{s: s, partition: p, store: s.a.stores.get(table, p), done: make(chan struct{})}
		b.target.Store(-1)
		var ctx context.Context
		ctx, b.cancel = context.WithCancel(s.a.ctx)
		s.all[p] = b
		s.a.background.Go(func() {
			defer close(b.done)
			b.run(ctx)
		})
	}
}

// status describes the partitions that are kept for others.
func (s *standby) status() []PartitionStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []PartitionStatus
	for p, b := range s.all {
		st := PartitionStatus{Partition: p, State: "standby", Remaining: -1}
		if target := b.target.Load(); target >= 0 {
			st.Remaining = max(0, target-b.store.offset()-1)
		}
		all = append(all, st)
	}
	slices.SortFunc(all, func(a, b PartitionStatus) int { return cmp.Compare(a.Partition, b.Partition) })
	return all
}

// run follows the changelog until ctx ends.
func (b *bystander) run(ctx context.Context) {
	a := b.s.a
	for {
		err := b.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		a.cfg.Logger.Warn("standing by ended, starting again", "topic", a.cfg.table(), "partition", b.partition, "err", err)
		if pause(ctx, time.Second) != nil {
			return
		}
	}
}

func (b *bystander) follow(ctx context.Context) error {
	a, table := b.s.a, b.s.a.cfg.table()
	id, err := a.cluster.topicID(table)
	if err != nil {
		return err
	}
	if err := b.store.open(id, a.cluster.usable(ctx, table, b.partition)); err != nil {
		return err
	}
	b.store.own(b)
	defer b.store.disown(b)
	oldest, err := a.cluster.logOffset(ctx, table, b.partition, sarama.OffsetOldest)
	if err != nil {
		return err
	}
	newest, err := a.cluster.logOffset(ctx, table, b.partition, sarama.OffsetNewest)
	if err != nil {
		return err
	}
	from := max(oldest, b.store.offset()+1)
	target, err := VisibleEnd(ctx, a.cluster, table, b.partition, from, newest)
	if err != nil {
		return err
	}
	b.target.Store(target)
	records, err := b.s.consumer.ConsumePartition(table, b.partition, from)
	if err != nil {
		return err
	}
	// Closing waits for the fetch under way; an assignment does not.
	defer func() { go func() { _ = records.Close() }() }()
	return b.take(ctx, records)
}

// take writes records to the store.
func (b *bystander) take(ctx context.Context, records sarama.PartitionConsumer) error {
	rows := make([]Change, 0, standbyBatch)
	for {
		select {
		case m, ok := <-records.Messages():
			if !ok {
				return errors.New("the consumer ended by itself")
			}
			if err := b.write(ctx, m, records.Messages(), rows); err != nil {
				return err
			}
		case err := <-records.Errors():
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// standbyBatch is how many rows are written in one turn, if so many are waiting.
const standbyBatch = 250

// write takes m, and what waits behind it, to the store. Rows is empty room.
func (b *bystander) write(ctx context.Context, m *sarama.ConsumerMessage, waiting <-chan *sarama.ConsumerMessage, rows []Change) error {
	select {
	case b.s.turn <- struct{}{}:
		defer func() { <-b.s.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		rows = append(rows, Change{string(m.Key), m.Value})
		offset := m.Offset
		if len(rows) < cap(rows) {
			select {
			case next, ok := <-waiting:
				if ok {
					m = next
					continue
				}
			default:
			}
		}
		return b.store.put(b, rows, offset)
	}
}
