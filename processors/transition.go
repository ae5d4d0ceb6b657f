package processors

import "deliverystat/codecs"

// Result says what became of a record.
type Result uint8

// The results. Observe gives the first four.
const (
	Applied   Result = iota // the event is the new winner
	Duplicate               // its order key equals the winner's
	Stale                   // smaller than the winner: merged, but does not win
	Late                    // may belong to a forgotten life: refused
	Ignored                 // says nothing by design
	Refused                 // not an event that can be believed
	numResults
)

// String returns the result as the metrics name it. What is refused, for
// whatever reason, is a dead letter.
func (r Result) String() string {
	switch r {
	case Applied:
		return "applied"
	case Duplicate:
		return "duplicate"
	case Stale:
		return "stale"
	case Ignored:
		return "ignored"
	case Late, Refused:
		return "dead_letter"
	}
	return "invalid"
}

// Transition is what Observe decided.
type Transition struct {
	Result Result
	Row    *codecs.Row // the row afterwards; the same pointer if nothing changed
}

// Observe applies e to row, which is nil if the delivery is unknown or
// forgotten. It is pure, and does not change row: a changed row is a new one,
// which may share parts with the old one.
func (s *Settings) Observe(row *codecs.Row, e *codecs.Event, at Stream) Transition {
	return s.observe(row, e, at, newRow)
}

// roomFor makes an empty row with room for n timeline entries.
type roomFor func(n int) *codecs.Row

// observe is Observe with a changed row where room puts it.
func (s *Settings) observe(row *codecs.Row, e *codecs.Event, at Stream, room roomFor) Transition {
	horizon := at.Horizon
	if row != nil {
		horizon = row.Horizon
	}
	if horizon != codecs.None && s.OrderTime(e.OccurredAt, e.Status) <= horizon {
		return Transition{Late, row}
	}
	return s.accept(row, e, at, room)
}

// Accept is Observe without the rule of the horizon, for an event that somebody
// who knows the delivery wants applied although it is late. A row that it creates
// has the partition's horizon, as any other has: so whatever else is late stays
// late, also for that delivery.
func (s *Settings) Accept(row *codecs.Row, e *codecs.Event, at Stream) Transition {
	return s.accept(row, e, at, newRow)
}

func (s *Settings) accept(row *codecs.Row, e *codecs.Event, at Stream, room roomFor) Transition {
	key := KeyOf(e)
	if row == nil {
		return Transition{Applied, firstRow(e, key, at.Horizon, room)}
	}
	switch c := s.Compare(&key, &row.Winner); {
	case c == 0:
		return Transition{Duplicate, row}
	case c > 0:
		return Transition{Applied, supersede(row, e, key, room)}
	default:
		return Transition{Stale, s.mergeStale(row, e, key, room)}
	}
}

// firstRow is the row of a delivery after its first event.
func firstRow(e *codecs.Event, key codecs.OrderKey, horizon int64, room roomFor) *codecs.Row {
	row := room(1)
	row.Winner, row.RawStatus, row.Horizon = key, e.RawStatus, horizon
	row.Timeline = append(row.Timeline, codecs.StatusTimes{Status: e.Status, First: e.OccurredAt, Last: e.OccurredAt})
	for a, value := range e.Attributes {
		row.Attributes[a].Value = value
	}
	return row
}

// supersede returns row after e, which is greater than its winner.
func supersede(row *codecs.Row, e *codecs.Event, key codecs.OrderKey, room roomFor) *codecs.Row {
	next := withTimeline(row, e, room)
	next.Winner, next.RawStatus, next.Horizon = key, e.RawStatus, row.Horizon
	var loser *codecs.OrderKey
	for a := range next.Attributes {
		old := &row.Attributes[a]
		switch {
		case e.Attributes[a] == old.Value: // keeps one copy of the string in memory
			next.Attributes[a].Value = old.Value
		case e.Attributes[a] != "":
			next.Attributes[a].Value = e.Attributes[a]
		case old.Key != nil:
			next.Attributes[a] = *old
		default:
			if loser == nil {
				// A copy: a pointer into row would keep all former rows alive.
				k := row.Winner
				loser = &k
			}
			next.Attributes[a] = codecs.AttributeValue{Value: old.Value, Key: loser}
		}
	}
	return next
}

// mergeStale returns row after e, which is smaller than its winner: row itself
// if e says nothing that row does not know.
func (s *Settings) mergeStale(row *codecs.Row, e *codecs.Event, key codecs.OrderKey, room roomFor) *codecs.Row {
	attributes, changed := s.mergeAttributes(row, e, &key)
	if !changed && timelineHas(row.Timeline, e.Status, e.OccurredAt) {
		return row
	}
	next := withTimeline(row, e, room)
	next.Winner, next.RawStatus, next.Horizon = row.Winner, row.RawStatus, row.Horizon
	next.Attributes = attributes
	return next
}

// mergeAttributes returns row's attributes after e, which is smaller than its
// winner, and whether they changed.
func (s *Settings) mergeAttributes(row *codecs.Row, e *codecs.Event, key *codecs.OrderKey) ([codecs.NumAttributes]codecs.AttributeValue, bool) {
	attributes := row.Attributes
	var own *codecs.OrderKey
	for a := range attributes {
		known := &attributes[a]
		if e.Attributes[a] == "" {
			continue
		}
		if known.Value != "" && (known.Key == nil || s.Compare(key, known.Key) <= 0) {
			continue
		}
		if own == nil {
			k := *key
			own = &k
		}
		*known = codecs.AttributeValue{Value: e.Attributes[a], Key: own}
	}
	return attributes, own != nil
}

// Since returns since when the row has the status of its winner: the first time
// of that status if no other status occurred after it, else the winner's event
// time.
func Since(row *codecs.Row) int64 {
	first := row.Winner.OccurredAt
	for i := range row.Timeline {
		if t := &row.Timeline[i]; t.Status == row.Winner.Status {
			first = t.First
		}
	}
	for i := range row.Timeline {
		if t := &row.Timeline[i]; t.Status != row.Winner.Status && t.Last > first {
			return row.Winner.OccurredAt
		}
	}
	return first
}
