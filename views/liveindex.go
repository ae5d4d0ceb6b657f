package views

import (
	"cmp"
	"iter"
	"math"
	"strings"
	"sync"
	"time"
	"unique"

	"github.com/tidwall/btree"

	"deliverystat/codecs"
	"deliverystat/processors"
)

// liveRow is what the index keeps of a live delivery.
type liveRow struct {
	id         string
	attributes [codecs.NumAttributes]string // those that are counted by, and the order
	since      int64                        // since when in its status
	due        int64                        // the clock beyond which it is abandoned; math.MaxInt64 if never
	partition  int32
	status     codecs.Status
}

// rowChange is one decoded row of a batch; a nil row deletes.
type rowChange struct {
	id  string
	row *codecs.Row
}

// liveIndex finds live deliveries by status, a value of a counted dimension,
// order and age, without a scan. It changes by whole batches.
//
// It needs about 370 bytes per live row where one dimension is counted, IDs
// included, and 30 more for each further one: BenchmarkLiveIndex measures it.
// Closed rows are not in it.
//
// A clock that jumps makes many rows due at once; they leave within the batch
// that brought the clock, at some microseconds each, and a reader waits that
// long.
type liveIndex struct {
	settings *processors.Settings

	mu         sync.RWMutex
	all        *grouping
	dimensions map[string]*grouping // by name
	orders     *liveTree            // of rows with an order, by order ID and delivery
	partitions map[int32]*livePartition
}

// livePartition is the index's share of one partition.
type livePartition struct {
	at       processors.Stream
	progress []byte // the row that at is of; nil if there is none
	rows     map[string]*liveRow
	due      *liveTree // those that can be abandoned, ordered by due
}

type liveTree = btree.BTreeG[*liveRow]

// grouping orders all live rows by a value and their status, and those with the
// same in two ways.
type grouping struct {
	value         func(*liveRow) string
	byID, bySince *liveTree
	statuses      int
}

func newGrouping(statuses int, value func(*liveRow) string) *grouping {
	group := func(a, b *liveRow) int {
		return cmp.Or(strings.Compare(value(a), value(b)), cmp.Compare(a.status, b.status))
	}
	return &grouping{
		value: value,
		byID:  newTree(func(a, b *liveRow) int { return cmp.Or(group(a, b), compareKeys(a, b)) }),
		bySince: newTree(func(a, b *liveRow) int {
			return cmp.Or(group(a, b), cmp.Compare(a.since, b.since), compareKeys(a, b))
		}),
		statuses: statuses,
	}
}

// compareKeys orders by delivery; one whose key was wrapped may be in several
// partitions.
func compareKeys(a, b *liveRow) int {
	return cmp.Or(strings.Compare(a.id, b.id), cmp.Compare(a.partition, b.partition))
}

func newTree(compare func(a, b *liveRow) int) *liveTree {
	less := func(a, b *liveRow) bool { return compare(a, b) < 0 }
	return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
}

func newLiveIndex(settings *processors.Settings) *liveIndex {
	statuses := settings.Lifecycle.Len()
	x := &liveIndex{
		settings:   settings,
		all:        newGrouping(statuses, func(*liveRow) string { return "" }),
		dimensions: map[string]*grouping{},
		orders: newTree(func(a, b *liveRow) int {
			return cmp.Or(strings.Compare(a.attributes[codecs.OrderID], b.attributes[codecs.OrderID]), compareKeys(a, b))
		}),
		partitions: map[int32]*livePartition{},
	}
	for _, d := range settings.Dimensions {
		x.dimensions[d.String()] = newGrouping(statuses, func(r *liveRow) string { return r.attributes[d] })
	}
	return x
}

// apply takes one batch of a partition. Progress, decoded from raw, is nil where
// the partition has none.
func (x *liveIndex) apply(partition int32, rows []rowChange, progress *codecs.Progress, raw []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := x.partitions[partition]
	if p == nil {
		p = &livePartition{
			at:   processors.NewStream(),
			rows: map[string]*liveRow{},
			due:  newTree(func(a, b *liveRow) int { return cmp.Or(cmp.Compare(a.due, b.due), compareKeys(a, b)) }),
		}
		x.partitions[partition] = p
	}
	if progress != nil {
		p.at, p.progress = processors.StreamOf(progress), raw
	}
	for _, change := range rows {
		old := p.rows[change.id]
		next := x.rowOf(p, partition, change)
		switch {
		case old != nil && next != nil:
			x.move(p, old, next)
		case old != nil:
			x.remove(p, old)
		case next != nil:
			x.insert(p, next)
		}
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

// rowOf returns what the index keeps of a row, nil if it is not live.
func (x *liveIndex) rowOf(p *livePartition, partition int32, change rowChange) *liveRow {
	if change.row == nil {
		return nil
	}
	standing := x.settings.Standing(change.row, p.at)
	if standing.Closed {
		return nil
	}
	return &liveRow{
		id:         change.id,
		attributes: x.attributesOf(change.row),
		since:      processors.Since(change.row),
		due:        standing.Due,
		partition:  partition,
		status:     standing.Status,
	}
}

// attributesOf returns what is asked for of row. A dimension has few values: all
// rows share one copy of each.
func (x *liveIndex) attributesOf(row *codecs.Row) (out [codecs.NumAttributes]string) {
	for _, d := range x.settings.Dimensions {
		out[d] = unique.Make(row.Attributes[d].Value).Value()
	}
	out[codecs.OrderID] = row.Attributes[codecs.OrderID].Value
	return out
}

func (x *liveIndex) insert(p *livePartition, r *liveRow) {
	p.rows[r.id] = r
	for tree := range x.trees(p, r) {
		tree.Set(r)
	}
}

// move makes r what next says. It leaves the trees alone in which its place stays
// the same.
func (x *liveIndex) move(p *livePartition, r, next *liveRow) {
	if (r.attributes[codecs.OrderID] == "") != (next.attributes[codecs.OrderID] == "") ||
		(r.due == math.MaxInt64) != (next.due == math.MaxInt64) { // other trees
		x.remove(p, r)
		x.insert(p, next)
		return
	}
	moved := make([]*liveTree, 0, 8)
	for tree := range x.trees(p, r) {
		if tree.Less(r, next) || tree.Less(next, r) {
			tree.Delete(r)
			moved = append(moved, tree)
		}
	}
	*r = *next
	for _, tree := range moved {
		tree.Set(r)
	}
}

func (x *liveIndex) remove(p *livePartition, r *liveRow) {
	delete(p.rows, r.id)
	for tree := range x.trees(p, r) {
		tree.Delete(r)
	}
}

// trees yields the trees that r is in.
func (x *liveIndex) trees(p *livePartition, r *liveRow) iter.Seq[*liveTree] {
	return func(yield func(*liveTree) bool) {
		if r.due != math.MaxInt64 && !yield(p.due) ||
			r.attributes[codecs.OrderID] != "" && !yield(x.orders) ||
			!yield(x.all.byID) || !yield(x.all.bySince) {
			return
		}
		for _, g := range x.dimensions {
			if !yield(g.byID) || !yield(g.bySince) {
				return
			}
		}
	}
}

// stuck returns by rank how many rows have been in their status for longer than
// after, at the time now.
func (x *liveIndex) stuck(now int64, after map[codecs.Status]time.Duration) []int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	out := make([]int64, x.all.statuses)
	for status, threshold := range after {
		if int(status) < len(out) && threshold > 0 {
			out[status] = x.all.count("", status, now-int64(threshold))
		}
	}
	return out
}
