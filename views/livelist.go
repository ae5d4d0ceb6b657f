package views

import (
	"math"
	"slices"
	"sort"

	"github.com/tidwall/btree"

	"deliverystat/codecs"
)

// page is a part of a list of live rows.
type page struct {
	rows  []*liveRow
	total int64
	more  bool // rows follow
}

// list returns the rows that q asks for. The caller holds the lock.
func (x *liveIndex) list(q *codecs.LiveQuery) page {
	if q.OrderID != "" {
		return x.listOrder(q)
	}
	g := x.all
	if q.Dimension != "" {
		g = x.dimensions[q.Dimension]
	}
	before := int64(math.MaxInt64)
	if q.OldestFirst {
		before = q.Before
	}
	var out page
	var runs []*run
	for i := range g.statuses {
		status := codecs.Status(i)
		if q.Status != nil && *q.Status != status {
			continue
		}
		out.total += g.count(q.Value, status, before)
		if r, ok := g.run(q, status); ok {
			runs = append(runs, r)
		}
	}
	// Statuses are few, so the least head is looked for.
	for len(runs) > 0 && len(out.rows) < q.Limit {
		least := 0
		for i := range runs[1:] {
			if less(q, runs[i+1].head, runs[least].head) {
				least = i + 1
			}
		}
		out.rows = append(out.rows, runs[least].head)
		if !runs[least].next() {
			runs = slices.Delete(runs, least, least+1)
		}
	}
	out.more = len(runs) > 0
	return out
}

// listOrder is list for the deliveries of one order, which are few: they are
// looked at one by one.
func (x *liveIndex) listOrder(q *codecs.LiveQuery) page {
	var rows []*liveRow
	pivot := &liveRow{partition: math.MinInt32}
	pivot.attributes[codecs.OrderID] = q.OrderID
	x.orders.Ascend(pivot, func(r *liveRow) bool {
		if r.attributes[codecs.OrderID] != q.OrderID {
			return false
		}
		if (q.Status == nil || *q.Status == r.status) &&
			(q.Dimension == "" || x.dimensions[q.Dimension].value(r) == q.Value) &&
			(!q.OldestFirst || r.since < q.Before) {
			rows = append(rows, r)
		}
		return true
	})
	if q.OldestFirst {
		slices.SortFunc(rows, func(a, b *liveRow) int {
			if less(q, a, b) {
				return -1
			}
			return 1 // no two rows have the same place
		})
	}
	out := page{total: int64(len(rows))}
	if q.After != nil {
		after := after(q)
		rows = rows[sort.Search(len(rows), func(i int) bool { return less(q, after, rows[i]) }):]
	}
	n := min(len(rows), q.Limit)
	out.rows, out.more = rows[:n], n < len(rows)
	return out
}

// less reports whether a comes before b in the list that q asks for.
func less(q *codecs.LiveQuery, a, b *liveRow) bool {
	if q.OldestFirst && a.since != b.since {
		return a.since < b.since
	}
	return compareKeys(a, b) < 0
}

// after is a row at the place after which q wants to go on.
func after(q *codecs.LiveQuery) *liveRow {
	return &liveRow{id: q.After.ID, partition: q.After.Partition, since: q.After.Since}
}

// count returns how many rows with this value and status are in it since before
// this time.
func (g *grouping) count(value string, status codecs.Status, before int64) int64 {
	return g.rank(value, status, before) - g.rank(value, status, math.MinInt64)
}

// rank returns how many rows come before the first one with this value and
// status that is in it since this time or later.
func (g *grouping) rank(value string, status codecs.Status, since int64) int64 {
	return int64(sort.Search(g.bySince.Len(), func(i int) bool {
		r, _ := g.bySince.GetAt(i)
		switch v := g.value(r); {
		case v != value:
			return v > value
		case r.status != status:
			return r.status > status
		default:
			return r.since >= since
		}
	}))
}

// run is the rows of one value and status that are left to list.
type run struct {
	rows    btree.IterG[*liveRow]
	belongs func(*liveRow) bool
	head    *liveRow
}

// run returns the rows of one status that q asks for, or false if there are none.
func (g *grouping) run(q *codecs.LiveQuery, status codecs.Status) (*run, bool) {
	tree := g.byID
	if q.OldestFirst {
		tree = g.bySince
	}
	first := &liveRow{since: math.MinInt64, partition: math.MinInt32}
	if q.After != nil {
		first = after(q)
	}
	first.status = status
	for a := range first.attributes { // the one that g looks at is among them
		first.attributes[a] = q.Value
	}
	r := &run{rows: tree.Iter(), belongs: func(r *liveRow) bool {
		return r.status == status && g.value(r) == q.Value && (!q.OldestFirst || r.since < q.Before)
	}}
	if !r.rows.Seek(first) || !r.take() {
		return nil, false
	}
	if q.After != nil && !less(q, first, r.head) && !r.next() {
		return nil, false
	}
	return r, true
}

// next makes head the following row, and returns false if there is none.
func (r *run) next() bool { return r.rows.Next() && r.take() }

func (r *run) take() bool {
	r.head = r.rows.Item()
	return r.belongs(r.head)
}
