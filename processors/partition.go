package processors

import (
	"cmp"
	"fmt"
	"slices"

	"deliverystat/codecs"
)

// partition is what is in memory of one partition of latest-delivery: the
// stream, an index of all rows, their counts, and the rows that the running and
// the committing epoch changed. It makes every decision and does no I/O but
// reading a row that is not in memory.
type partition struct {
	settings *Settings
	stream   Stream
	index    *index
	tally    *tally
	rows     rowCache
	running  *epoch
	frozen   *epoch // being committed, or nil
	spare    *epoch // for the next cut, or nil
	graves   graves
	stored   func(key string) (*codecs.Row, error) // reads a committed row
}

func newPartition(s *Settings, cachedRows int, stored func(key string) (*codecs.Row, error)) *partition {
	return &partition{
		settings: s,
		stream:   NewStream(),
		index:    newIndex(),
		tally:    newTally(s),
		rows:     newRowCache(cachedRows),
		running:  newEpoch(1, s.Lifecycle),
		graves:   newGraves(),
		stored:   stored,
	}
}

// read takes one record through the decisions, in the order that the package
// documentation states.
func (p *partition) read(d *codecs.Decoded, timestamp int64, misplaced bool) (Verdict, error) {
	p.stream.record(timestamp)
	if r := p.settings.Admit(d, timestamp, misplaced); r.Result != Applied {
		p.expire()
		p.running.stats.count(r)
		return r, nil
	}
	event := &d.Event
	p.stream.Clock = max(p.stream.Clock, event.OccurredAt)
	p.expire()
	e := p.index.entries[event.DeliveryID]
	row, err := p.row(e)
	if err != nil {
		return Verdict{}, err
	}
	t := p.settings.Observe(row, event, p.stream)
	r := Verdict{Result: t.Result}
	if t.Result == Late {
		r = p.settings.refuseLate(row, event, p.stream)
	}
	if t.Row != row {
		p.write(e, event.DeliveryID, t.Row)
		p.expire()
	}
	p.running.stats.count(r)
	if t.Result == Applied {
		p.running.stats.applied = append(p.running.stats.applied, event.OccurredAt)
	}
	return r, nil
}

// row returns the row of e, nil if e is nil.
func (p *partition) row(e *entry) (*codecs.Row, error) {
	switch {
	case e == nil:
		return nil, nil
	case e.row != nil:
	case e.epoch == p.running.number:
		e.row = p.running.changes[e.slot].row
	case p.frozen != nil && e.epoch == p.frozen.number:
		e.row = p.frozen.changes[e.slot].row
	default:
		row, err := p.stored(e.key)
		if err != nil {
			return nil, err
		}
		e.row = row
	}
	p.rows.touch(e)
	return e.row, nil
}

// write puts row in the place of what the delivery had before; e is nil if it
// was unknown.
func (p *partition) write(e *entry, id string, row *codecs.Row) {
	st := p.settings.Standing(row, p.stream)
	if e == nil {
		e = &entry{
			key:    id,
			scopes: p.tally.setOf(row, nil),
			due:    st.Due,
			status: st.Status,
			closed: st.Closed,
		}
		p.index.add(e)
		p.tally.add(e.scopes, e.status, e.closed, +1)
		p.running.stats.moved(noStatus, st.Status, false, st.Closed)
		if slot, buried := p.graves.reopen(id); buried {
			e.epoch, e.slot = p.running.number, slot
		}
	} else {
		p.move(e, p.tally.setOf(row, e.scopes), st.Status, st.Closed, st.Due)
	}
	e.orderTime = p.settings.GreatestOrderTime(row)
	e.row = row
	p.rows.touch(e)
	p.running.change(e, row)
}

// move gives e another standing: a retraction and an assertion.
func (p *partition) move(e *entry, scopes *scopeSet, status codecs.Status, closed bool, due int64) {
	if e.status != status || e.scopes != scopes {
		p.tally.add(e.scopes, e.status, e.closed, -1)
		p.tally.add(scopes, status, closed, +1)
	}
	if e.status != status {
		p.running.stats.moved(int(e.status), status, e.closed, closed)
	}
	e.scopes = scopes
	p.index.restand(e, status, closed, due)
}

// expire abandons and forgets every row that is due, in order of due time and
// then of key. It reads no row: the index has what is needed.
func (p *partition) expire() {
	s := p.settings
	for {
		e := p.index.next(p.stream.Clock, s.Forgets(p.stream))
		switch {
		case e == nil:
			return
		case e.closed:
			p.forget(e)
		default: // the clock has passed the greatest event time + abandon-after
			st := s.closed(s.Lifecycle.Abandoned(), e.due, p.stream)
			p.move(e, e.scopes, st.Status, st.Closed, st.Due)
		}
	}
}

// forget makes e no row any more, and raises the horizon over all its events.
func (p *partition) forget(e *entry) {
	p.stream.Horizon = max(p.stream.Horizon, e.orderTime)
	p.tally.add(e.scopes, e.status, e.closed, -1)
	p.running.stats.forgotten(e.status)
	p.index.remove(e)
	e.row = nil
	if e.epoch == p.running.number {
		// The row that the table has is an older one, which may not be due:
		// the delete can not wait for a later epoch.
		p.running.changes[e.slot].row = nil
		p.graves.bury(e.key, e.slot)
	} else {
		p.graves.queue(e.key)
	}
}

// adopt takes in a committed row. It returns the due time of a row that is
// forgotten and not yet deleted, which is counted nowhere.
func (p *partition) adopt(key string, row *codecs.Row) (due int64, forgotten bool) {
	st := p.settings.Standing(row, p.stream)
	if st.Forgotten {
		// Has been done already, unless the settings have changed.
		p.stream.Horizon = max(p.stream.Horizon, p.settings.GreatestOrderTime(row))
		return st.Due, true
	}
	e := &entry{
		key:       key,
		scopes:    p.tally.setOf(row, nil),
		due:       st.Due,
		orderTime: p.settings.GreatestOrderTime(row),
		status:    st.Status,
		closed:    st.Closed,
	}
	p.index.add(e)
	p.tally.add(e.scopes, e.status, e.closed, +1)
	return 0, false
}

// cut freezes the running epoch, with at most n deletes of former epochs, and
// begins the next.
func (p *partition) cut(n int) *epoch {
	p.frozen = p.running
	p.frozen.deletes = p.graves.take(n)
	p.running, p.spare = p.spare, nil
	if p.running == nil {
		p.running = newEpoch(0, p.settings.Lifecycle)
	}
	p.running.number = p.frozen.number + 1
	return p.frozen
}

// committed says that the frozen epoch is durable: its rows can be read from
// the table now.
func (p *partition) committed() {
	p.frozen.recycle()
	p.frozen, p.spare = nil, p.frozen
}

// refuseLate is the refusal of an event that Observe found late.
func (s *Settings) refuseLate(row *codecs.Row, e *codecs.Event, at Stream) Verdict {
	horizon := at.Horizon
	if row != nil {
		horizon = row.Horizon
	}
	return Verdict{Late, codecs.TooLate, fmt.Sprintf(
		"the order time %s is not after %s, up to which deliveries may have been forgotten",
		written(s.OrderTime(e.OccurredAt, e.Status)), written(horizon))}
}

// graves are the keys of forgotten rows whose deletes are to be written.
type graves struct {
	waiting map[string]struct{} // in line
	line    []string            // oldest first; keys that wait no more are skipped
	buried  map[string]int32    // deleted by the running epoch: its slot
}

func newGraves() graves {
	return graves{waiting: map[string]struct{}{}, buried: map[string]int32{}}
}

// queue puts a delete in line.
func (g *graves) queue(key string) {
	if _, waits := g.waiting[key]; waits {
		return
	}
	g.waiting[key] = struct{}{}
	g.line = append(g.line, key)
}

// bury notes that the running epoch deletes key in slot.
func (g *graves) bury(key string, slot int32) { g.buried[key] = slot }

// reopen drops the delete of key, which is written anew. It returns the slot of
// a delete that the running epoch has already.
func (g *graves) reopen(key string) (slot int32, buried bool) {
	if len(g.waiting) > 0 {
		delete(g.waiting, key)
	}
	if len(g.buried) > 0 {
		slot, buried = g.buried[key]
		delete(g.buried, key)
	}
	return slot, buried
}

// pending reports whether deletes are in line.
func (g *graves) pending() bool { return len(g.waiting) > 0 }

// take removes the oldest deletes from the line, at most n, for the epoch that
// is being cut.
func (g *graves) take(n int) []string {
	clear(g.buried)
	if len(g.waiting) == 0 {
		g.line = nil
		return nil
	}
	keys := make([]string, 0, min(n, len(g.waiting)))
	i := 0
	for ; i < len(g.line) && len(keys) < n; i++ {
		if _, waits := g.waiting[g.line[i]]; waits {
			keys = append(keys, g.line[i])
			delete(g.waiting, g.line[i])
		}
	}
	g.line = g.line[i:]
	return keys
}

// dueRow is a forgotten row found in recovery.
type dueRow struct {
	key string
	due int64
}

// queueAll puts the deletes of rows in line, oldest first.
func (g *graves) queueAll(rows []dueRow) {
	slices.SortFunc(rows, func(a, b dueRow) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.key, b.key))
	})
	for _, r := range rows {
		g.queue(r.key)
	}
}
