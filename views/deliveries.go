package views

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"deliverystat/codecs"
	"deliverystat/processors"
	"deliverystat/processors/exactlyonce"
)

// DeliveriesConfig configures a Deliveries.
type DeliveriesConfig struct {
	Settings *processors.Settings
	// Hasher places the keys of the input. A key that a converter has wrapped
	// may lie elsewhere: it is found all the same, only later.
	Hasher exactlyonce.Hasher
	Logger *slog.Logger
}

// Deliveries is the view of the table latest-delivery: the row of each
// delivery, judged by the clock of its partition, and an index of the live
// ones.
type Deliveries struct {
	cfg      DeliveriesConfig
	table    Table
	live     *liveIndex
	lists    chan struct{} // holds one for each list under way
	progress sync.Map      // partition → decodedProgress, the last one read

	mu        sync.Mutex
	announced map[int32]int64 // position of the last batch, maybe not visible yet
	next      chan struct{}   // closed at the next batch
}

type decodedProgress struct {
	raw      []byte
	progress *codecs.Progress
}

// NewDeliveries makes the view over the table that follow makes.
func NewDeliveries(cfg DeliveriesConfig, follow Follow) (*Deliveries, error) {
	if cfg.Hasher == "" {
		cfg.Hasher = exactlyonce.Murmur2
	}
	d := &Deliveries{
		cfg:       cfg,
		live:      newLiveIndex(cfg.Settings),
		lists:     make(chan struct{}, runtime.GOMAXPROCS(0)),
		announced: map[int32]int64{},
		next:      make(chan struct{}),
	}
	table, err := follow(deliveriesSink{d})
	if err != nil {
		return nil, err
	}
	d.table = table
	return d, nil
}

// Run follows the table until ctx ends.
func (d *Deliveries) Run(ctx context.Context) error { return d.table.Run(ctx) }

// Remaining returns for each partition of the table how many offsets are left to
// read before it has recovered; nothing before the partitions are known.
func (d *Deliveries) Remaining() []int64 { return remaining(d.table) }

// Partitions returns the number of partitions of the table, which is that of
// the input; 0 if not known yet.
func (d *Deliveries) Partitions() int32 { return d.table.Partitions() }

// Get returns the delivery, or found false if it is neither live nor closed
// within the window. At says what the answer reflects: of a delivery that was
// found, the position of its partition, the others being -1; else that of every
// partition, since all were searched. Ready is false before the first recovery,
// as long as a partition to be searched has never been processed, and where a
// row can not be read.
func (d *Deliveries) Get(id string) (delivery codecs.Delivery, at codecs.Reflected, found, ready bool) {
	n := d.table.Partitions()
	if n <= 0 || !d.table.Recovered() {
		return codecs.Delivery{}, codecs.Reflected{}, false, false
	}
	if !codecs.ValidID(id) {
		at, ready = d.reflected()
		return codecs.Delivery{}, at, false, ready
	}
	progress := make([]*codecs.Progress, n)
	first := d.cfg.Hasher.Partition([]byte(id), n)
	for i := range n {
		partition := (first + i) % n
		row, p, err := d.read(partition, id)
		if err != nil {
			d.cfg.Logger.Error("reading the delivery table", "partition", partition, "err", err)
		}
		if err != nil || p == nil {
			return codecs.Delivery{}, codecs.Reflected{}, false, false
		}
		progress[partition] = p
		if row == nil {
			continue
		}
		if delivery, found = d.cfg.Settings.Deliver(id, row, p); found {
			clear(progress)
			progress[partition] = p
			return delivery, reflected(progress, partition), true, true
		}
	}
	return codecs.Delivery{}, reflected(progress, first), false, true
}

// Position returns the position of every partition now, or false before the
// first recovery or as long as a partition has never been processed.
func (d *Deliveries) Position() (codecs.Position, bool) {
	at, ready := d.reflected()
	return at.Position, ready
}

// reflected is Position with the newest event time.
func (d *Deliveries) reflected() (codecs.Reflected, bool) {
	n := d.table.Partitions()
	if n <= 0 || !d.table.Recovered() {
		return codecs.Reflected{}, false
	}
	progress := make([]*codecs.Progress, n)
	for partition := range n {
		_, p, err := d.read(partition, "")
		if err != nil || p == nil {
			return codecs.Reflected{}, false
		}
		progress[partition] = p
	}
	return reflected(progress, 0), true
}

// reflected joins progress. Partitions without one, or with one in another life
// of the topic than that of partition owner, are not known.
func reflected(progress []*codecs.Progress, owner int32) codecs.Reflected {
	at := codecs.Reflected{
		Position:  codecs.Position{TopicID: progress[owner].TopicID, Next: make([]int64, len(progress))},
		EventTime: codecs.None,
	}
	for i, p := range progress {
		at.Next[i] = -1
		if p != nil && p.TopicID == at.TopicID {
			at.Next[i], at.EventTime = p.Position, max(at.EventTime, p.Clock)
		}
	}
	return at
}

// Wait returns nil once Get reflects p, at once if it does already, else the
// context's error.
func (d *Deliveries) Wait(ctx context.Context, p codecs.Position) error {
	for {
		d.mu.Lock()
		next, coming := d.next, true
		for partition, offset := range p.Next {
			announced, ok := d.announced[int32(partition)]
			coming = coming && (offset < 0 || ok && announced >= offset)
		}
		d.mu.Unlock()
		if d.reaches(p) {
			return nil
		}
		if coming {
			// The table shows a batch right after it has announced it.
			if !await(ctx, time.Millisecond, func() bool { return d.reaches(p) }) {
				return ctx.Err()
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-next:
		}
	}
}

// reaches reports whether reads reflect p now.
func (d *Deliveries) reaches(p codecs.Position) bool {
	if !d.table.Recovered() {
		return false
	}
	n := d.table.Partitions()
	for partition, offset := range p.Next {
		if offset < 0 {
			continue
		}
		if int32(partition) >= n {
			return false
		}
		_, at, err := d.read(int32(partition), "")
		if err != nil || at == nil || at.Position < offset || p.TopicID != "" && p.TopicID != at.TopicID {
			return false
		}
	}
	return true
}

// read returns the row of id in partition, nil if there is none or id is "",
// and the progress row of the same batch.
func (d *Deliveries) read(partition int32, id string) (row *codecs.Row, progress *codecs.Progress, err error) {
	var value, raw []byte
	err = d.table.View(partition, func(get func(string) ([]byte, error)) error {
		if raw, err = get(codecs.ProgressKey); err != nil || id == "" {
			return err
		}
		value, err = get(id)
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("reading the local table: %w", err)
	}
	if progress, err = d.decode(partition, raw); err != nil || value == nil {
		return nil, progress, err
	}
	if row, err = d.cfg.Settings.Lifecycle.ReadRow(value); err != nil {
		return nil, nil, fmt.Errorf("decoding a row: %w", err)
	}
	return row, progress, nil
}

// decode reads a progress row, mostly from the cache; nil if there is none.
func (d *Deliveries) decode(partition int32, raw []byte) (*codecs.Progress, error) {
	if raw == nil {
		return nil, nil
	}
	if cached, ok := d.progress.Load(partition); ok {
		if c := cached.(decodedProgress); bytes.Equal(c.raw, raw) {
			return c.progress, nil
		}
	}
	progress, err := codecs.ReadProgress(raw)
	if err != nil {
		return nil, fmt.Errorf("decoding the progress row: %w", err)
	}
	d.progress.Store(partition, decodedProgress{raw, progress})
	return progress, nil
}

// Stuck returns for each status, by rank, how many live deliveries have been in
// it for longer than its entry in after at the time now. A status without an
// entry has none. Ready is false before the first recovery. It is the
// one answer that depends on the wall clock.
func (d *Deliveries) Stuck(now time.Time, after map[codecs.Status]time.Duration) (stuck []int64, ready bool) {
	if !d.table.Recovered() {
		return nil, false
	}
	return d.live.stuck(now.UnixNano(), after), true
}

// deliveriesSink takes what the table tells.
type deliveriesSink struct{ d *Deliveries }

// Reset implements Sink.
func (s deliveriesSink) Reset(partition int32) {
	s.d.live.reset(partition)
	s.d.mu.Lock()
	delete(s.d.announced, partition)
	s.d.mu.Unlock()
}

// Applied implements Sink.
func (s deliveriesSink) Applied(partition int32, rows []exactlyonce.Change) {
	d := s.d
	changes := make([]rowChange, 0, len(rows))
	var progress *codecs.Progress
	var raw []byte
	for _, row := range rows {
		var err error
		switch {
		case row.Key == codecs.ProgressKey:
			raw = row.Value
			progress, err = d.decode(partition, raw)
		case row.Value == nil:
			changes = append(changes, rowChange{id: row.Key})
		default:
			change := rowChange{id: row.Key}
			change.row, err = d.cfg.Settings.Lifecycle.ReadRow(row.Value)
			changes = append(changes, change)
		}
		if err != nil {
			d.cfg.Logger.Error("unreadable row in the delivery table, left out of the index", "partition", partition, "err", err)
		}
	}
	d.live.apply(partition, changes, progress, raw)
	if progress == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.announced[partition] = progress.Position
	close(d.next)
	d.next = make(chan struct{})
}
