package audit

import (
	"fmt"

	"deliverystat/codecs"
	"deliverystat/processors"
)

// why says why an event that was not refused had its verdict, when it came to row
// and made it next.
func (x *Explanation) why(v processors.Verdict, row, next *codecs.Row, e *codecs.Event) string {
	note := ""
	if v.Detail != "" {
		note = "; " + v.Detail
	}
	key := processors.KeyOf(e)
	switch {
	case row == nil:
		return "it is the first event of the delivery" + note
	case v.Result == processors.Duplicate:
		return "it is the newest event once more" + note
	case v.Result == processors.Applied:
		return fmt.Sprintf("%s orders after %s by %s%s", x.event(&key), x.event(&row.Winner), x.decisive(&key, &row.Winner), note)
	}
	said := "it adds to the row's timeline or attributes"
	if next == row {
		said = "the row knew all it says"
	}
	return fmt.Sprintf("%s orders before %s by %s; %s%s", x.event(&key), x.event(&row.Winner), x.decisive(&key, &row.Winner), said, note)
}

// event is an event as it is told from another one.
func (x *Explanation) event(key *codecs.OrderKey) string {
	text := instant(key.OccurredAt) + " " + x.settings.Lifecycle.Name(key.Status)
	if skew := x.settings.TerminalSkew; skew > 0 && x.settings.Lifecycle.Terminal(key.Status) {
		text += " (+ " + skew.String() + ")"
	}
	return text
}

// decisive names the first component of the order key in which a and b differ.
func (x *Explanation) decisive(a, b *codecs.OrderKey) string {
	s := x.settings
	switch {
	case s.OrderBy == processors.BySequence && a.Sequence != b.Sequence:
		return fmt.Sprintf("sequence %d, %d", a.Sequence, b.Sequence)
	case s.OrderTime(a.OccurredAt, a.Status) != s.OrderTime(b.OccurredAt, b.Status):
		return "event time"
	case a.Status != b.Status:
		return "rank in the lifecycle"
	case a.Sequence != b.Sequence:
		return fmt.Sprintf("sequence %d, %d", a.Sequence, b.Sequence)
	case a.EventID != b.EventID:
		return fmt.Sprintf("event ID %q, %q", a.EventID, b.EventID)
	}
	return "the hash of their content"
}

// silence says why a delivery is abandoned.
func (x *Explanation) silence(st processors.Standing, at processors.Stream) string {
	return fmt.Sprintf("no event since %s, and the clock of the partition, %s, is more than abandon-after %s past it",
		instant(st.ClosedAt-int64(x.settings.AbandonAfter)), instant(at.Clock), x.settings.AbandonAfter)
}

// oblivion says why a delivery is forgotten.
func (x *Explanation) oblivion(st processors.Standing, at processors.Stream) string {
	return fmt.Sprintf("it ended at %s, and the clock of the partition, %s, is more than allowed-lateness %s past that; the horizon is %s",
		instant(st.ClosedAt), instant(at.Clock), x.settings.Lateness, instant(at.Horizon))
}
