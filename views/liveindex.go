package views

import (
	"cmp"
	"math"
	"sort"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"deliverystat/codecs"
	"deliverystat/processors"
)

// liveRow is what the index keeps of a live delivery.
type liveRow struct {
	id        string
	since     int64 // since when in its status
	due       int64 // the clock beyond which it is abandoned; math.MaxInt64 if never
	partition int32
	status    codecs.Status
}

// rowChange is one decoded row of a batch; a nil row deletes.
type rowChange struct {
	id  string
	row *codecs.Row
}

// liveIndex orders the live deliveries by status and since, so that those that
// are stuck are counted without a scan. It changes by whole batches.
//
// It needs about 170 bytes per live row, beside the ID: the liveRow 48, its
// place in the partition's map about 60, and in each of two trees about 30.
// Closed rows are not in it.
//
// A clock that jumps makes many rows due at once; they leave within the batch
// that brought the clock, at about a microsecond each, and a reader waits that
// long.
type liveIndex struct {
	settings *processors.Settings

	mu         sync.RWMutex
	byStatus   []*btree.BTreeG[*liveRow] // by rank, ordered by since
	partitions map[int32]*livePartition
}

// livePartition is the index's share of one partition.
type livePartition struct {
	at   processors.Stream
	rows map[string]*liveRow
	due  *btree.BTreeG[*liveRow] // those that can be abandoned, ordered by due
}

func newLiveIndex(settings *processors.Settings) *liveIndex {
	x := &liveIndex{settings: settings, partitions: map[int32]*livePartition{}}
	for range settings.Lifecycle.Len() {
		x.byStatus = append(x.byStatus, newTree(func(r *liveRow) int64 { return r.since }))
	}
	return x
}

// newTree returns a tree ordered by a time, then by delivery.
func newTree(by func(*liveRow) int64) *btree.BTreeG[*liveRow] {
	less := func(a, b *liveRow) bool {
		return cmp.Or(cmp.Compare(by(a), by(b)), cmp.Compare(a.id, b.id), cmp.Compare(a.partition, b.partition)) < 0
	}
	return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
}

// apply takes one batch of a partition. Progress is nil where the partition has
// none.
func (x *liveIndex) apply(partition int32, rows []rowChange, progress *codecs.Progress) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := x.partitions[partition]
	if p == nil {
		p = &livePartition{
			at:   processors.NewStream(),
			rows: map[string]*liveRow{},
			due:  newTree(func(r *liveRow) int64 { return r.due }),
		}
		x.partitions[partition] = p
	}
	if progress != nil {
		p.at = processors.StreamOf(progress)
	}
	for _, change := range rows {
		x.remove(p, p.rows[change.id])
		if change.row == nil {
			continue
		}
		standing := x.settings.Standing(change.row, p.at)
		if standing.Closed {
			continue
		}
		x.insert(p, &liveRow{
			id:        change.id,
			since:     processors.Since(change.row),
			due:       standing.Due,
			partition: partition,
			status:    standing.Status,
		})
	}
	for {
		r, ok := p.due.Min()
		if !ok || r.due >= p.at.Clock {
			return
		}
		x.remove(p, r)
	}
}

// reset forgets a partition.
func (x *liveIndex) reset(partition int32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if p := x.partitions[partition]; p != nil {
		for _, r := range p.rows {
			x.remove(p, r)
		}
	}
	delete(x.partitions, partition)
}

func (x *liveIndex) insert(p *livePartition, r *liveRow) {
	p.rows[r.id] = r
	x.byStatus[r.status].Set(r)
	if r.due != math.MaxInt64 {
		p.due.Set(r)
	}
}

func (x *liveIndex) remove(p *livePartition, r *liveRow) {
	if r == nil {
		return
	}
	delete(p.rows, r.id)
	x.byStatus[r.status].Delete(r)
	if r.due != math.MaxInt64 {
		p.due.Delete(r)
	}
}

// stuck returns by rank how many rows have been in their status for longer than
// after, at the time now.
func (x *liveIndex) stuck(now int64, after map[codecs.Status]time.Duration) []int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	out := make([]int64, len(x.byStatus))
	for status, threshold := range after {
		if int(status) >= len(out) || threshold <= 0 {
			continue
		}
		tree, before := x.byStatus[status], now-int64(threshold)
		out[status] = int64(sort.Search(tree.Len(), func(i int) bool {
			r, _ := tree.GetAt(i)
			return r.since >= before
		}))
	}
	return out
}
