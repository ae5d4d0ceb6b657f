package codecs

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of the messages Row, OrderKey, Attribute and StatusTimes.
const (
	rowWinner     protowire.Number = 2
	rowRawStatus  protowire.Number = 3
	rowAttributes protowire.Number = 4
	rowTimeline   protowire.Number = 5
	rowHorizon    protowire.Number = 6
	rowSummarized protowire.Number = 7

	closingStatus protowire.Number = 1
	closingAt     protowire.Number = 2

	keyOccurredAt protowire.Number = 1
	keyStatus     protowire.Number = 2
	keySequence   protowire.Number = 3
	keyEventID    protowire.Number = 4
	keyHash       protowire.Number = 5

	attributeName  protowire.Number = 1
	attributeValue protowire.Number = 2
	attributeKey   protowire.Number = 3

	timesStatus protowire.Number = 1
	timesFirst  protowire.Number = 2
	timesLast   protowire.Number = 3
)

// AppendRow appends the bytes of r.
func (l *Lifecycle) AppendRow(b []byte, r *Row) []byte {
	b = appendVersion(b)
	b = l.appendOrderKey(b, rowWinner, &r.Winner)
	b = appendText(b, rowRawStatus, r.RawStatus)
	for a := range r.Attributes {
		v := &r.Attributes[a]
		if v.Value == "" && v.Key == nil {
			continue
		}
		b = beginMessage(b, rowAttributes)
		start := len(b)
		b = appendText(b, attributeName, Attribute(a).String())
		b = appendText(b, attributeValue, v.Value)
		if v.Key != nil {
			b = l.appendOrderKey(b, attributeKey, v.Key)
		}
		b = endMessage(b, start)
	}
	for i := range r.Timeline {
		t := &r.Timeline[i]
		b = beginMessage(b, rowTimeline)
		start := len(b)
		b = appendText(b, timesStatus, l.Name(t.Status))
		b = appendTime(b, timesFirst, t.First)
		if t.Last != t.First {
			b = appendTime(b, timesLast, t.Last)
		}
		b = endMessage(b, start)
	}
	b = appendOptionalTime(b, rowHorizon, r.Horizon)
	if r.Summarized != (Closing{}) {
		b = beginMessage(b, rowSummarized)
		start := len(b)
		b = appendText(b, closingStatus, l.Name(r.Summarized.Status))
		b = appendTime(b, closingAt, r.Summarized.ClosedAt)
		b = endMessage(b, start)
	}
	return b
}

func (l *Lifecycle) appendOrderKey(b []byte, field protowire.Number, k *OrderKey) []byte {
	b = beginMessage(b, field)
	start := len(b)
	b = appendTime(b, keyOccurredAt, k.OccurredAt)
	b = appendText(b, keyStatus, l.Name(k.Status))
	b = appendInt(b, keySequence, k.Sequence)
	b = appendText(b, keyEventID, k.EventID)
	b = appendHash(b, keyHash, k.Hash)
	return endMessage(b, start)
}

// roomyRow is a row with room for the timeline of most deliveries, so that
// both are one allocation.
type roomyRow struct {
	Row
	timeline [6]StatusTimes
}

// ReadRow reads the bytes of a row. A status that the lifecycle does not have
// becomes UNKNOWN; if it is the winner's, its name is kept as the raw status.
func (l *Lifecycle) ReadRow(b []byte) (*Row, error) {
	roomy := &roomyRow{}
	roomy.Timeline = roomy.timeline[:0]
	r := &rowReader{lifecycle: l, message: newMessage(b), text: string(b)}
	if err := r.read(&roomy.Row); err != nil {
		return nil, err
	}
	return &roomy.Row, nil
}

// RowBuffer holds one row at a time, for who reads many and keeps none. The zero
// value is ready for use.
type RowBuffer struct {
	row      Row
	timeline []StatusTimes
	keys     [NumAttributes]OrderKey
}

// Read is ReadRow without an allocation. The row is valid until the next Read,
// and as long as b is not changed: its strings are parts of b.
func (buf *RowBuffer) Read(l *Lifecycle, b []byte) (*Row, error) {
	if buf.timeline == nil {
		buf.timeline = make([]StatusTimes, 0, l.Len())
	}
	buf.row = Row{Timeline: buf.timeline[:0]}
	r := rowReader{lifecycle: l, message: newMessage(b), text: textOf(b), keys: buf.keys[:0]}
	if err := r.read(&buf.row); err != nil {
		return nil, err
	}
	return &buf.row, nil
}

// rowReader reads one row. All strings of the row are parts of text.
type rowReader struct {
	lifecycle *Lifecycle
	message   message
	text      string
	keys      []OrderKey // room for those of attributes; more are allocated
}

// read reads into a row that is empty but for the room of its timeline.
func (r *rowReader) read(row *Row) error {
	row.Horizon = None
	var version uint64
	var winnerName string
	m := &r.message
	for m.next() {
		switch m.field {
		case fieldVersion:
			version = m.version()
		case rowWinner:
			winnerName = r.orderKey(m, &row.Winner)
		case rowRawStatus:
			row.RawStatus = r.string(m)
		case rowAttributes:
			r.attribute(m, row)
		case rowTimeline:
			r.times(m, row)
		case rowHorizon:
			row.Horizon = m.time()
		case rowSummarized:
			r.closing(m, &row.Summarized)
		default:
			m.skip()
		}
	}
	if err := m.finish("row", version); err != nil {
		return err
	}
	if row.RawStatus == "" && row.Winner.Status == Unknown && winnerName != UnknownName {
		row.RawStatus = winnerName
	}
	row.Timeline = normalTimeline(row.Timeline)
	return nil
}

func (r *rowReader) string(m *message) string {
	start, end := m.span()
	return r.text[start:end]
}

// status reads a status name, which is probably that of hint or one after it.
func (r *rowReader) status(m *message, hint Status) (s Status, name string) {
	name = r.string(m)
	l := r.lifecycle
	for i := int(hint); i < len(l.statuses)-1; i++ {
		if l.statuses[i].Name == name {
			return Status(i), name
		}
	}
	s = l.byName[name]
	if s == l.Abandoned() {
		s = Unknown // it is derived, never stored
	}
	return s, name
}

func (r *rowReader) orderKey(m *message, k *OrderKey) (name string) {
	outer := m.enter()
	for m.next() {
		switch m.field {
		case keyOccurredAt:
			k.OccurredAt = m.time()
		case keyStatus:
			k.Status, name = r.status(m, Unknown)
		case keySequence:
			k.Sequence = m.int()
		case keyEventID:
			k.EventID = r.string(m)
		case keyHash:
			k.Hash = m.hash()
		default:
			m.skip()
		}
	}
	m.leave(outer)
	return name
}

// closing reads what a summary said. A status that the lifecycle does not have
// is none that a row can end with, so it is told anew.
func (r *rowReader) closing(m *message, o *Closing) {
	outer := m.enter()
	for m.next() {
		switch m.field {
		case closingStatus:
			o.Status = r.lifecycle.byName[r.string(m)]
		case closingAt:
			o.ClosedAt = m.time()
		default:
			m.skip()
		}
	}
	m.leave(outer)
}

func (r *rowReader) attribute(m *message, row *Row) {
	outer := m.enter()
	var name string
	var v AttributeValue
	for m.next() {
		switch m.field {
		case attributeName:
			name = r.string(m)
		case attributeValue:
			v.Value = r.string(m)
		case attributeKey:
			v.Key = r.newKey()
			r.orderKey(m, v.Key)
		default:
			m.skip()
		}
	}
	m.leave(outer)
	if a, ok := ParseAttribute(name); ok {
		row.Attributes[a] = v
	}
}

func (r *rowReader) newKey() *OrderKey {
	n := len(r.keys)
	if n == cap(r.keys) {
		return &OrderKey{}
	}
	r.keys = append(r.keys, OrderKey{})
	return &r.keys[n]
}

func (r *rowReader) times(m *message, row *Row) {
	outer := m.enter()
	hint := Unknown
	if n := len(row.Timeline); n > 0 {
		hint = row.Timeline[n-1].Status
	}
	var t StatusTimes
	var hasLast bool
	for m.next() {
		switch m.field {
		case timesStatus:
			t.Status, _ = r.status(m, hint)
		case timesFirst:
			t.First = m.time()
		case timesLast:
			t.Last, hasLast = m.time(), true
		default:
			m.skip()
		}
	}
	if !hasLast {
		t.Last = t.First
	}
	m.leave(outer)
	row.Timeline = append(row.Timeline, t)
}

// normalTimeline puts a timeline that was written under another lifecycle in
// the order of this one, with one entry per status.
func normalTimeline(t []StatusTimes) []StatusTimes {
	if len(t) == 0 {
		return nil
	}
	if !slices.IsSortedFunc(t, byStatus) {
		slices.SortFunc(t, byStatus)
	}
	n := 0
	for i := range t {
		if i > 0 && t[i].Status == t[n-1].Status {
			t[n-1].First = min(t[n-1].First, t[i].First)
			t[n-1].Last = max(t[n-1].Last, t[i].Last)
			continue
		}
		t[n] = t[i]
		n++
	}
	return t[:n:n]
}

func byStatus(a, b StatusTimes) int { return cmp.Compare(a.Status, b.Status) }
