package processors

import (
	"fmt"

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
	owing    []*entry                              // in line for their summary; those that owe none are skipped
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
func (p *partition) read(rec *codecs.Record, d *codecs.Decoded, misplaced bool) (Verdict, error) {
	p.stream.record(rec.Timestamp)
	if r := p.settings.Admit(d, rec.Timestamp, misplaced); r.Result != Applied {
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
	switch {
	case t.Result != Late:
	case acceptsLate(rec):
		t = p.settings.Accept(row, event, p.stream)
		r = Verdict{Result: t.Result, Detail: "it is late, and marked to be applied all the same"}
	default:
		r = p.settings.refuseLate(row, event, p.stream)
	}
	if t.Row != row {
		if err := p.write(e, event.DeliveryID, row, t.Row); err != nil {
			return Verdict{}, err
		}
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
	if e == nil {
		return nil, nil
	}
	row := p.inMemory(e)
	if row == nil {
		var err error
		if row, err = p.stored(e.key); err != nil {
			return nil, err
		}
	}
	e.row = row
	p.rows.touch(e)
	return row, nil
}

// inMemory returns the row of e, or nil if only the table has it.
func (p *partition) inMemory(e *entry) *codecs.Row {
	switch {
	case e.row != nil:
		return e.row
	case e.epoch == p.running.number:
		return p.running.changes[e.slot].row
	case p.frozen != nil && e.epoch == p.frozen.number:
		return p.frozen.changes[e.slot].row
	}
	return nil
}

// write puts row in the place of old, the row of e; both are nil if the delivery
// was unknown. What is still to be told of its former life is told first.
func (p *partition) write(e *entry, id string, old, row *codecs.Row) error {
	st := p.settings.Standing(row, p.stream)
	var told codecs.Closing
	if e == nil {
		if err := p.tellBuried(p.graves.waiting[id]); err != nil {
			return err
		}
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
		told = old.Summarized
		if e.owes {
			e.owes = false
			told = p.summarize(id, old)
		}
		p.move(e, p.tally.setOf(row, e.scopes), st.Status, st.Closed, st.Due)
	}
	if st.Closed || told != (codecs.Closing{}) {
		told = p.summarize(id, row)
	}
	row.Summarized = told
	e.orderTime = p.settings.GreatestOrderTime(row)
	e.row = row
	p.rows.touch(e)
	p.running.change(e, row)
	return nil
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
			p.owe(e)
		}
	}
}

// forget makes e no row any more, and raises the horizon over all its events.
func (p *partition) forget(e *entry) {
	p.stream.Horizon = max(p.stream.Horizon, e.orderTime)
	p.tally.add(e.scopes, e.status, e.closed, -1)
	p.running.stats.forgotten(e.status)
	p.index.remove(e)
	row := p.inMemory(e)
	e.row = nil
	if e.epoch == p.running.number {
		// The row that the table has is an older one, which may not be due:
		// the delete can not wait for a later epoch.
		if e.owes {
			p.summarize(e.key, row)
		}
		p.running.changes[e.slot].row = nil
		p.graves.bury(e.key, e.slot)
	} else {
		// The summary goes with the delete: until then, the table says that it
		// is owed.
		p.graves.queue(grave{e.key, e.owes, row})
	}
	e.owes = false
}

// adopt takes in a committed row. A row that is forgotten and not yet deleted is
// counted nowhere; then it returns the due time, and whether a summary is owed.
func (p *partition) adopt(key string, row *codecs.Row) (due dueGrave, forgotten bool) {
	st := p.settings.Standing(row, p.stream)
	owes := row.Summarized != st.closing()
	if st.Forgotten {
		// Has been done already, unless the settings have changed.
		p.stream.Horizon = max(p.stream.Horizon, p.settings.GreatestOrderTime(row))
		return dueGrave{st.Due, grave{key: key, owes: owes}}, true
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
	if owes {
		p.owe(e)
	}
	return dueGrave{}, false
}

// cut freezes the running epoch, with at most deletes deletes of former epochs
// and about reads of the rows that are only in the table, and begins the next.
func (p *partition) cut(deletes, reads int) (*epoch, error) {
	if err := p.payOwed(reads); err != nil {
		return nil, err
	}
	for _, g := range p.graves.take(deletes, reads) {
		if err := p.tellBuried(g); err != nil {
			return nil, err
		}
		p.running.deletes = append(p.running.deletes, g.key)
	}
	p.frozen = p.running
	p.running, p.spare = p.spare, nil
	if p.running == nil {
		p.running = newEpoch(0, p.settings.Lifecycle)
	}
	p.running.number = p.frozen.number + 1
	return p.frozen, nil
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
