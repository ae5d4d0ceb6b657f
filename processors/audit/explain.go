package audit

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"deliverystat/codecs"
	"deliverystat/processors"
)

// What happened in a step, besides the results of an event.
const (
	Closed    = "closed"    // counts as closed from here on
	Abandoned = "abandoned" // closed by silence
	Reopened  = "re-opened" // counts as live again
	Forgotten = "forgotten" // the row is no row any more
)

// Step is one thing that happened to a delivery: a record of it was decided on,
// or its row moved.
type Step struct {
	Offset int64  // of the record that made it happen, which may be of another delivery
	What   string // applied, duplicate, stale, late, refused, ignored, or one of the above
	Why    string // in plain words

	// Only of a record of the delivery itself.
	Own      bool
	Recorded int64         // timestamp of the record, Unix nanoseconds
	Event    *codecs.Event // nil if the record could not be read as one
	Reason   codecs.Reason // of a dead letter
}

// Explanation says what became of one delivery. It is told every record of the
// delivery's partition in log order, since the events of others move the clock.
// All decisions are those of a [processors.Replay]; what is added are words.
type Explanation struct {
	ID    string
	Steps []Step

	settings *processors.Settings
	decoder  *codecs.Decoder
	replay   *processors.Replay
}

// NewExplanation returns the explanation of a delivery whose partition nothing
// was read from.
func NewExplanation(s *processors.Settings, d *codecs.Decoder, id string) *Explanation {
	return &Explanation{ID: id, settings: s, decoder: d, replay: processors.NewReplay(s)}
}

// Record is told the next record. misplaced says that its key belongs to another
// partition.
func (x *Explanation) Record(offset int64, r *codecs.Record, misplaced bool) {
	var d codecs.Decoded
	x.decoder.Decode(r, &d)
	row, before := x.replay.Row(x.ID), x.replay.Stream()
	verdict := x.replay.Apply(r, &d, misplaced)
	row = x.expire(offset, row, before)
	if !x.own(r, &d) {
		return
	}
	step := Step{Offset: offset, Own: true, Recorded: r.Timestamp, Reason: verdict.Reason}
	if d.Outcome == codecs.IsEvent {
		step.Event = &d.Event
	}
	next := row
	switch verdict.Result {
	case processors.Applied, processors.Duplicate, processors.Stale:
		next = x.settings.Accept(row, &d.Event, x.replay.Stream()).Row
		step.What = verdict.Result.String()
		step.Why = x.why(verdict, row, next, &d.Event)
	case processors.Late:
		step.What, step.Why = "late", verdict.Detail
	case processors.Ignored:
		step.What, step.Why = verdict.Result.String(), "such a record says nothing of a delivery"
	default:
		step.What, step.Why = "refused", verdict.Detail
	}
	x.Steps = append(x.Steps, step)
	x.move(offset, row, next)
}

// own reports whether r is a record of the delivery: it says so, or it has its
// key.
func (x *Explanation) own(r *codecs.Record, d *codecs.Decoded) bool {
	switch {
	case d.Outcome == codecs.IsEvent:
		return d.Event.DeliveryID == x.ID
	case r.Key == x.ID:
		return true
	case d.Outcome == codecs.IsRefused:
		id, ok := x.decoder.DeliveryID(r.Value)
		return ok && id == x.ID
	}
	return false
}

// expire notes what the clock did to row since the stream was as before, and
// returns what is left of it.
func (x *Explanation) expire(offset int64, row *codecs.Row, before processors.Stream) *codecs.Row {
	if row == nil {
		return nil
	}
	at := x.replay.Stream()
	was, is := x.settings.Standing(row, before), x.settings.Standing(row, at)
	if is.Closed && !was.Closed {
		x.turn(offset, Abandoned, x.silence(is, at))
	}
	if is.Forgotten {
		x.turn(offset, Forgotten, x.oblivion(is, at))
		return nil
	}
	return row
}

// move notes how the standing of row changed when an event made it next.
func (x *Explanation) move(offset int64, row, next *codecs.Row) {
	if next == row {
		return
	}
	at := x.replay.Stream()
	var was processors.Standing
	if row != nil {
		was = x.settings.Standing(row, at)
	}
	is := x.settings.Standing(next, at)
	name := x.settings.Lifecycle.Name
	switch {
	case is.Closed && is.Status == x.settings.Lifecycle.Abandoned() && !was.Closed:
		x.turn(offset, Abandoned, x.silence(is, at))
	case is.Closed && (!was.Closed || is.Status != was.Status):
		x.turn(offset, Closed, fmt.Sprintf("%s at %s ends the delivery", name(is.Status), instant(is.ClosedAt)))
	case was.Closed && !is.Closed:
		x.turn(offset, Reopened, fmt.Sprintf("it is %s, after it was %s", name(is.Status), name(was.Status)))
	}
	if is.Forgotten {
		x.turn(offset, Forgotten, x.oblivion(is, at))
	}
}

func (x *Explanation) turn(offset int64, what, why string) {
	x.Steps = append(x.Steps, Step{Offset: offset, What: what, Why: why})
}

// Delivery returns the row that the records read so far lead to, as readers see
// it; ok is false if the delivery is unknown or forgotten.
func (x *Explanation) Delivery() (d codecs.Delivery, ok bool) {
	at := x.replay.Stream()
	return deliver(x.settings, x.ID, x.replay.Row(x.ID), at)
}

// Compare compares the row that the records read so far lead to with that of the
// table at the same position, and the table's progress row there. row is nil if
// the table has none. It returns "" if readers see the same, else what differs.
func (x *Explanation) Compare(row *codecs.Row, progress *codecs.Progress) string {
	want, wanted := x.Delivery()
	got, found := deliver(x.settings, x.ID, row, processors.StreamOf(progress))
	switch {
	case wanted && !found:
		return "the table has no row, the events lead to one"
	case !wanted && found:
		return "the table has a row, the events lead to none"
	case wanted:
		return x.differences(got, want)
	}
	return ""
}

// differences names each part of a row in which the table differs from want.
func (x *Explanation) differences(got, want codecs.Delivery) string {
	var parts []string
	add := func(what string, got, want any) {
		if !reflect.DeepEqual(got, want) {
			parts = append(parts, fmt.Sprintf("%s is %v in the table and %v by the events", what, got, want))
		}
	}
	name := x.settings.Lifecycle.Name
	add("status", name(got.Status), name(want.Status))
	add("raw status", got.RawStatus, want.RawStatus)
	add("event time", instant(got.OccurredAt), instant(want.OccurredAt))
	add("since", instant(got.Since), instant(want.Since))
	add("closed at", instant(got.ClosedAt), instant(want.ClosedAt))
	for a := range codecs.NumAttributes {
		add(a.String(), got.Attributes[a], want.Attributes[a])
	}
	for s := range x.settings.Lifecycle.Len() {
		status := codecs.Status(s)
		add("timeline of "+name(status), times(got, status), times(want, status))
	}
	return strings.Join(parts, "; ")
}

// times is what the timeline of d says of a status.
func times(d codecs.Delivery, status codecs.Status) string {
	for _, t := range d.Timeline {
		if t.Status == status {
			return instant(t.First) + " to " + instant(t.Last)
		}
	}
	return "nothing"
}

func deliver(s *processors.Settings, id string, row *codecs.Row, at processors.Stream) (codecs.Delivery, bool) {
	if row == nil {
		return codecs.Delivery{}, false
	}
	return s.Deliver(id, row, &codecs.Progress{
		Clock: at.Clock, Horizon: at.Horizon, FirstRecord: at.FirstRecord, LastRecord: at.LastRecord,
	})
}

// instant is a time as explanations show it.
func instant(t int64) string {
	if t == codecs.None {
		return "none"
	}
	return time.Unix(0, t).UTC().Format(time.RFC3339Nano)
}
