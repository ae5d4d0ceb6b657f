package exactlyonce

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/lovoo/goka/storage"
)

// FollowerConfig describes a read-only copy of a table.
type FollowerConfig struct {
	Client   ClientConfig
	Table    string // table topic
	StateDir string // parent of the local stores; not shared with a Runtime
	// Boundary is the key of the row that ends each epoch of a partition. Rows
	// become visible in batches up to and including it.
	Boundary string
	// FlushInterval is as in Config.
	FlushInterval time.Duration
	// StallAfter is how long a partition may leave alone a record that it could
	// read; then following begins anew; default 30s.
	StallAfter time.Duration
	Logger     *slog.Logger

	// Reset, if not nil, is told that the partition's copy starts empty.
	Reset func(partition int32)
	// Applied, if not nil, is told each batch of rows in log order, before it
	// becomes visible to Get. What the local store holds at the start comes
	// first, in batches of their own that may lack the boundary row but for
	// the last. Calls for one partition come one at a time. The batch is
	// the callee's to read until it returns; the values are its to keep.
	Applied func(partition int32, batch []Change)
}

// followerWait is how long a broker may keep a fetch of a follower waiting.
const followerWait = 100 * time.Millisecond

// Follower is a copy of a table on this process that follows the committed
// records of the changelog.
//
// Promised: a reader sees a partition as of the end of an epoch, never a
// mixture. A partition does not become visible before it was recovered to the
// visible end once; after a lost connection it stays as it was until it has
// passed an end that was read afterwards, because compaction may have removed
// rows of the epochs in between. Not promised: that two partitions are read
// as of one instant.
type Follower struct {
	cfg    FollowerConfig
	stores *stores

	mu         sync.RWMutex
	partitions []*followed // nil until the table is known
}

// NewFollower prepares a follower.
func NewFollower(cfg FollowerConfig) (*Follower, error) {
	setDefault(&cfg.FlushInterval, 10*time.Second)
	setDefault(&cfg.StallAfter, 30*time.Second)
	if cfg.Logger == nil || cfg.StateDir == "" || cfg.Table == "" || cfg.Boundary == "" || len(cfg.Client.Brokers) == 0 {
		return nil, errors.New("exactlyonce: FollowerConfig is incomplete")
	}
	return &Follower{cfg: cfg, stores: newStores(cfg.StateDir, cfg.FlushInterval, cfg.Logger)}, nil
}

// Run follows the table until ctx ends. It survives every fault of Kafka; it
// returns an error only if the local stores cannot be closed.
func (f *Follower) Run(ctx context.Context) error {
	const first, most = 100 * time.Millisecond, 3 * time.Second
	for backoff := first; ctx.Err() == nil; backoff = min(2*backoff, most) {
		start := time.Now()
		err := f.follow(ctx)
		if ctx.Err() != nil {
			break
		}
		if time.Since(start) > 30*time.Second {
			backoff = first
		}
		f.cfg.Logger.Warn("following ended, starting again", "topic", f.cfg.Table, "err", err, "pause", backoff)
		_ = pause(ctx, backoff) // the loop sees that ctx has ended
	}
	return f.stores.close()
}

// follow runs one goka.View.
func (f *Follower) follow(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	client := f.cfg.Client.until(ctx)
	c, err := newCluster(client)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // nothing is lost with it
	if err := f.prepare(ctx, c); err != nil {
		return err
	}
	var consumer sarama.Consumer // goka does not close the consumer of a view
	defer func() {
		if consumer != nil {
			_ = consumer.Close() // nothing is lost with it
		}
	}()
	view, err := goka.NewView(f.cfg.Client.Brokers, goka.Table(f.cfg.Table), RawCodec{},
		goka.WithViewClientID(f.cfg.Client.ClientID),
		goka.WithViewLogger(gokaLog{f.cfg.Logger}),
		goka.WithViewAutoReconnect(),
		goka.WithViewBackoffBuilder(func() (goka.Backoff, error) {
			return goka.NewSimpleBackoff(200*time.Millisecond, 2*time.Second), nil
		}),
		goka.WithViewStorageBuilder(func(_ string, partition int32) (storage.Storage, error) {
			return f.partitions[partition], nil
		}),
		goka.WithViewTopicManagerBuilder(func([]string) (goka.TopicManager, error) {
			return &topicManager{cluster: c, ctx: ctx, end: func(topic string, partition int32, oldest, hwm int64) (int64, error) {
				end, err := f.partitions[partition].aim(ctx, c, topic, oldest, hwm)
				if isUnusable(err) {
					cancel(err) // goka would only try again
				}
				return end, err
			}}, nil
		}),
		goka.WithViewConsumerSaramaBuilder(func(brokers []string, _ string) (sarama.Consumer, error) {
			s := client.Sarama()
			s.Consumer.MaxWaitTime = followerWait
			s.Consumer.Retry.Backoff = 200 * time.Millisecond
			consumer, err = sarama.NewConsumer(brokers, s)
			return consumer, err
		}),
	)
	if err != nil {
		return fmt.Errorf("setting up the view of %s: %w", f.cfg.Table, err)
	}
	var watching sync.WaitGroup
	watching.Go(func() { f.watch(ctx, c, cancel) })
	err = view.Run(ctx)
	if cause := context.Cause(ctx); cause != nil && parent.Err() == nil {
		err = cause
	}
	cancel(nil)
	watching.Wait()
	return err
}

// prepare opens the local stores, once, and hands out what they hold.
func (f *Follower) prepare(ctx context.Context, c *cluster) error {
	n, err := c.Client.Partitions(f.cfg.Table)
	if err != nil {
		return fmt.Errorf("partitions of %s: %w", f.cfg.Table, err)
	}
	id, err := c.topicID(f.cfg.Table)
	if err != nil {
		return err
	}
	if f.partitions != nil && len(f.partitions) != len(n) {
		return fmt.Errorf("topic %s has %d partitions, had %d", f.cfg.Table, len(n), len(f.partitions))
	}
	partitions := f.partitions
	if partitions == nil {
		partitions = make([]*followed, len(n))
		for p := range partitions {
			partitions[p] = &followed{f: f, id: int32(p), store: f.stores.get(f.cfg.Table, int32(p))}
		}
	}
	for p, fp := range partitions {
		if err := fp.open(id, c.usable(ctx, f.cfg.Table, int32(p))); err != nil {
			return err
		}
	}
	f.mu.Lock()
	f.partitions = partitions
	f.mu.Unlock()
	return nil
}

// Partitions returns the number of partitions of the table, 0 if it is not
// known yet.
func (f *Follower) Partitions() int32 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return int32(len(f.partitions))
}

// Recovered reports whether every partition has reached the visible end once.
func (f *Follower) Recovered() bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for _, p := range f.partitions {
		if !p.recovered.Load() {
			return false
		}
	}
	return len(f.partitions) > 0
}

// Remaining returns the changelog offsets that partition has left to read
// before it is recovered.
func (f *Follower) Remaining(partition int32) int64 {
	p := f.partition(partition)
	if p == nil || p.recovered.Load() {
		return 0
	}
	return max(0, p.target.Load()-p.store.offset()-1)
}

// Get returns the value of key in partition as of its last boundary, or nil.
func (f *Follower) Get(partition int32, key string) ([]byte, error) {
	p := f.partition(partition)
	if p == nil {
		return nil, fmt.Errorf("table %s has no partition %d", f.cfg.Table, partition)
	}
	return p.store.get(key)
}

// View calls read with a look-up function while partition stands still, so that
// several rows are read as of one boundary. It must be quick.
func (f *Follower) View(partition int32, read func(get func(key string) ([]byte, error)) error) error {
	p := f.partition(partition)
	if p == nil {
		return fmt.Errorf("table %s has no partition %d", f.cfg.Table, partition)
	}
	p.still.RLock()
	defer p.still.RUnlock()
	return read(p.store.get)
}

// Rows yields the rows of partition in key order, and then says whether reading
// them failed. Batches that arrive meanwhile may or may not be seen.
func (f *Follower) Rows(partition int32) (iter.Seq2[string, []byte], func() error) {
	p := f.partition(partition)
	if p == nil {
		return func(func(string, []byte) bool) {}, func() error {
			return fmt.Errorf("table %s has no partition %d", f.cfg.Table, partition)
		}
	}
	return p.store.rows()
}

func (f *Follower) partition(p int32) *followed {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if p < 0 || int(p) >= len(f.partitions) {
		return nil
	}
	return f.partitions[p]
}

// followed is one partition of a follower, and the storage that goka writes it
// to.
type followed struct {
	*store
	f  *Follower
	id int32

	batch     []Change     // read, not yet visible
	read      atomic.Int64 // offset of the last record read
	still     sync.RWMutex // held while a batch becomes visible
	target    atomic.Int64 // 1 + offset of the last record to read before anything is shown
	recovered atomic.Bool
}

var _ storage.Storage = (*followed)(nil)

// open opens the store, and hands out what it holds when that is not known yet.
func (p *followed) open(topicID string, usable func(storeMeta) error) error {
	known := p.store.db != nil
	before := p.store.offset()
	if err := p.store.open(topicID, usable); err != nil {
		return err
	}
	p.store.own(p)
	p.again()
	if known && p.store.offset() == before {
		return nil
	}
	p.recovered.Store(false)
	if p.f.cfg.Reset != nil {
		p.f.cfg.Reset(p.id)
	}
	if p.f.cfg.Applied == nil {
		return nil
	}
	rows, failed := p.store.rows()
	var batch []Change
	var boundary *Change
	for k, v := range rows {
		if k == p.f.cfg.Boundary {
			boundary = &Change{k, v}
			continue
		}
		if batch = append(batch, Change{k, v}); len(batch) == 1000 {
			p.f.cfg.Applied(p.id, batch)
			batch = batch[:0]
		}
	}
	if err := failed(); err != nil {
		return err
	}
	if boundary != nil {
		p.f.cfg.Applied(p.id, append(batch, *boundary))
	}
	return nil
}

// aim finds the end to which the partition must be read before it is shown, at
// each connection. What was connected again after long may have missed deletions
// that are gone from the log by now, so the store is judged anew.
func (p *followed) aim(ctx context.Context, c *cluster, topic string, oldest, hwm int64) (int64, error) {
	if at := p.store.offset(); at >= 0 {
		if err := c.usable(ctx, topic, p.id)(storeMeta{Offset: at}); err != nil {
			return 0, err
		}
	}
	// What was read but not shown is read again.
	p.again()
	end, err := VisibleEnd(ctx, c, topic, p.id, max(oldest, p.read.Load()+1), hwm)
	if err != nil {
		return 0, err
	}
	p.target.Store(end)
	if p.read.Load()+1 >= end {
		p.recovered.Store(true)
	}
	return end, nil
}

// again goes back to what is stored.
func (p *followed) again() {
	p.batch = nil
	p.read.Store(p.store.offset())
}

func (*followed) Open() error          { return nil }
func (*followed) Close() error         { return nil }
func (*followed) MarkRecovered() error { return nil }

func (p *followed) Has(key string) (bool, error) {
	v, err := p.Get(key)
	return v != nil, err
}

func (p *followed) Get(key string) ([]byte, error) { return p.store.get(key) }

func (p *followed) Set(key string, value []byte) error {
	p.batch = append(p.batch, Change{key, value})
	return nil
}

func (p *followed) Delete(key string) error { return p.Set(key, nil) }

// SetOffset says that the rows since the last call were read at offset.
func (p *followed) SetOffset(offset int64) error {
	p.read.Store(offset)
	shown := offset+1 >= p.target.Load()
	if n := len(p.batch); n == 0 || p.batch[n-1].Key != p.f.cfg.Boundary {
		return nil
	}
	// Before the first recovery nobody reads, so rows need not pile up in RAM.
	if !shown && p.recovered.Load() {
		return nil
	}
	if p.f.cfg.Applied != nil {
		p.f.cfg.Applied(p.id, p.batch)
	}
	p.still.Lock()
	err := p.store.put(p, p.batch, offset)
	p.still.Unlock()
	p.batch = p.batch[:0]
	if shown && !p.recovered.Swap(true) {
		p.f.cfg.Logger.Info("view recovered", "topic", p.f.cfg.Table, "partition", p.id, "offset", offset)
	}
	return err
}

// GetOffset implements storage.Storage.
func (p *followed) GetOffset(none int64) (int64, error) {
	if o := p.store.offset(); o >= 0 {
		return o, nil
	}
	return none, nil
}

func (*followed) Iterator() (storage.Iterator, error) { return nil, errNotForCallbacks }

func (*followed) IteratorWithRange(_, _ []byte) (storage.Iterator, error) {
	return nil, errNotForCallbacks
}
