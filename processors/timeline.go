package processors

import "deliverystat/codecs"

// Rows with room for their timeline, so that a changed row is one allocation.
type (
	rowOf2 struct {
		row   codecs.Row
		times [2]codecs.StatusTimes
	}
	rowOf4 struct {
		row   codecs.Row
		times [4]codecs.StatusTimes
	}
	rowOf8 struct {
		row   codecs.Row
		times [8]codecs.StatusTimes
	}
)

// newRow returns an empty row with room for n timeline entries.
func newRow(n int) *codecs.Row {
	switch {
	case n <= 2:
		r := new(rowOf2)
		r.row.Timeline = r.times[:0]
		return &r.row
	case n <= 4:
		r := new(rowOf4)
		r.row.Timeline = r.times[:0]
		return &r.row
	case n <= 8:
		r := new(rowOf8)
		r.row.Timeline = r.times[:0]
		return &r.row
	}
	return &codecs.Row{Timeline: make([]codecs.StatusTimes, 0, n)}
}

// timelineHas reports whether status at t adds nothing to times.
func timelineHas(times []codecs.StatusTimes, status codecs.Status, t int64) bool {
	for i := range times {
		if times[i].Status == status {
			return times[i].First <= t && t <= times[i].Last
		}
	}
	return false
}

// withTimeline returns a new row that has only a timeline: that of row with e
// merged in. It shares row's if e adds nothing to it.
func withTimeline(row *codecs.Row, e *codecs.Event, room roomFor) *codecs.Row {
	if timelineHas(row.Timeline, e.Status, e.OccurredAt) {
		next := room(0)
		next.Timeline = row.Timeline
		return next
	}
	next := room(len(row.Timeline) + 1)
	entry := codecs.StatusTimes{Status: e.Status, First: e.OccurredAt, Last: e.OccurredAt}
	placed := false
	for _, t := range row.Timeline {
		switch {
		case t.Status == e.Status:
			t.First, t.Last = min(t.First, e.OccurredAt), max(t.Last, e.OccurredAt)
			placed = true
		case t.Status > e.Status && !placed:
			next.Timeline = append(next.Timeline, entry)
			placed = true
		}
		next.Timeline = append(next.Timeline, t)
	}
	if !placed {
		next.Timeline = append(next.Timeline, entry)
	}
	return next
}
