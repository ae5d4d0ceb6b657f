package processors

import (
	"bytes"
	"fmt"
	"strings"

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
	owing    []*entry                         // in line for their summary; those that owe none are skipped
	stored   func(key string) ([]byte, error) // reads a committed row
	scratch  scratch
}

// scratch holds the rows that are decoded just now. Nothing but their bytes is
// kept: a row that is decoded when an event comes for it costs less than keeping
// it decoded, with its strings, before the eyes of the garbage collector.
type scratch struct {
	row   codecs.RowBuffer // that an event is applied to
	other codecs.RowBuffer // that is looked at meanwhile
	next  codecs.Row       // what becomes of row
	times []codecs.StatusTimes
	bytes []byte
	room  roomFor
}

func newPartition(s *Settings, cachedRows int, stored func(key string) ([]byte, error)) *partition {
	p := &partition{
		settings: s,
		stream:   NewStream(),
		index:    newIndex(),
		tally:    newTally(s),
		rows:     newRowCache(cachedRows),
		running:  newEpoch(1, s.Lifecycle),
		graves:   newGraves(),
		stored:   stored,
	}
	p.scratch.times = make([]codecs.StatusTimes, 0, s.Lifecycle.Len())
	p.scratch.room = func(int) *codecs.Row {
		p.scratch.next = codecs.Row{Timeline: p.scratch.times}
		return &p.scratch.next
	}
	return p
}

// read takes one record through the decisions, in the order that the package
// documentation states.
func (p *partition) read(rec *codecs.Record, d *codecs.Decoded, misplaced bool) (Verdict, error) {
	p.stream.record(rec.Timestamp)
	if r := p.settings.Admit(d, rec.Timestamp, misplaced); r.Result != Applied {
		if err := p.expire(); err != nil {
			return Verdict{}, err
		}
		p.running.stats.count(r)
		return r, nil
	}
	event := &d.Event
	p.stream.Clock = max(p.stream.Clock, event.OccurredAt)
	if err := p.expire(); err != nil {
		return Verdict{}, err
	}
	e := p.index.entries[event.DeliveryID]
	row, err := p.row(e)
	if err != nil {
		return Verdict{}, err
	}
	t := p.settings.observe(row, event, p.stream, p.scratch.room)
	r := Verdict{Result: t.Result}
	switch {
	case t.Result != Late:
	case acceptsLate(rec):
		t = p.settings.accept(row, event, p.stream, p.scratch.room)
		r = Verdict{Result: t.Result, Detail: "it is late, and marked to be applied all the same"}
	default:
		r = p.settings.refuseLate(row, event, p.stream)
	}
	if t.Row != row {
		if err := p.write(e, event.DeliveryID, row, t.Row); err != nil {
			return Verdict{}, err
		}
		if err := p.expire(); err != nil {
			return Verdict{}, err
		}
	}
	p.running.stats.count(r)
	if t.Result == Applied {
		p.running.stats.applied = append(p.running.stats.applied, event.OccurredAt)
	}
	return r, nil
}

// row returns the row of e, nil if e is nil. It is valid until the next call.
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
	return p.decode(&p.scratch.row, row)
}

func (p *partition) decode(into *codecs.RowBuffer, row []byte) (*codecs.Row, error) {
	decoded, err := into.Read(p.settings.Lifecycle, row)
	if err != nil {
		return nil, fmt.Errorf("decoding a row: %w", err)
	}
	return decoded, nil
}

// keep makes row what e is, in memory and in the running epoch.
func (p *partition) keep(e *entry, row *codecs.Row) {
	p.scratch.bytes = p.settings.Lifecycle.AppendRow(p.scratch.bytes[:0], row)
	e.row = bytes.Clone(p.scratch.bytes)
	p.rows.touch(e)
	p.running.change(e)
}

// inMemory returns the row of e, or nil if only the table has it.
func (p *partition) inMemory(e *entry) []byte {
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
			key:    strings.Clone(id), // id is a part of the record
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
			told = p.summarize(e.key, old)
		}
		p.move(e, p.tally.setOf(row, e.scopes), st.Status, st.Closed, st.Due)
	}
	if st.Closed || told != (codecs.Closing{}) {
		told = p.summarize(e.key, row)
	}
	row.Summarized = told
	e.orderTime = p.settings.GreatestOrderTime(row)
	p.keep(e, row)
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
// then of key. The index has what is needed.
func (p *partition) expire() error {
	s := p.settings
	for {
		e := p.index.next(p.stream.Clock, s.Forgets(p.stream))
		switch {
		case e == nil:
			return nil
		case e.closed:
			if err := p.forget(e); err != nil {
				return err
			}
		default: // the clock has passed the greatest event time + abandon-after
			st := s.closed(s.Lifecycle.Abandoned(), e.due, p.stream)
			p.move(e, e.scopes, st.Status, st.Closed, st.Due)
			p.owe(e)
		}
	}
}

// forget makes e no row any more, and raises the horizon over all its events.
func (p *partition) forget(e *entry) error {
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
			if err := p.tellBuried(grave{e.key, e.owes, row}); err != nil {
				return err
			}
		}
		p.running.changes[e.slot].row = nil
		p.graves.bury(e.key, e.slot)
	} else {
		// The summary goes with the delete: until then, the table says that it
		// is owed.
		p.graves.queue(grave{e.key, e.owes, row})
	}
	e.owes = false
	return nil
}

// adopt takes in a committed row. A row that is forgotten and not yet deleted is
// counted nowhere; then it returns the due time, and whether a summary is owed.
func (p *partition) adopt(key string, value []byte) (due dueGrave, forgotten bool, err error) {
	row, err := p.decode(&p.scratch.other, value)
	if err != nil {
		return dueGrave{}, false, err
	}
	st := p.settings.Standing(row, p.stream)
	owes := row.Summarized != st.closing()
	if st.Forgotten {
		// Has been done already, unless the settings have changed.
		p.stream.Horizon = max(p.stream.Horizon, p.settings.GreatestOrderTime(row))
		return dueGrave{st.Due, grave{key: key, owes: owes}}, true, nil
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
	return dueGrave{}, false, nil
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
