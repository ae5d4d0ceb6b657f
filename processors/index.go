package processors

import (
	"math"

	"deliverystat/codecs"
)

// entry is what is kept in memory of every row of a partition: enough to move
// counts and to expire the row without reading it.
type entry struct {
	key       string
	scopes    *scopeSet // where the row is counted
	row       []byte    // encoded, if it is in memory
	due       int64     // the clock beyond which the standing changes next
	queued    int64     // the time by which the entry is queued, at most due
	orderTime int64     // greatest order time of any event merged into the row
	place     int32     // in its queue, -1 if it is in none
	slot      int32     // in the changes of the epoch
	epoch     uint32    // that changed the row last, 0 for none
	touched   uint32    // generation of the row cache
	status    codecs.Status
	closed    bool
	owes      bool // a summary, see partition.owing
}

// index holds the entries of a partition by key and by due time. Live and
// closed rows queue apart, because forgetting may have to wait for the record
// times while abandoning goes on.
type index struct {
	entries map[string]*entry
	live    dueQueue
	closed  dueQueue
}

func newIndex() *index { return &index{entries: map[string]*entry{}} }

// queue returns the queue that e belongs to.
func (x *index) queue(e *entry) *dueQueue {
	if e.closed {
		return &x.closed
	}
	return &x.live
}

// add puts in a new entry.
func (x *index) add(e *entry) {
	x.entries[e.key] = e
	e.place = -1
	x.queue(e).put(e)
}

// restand gives e another standing.
func (x *index) restand(e *entry, status codecs.Status, closed bool, due int64) {
	if e.closed != closed {
		x.queue(e).remove(e)
		e.closed = closed
	}
	e.status, e.due = status, due
	x.queue(e).put(e)
}

// remove takes e out.
func (x *index) remove(e *entry) {
	x.queue(e).remove(e)
	delete(x.entries, e.key)
}

// next returns the entry that falls due first, in order of due time and then of
// key, among those due before clock; nil if there is none. Closed ones count
// only if forgets.
func (x *index) next(clock int64, forgets bool) *entry {
	e := x.live.first(clock)
	if !forgets {
		return e
	}
	if c := x.closed.first(clock); c != nil && (e == nil || earlier(c, e)) {
		return c
	}
	return e
}

// earlier orders entries by the time they are queued by, and then by key.
func earlier(a, b *entry) bool {
	return a.queued < b.queued || a.queued == b.queued && a.key < b.key
}

// dueQueue is a heap of entries by due time. An entry whose due time moves
// later, as it does with almost every event, stays where it is until the clock
// has passed the time it is queued by.
type dueQueue []*entry

// put queues e, or moves it after its due time changed.
func (q *dueQueue) put(e *entry) {
	switch {
	case e.place < 0 && e.due < math.MaxInt64:
		e.place = int32(len(*q))
		*q = append(*q, e)
		e.queued = e.due
		q.up(int(e.place))
	case e.place >= 0 && e.due < e.queued:
		e.queued = e.due
		q.up(int(e.place))
	}
}

// first returns the entry that falls due first, if it is due before clock, or
// nil. It moves entries only as far as it takes to know.
func (q *dueQueue) first(clock int64) *entry {
	for len(*q) > 0 && (*q)[0].queued < clock {
		e := (*q)[0]
		switch {
		case e.due == e.queued:
			return e
		case e.due == math.MaxInt64:
			q.remove(e)
		default:
			e.queued = e.due
			q.down(0)
		}
	}
	return nil
}

// remove takes e out; it need not be in.
func (q *dueQueue) remove(e *entry) {
	i := int(e.place)
	if i < 0 {
		return
	}
	last := len(*q) - 1
	if i != last {
		(*q)[i] = (*q)[last]
		(*q)[i].place = int32(i)
	}
	(*q)[last] = nil
	*q = (*q)[:last]
	e.place = -1
	if i != last {
		q.down(i)
		q.up(i)
	}
}

func (q *dueQueue) up(i int) {
	h := *q
	for i > 0 {
		parent := (i - 1) / 2
		if !earlier(h[i], h[parent]) {
			return
		}
		q.swap(i, parent)
		i = parent
	}
}

func (q *dueQueue) down(i int) {
	h := *q
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && earlier(h[child+1], h[child]) {
			child++
		}
		if !earlier(h[child], h[i]) {
			return
		}
		q.swap(i, child)
		i = child
	}
}

func (q *dueQueue) swap(i, j int) {
	h := *q
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = int32(i), int32(j)
}
