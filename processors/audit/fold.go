package audit

import (
	"fmt"

	"deliverystat/codecs"
	"deliverystat/processors"
)

// Fold follows the log of one partition of the table latest-delivery up to a
// target position: to the last progress row that names it, for rows may be
// deleted later than it was decided. The zero value is not useful; see
// [NewFold].
type Fold struct {
	target   int64
	rows     map[string][]byte
	pending  map[string][]byte // rows read since the last progress row; nil deletes
	progress *codecs.Progress  // the last one read that is not beyond the target
	beyond   bool              // a progress row beyond the target was read
}

// NewFold returns a fold that stops at position target.
func NewFold(target int64) *Fold {
	return &Fold{target: target, rows: map[string][]byte{}, pending: map[string][]byte{}}
}

// Row is told the next row of the log; a nil value deletes the key. Rows that
// lead to positions beyond the target are ignored. It keeps value.
func (f *Fold) Row(key string, value []byte) error {
	if f.beyond {
		return nil
	}
	if key != codecs.ProgressKey {
		f.pending[key] = value
		return nil
	}
	progress, err := codecs.ReadProgress(value)
	if err != nil {
		return fmt.Errorf("reading progress row: %w", err)
	}
	if progress.Position > f.target {
		f.beyond = true // what is pending leads there
		return nil
	}
	f.progress = progress
	apply(f.rows, f.pending)
	return nil
}

// Done reports whether the fold has reached its target. More rows of the same
// position may follow.
func (f *Fold) Done() bool { return f.progress != nil && f.progress.Position == f.target }

// Missed reports whether the log went past the target without a progress row
// that names it.
func (f *Fold) Missed() bool { return f.beyond && !f.Done() }

// Progress returns the last progress row read that is not beyond the target, or
// nil.
func (f *Fold) Progress() *codecs.Progress { return f.progress }

// Value returns the row of key at the last progress row, or nil.
func (f *Fold) Value(key string) []byte { return f.rows[key] }

// Recount counts the rows of the fold under settings s.
func (f *Fold) Recount(s *processors.Settings) (Counts, error) {
	counts := Counts{}
	if f.progress == nil {
		return counts, nil
	}
	at := processors.StreamOf(f.progress)
	for key, value := range f.rows {
		row, err := s.Lifecycle.ReadRow(value)
		if err != nil {
			return nil, fmt.Errorf("reading row of delivery %q: %w", key, err)
		}
		CountRow(counts, s, row, at)
	}
	return counts, nil
}

// CountRow adds row, as it stands at a point of the stream, to counts. A row
// that is forgotten there is not counted.
func CountRow(counts Counts, s *processors.Settings, row *codecs.Row, at processors.Stream) {
	standing := s.Standing(row, at)
	if standing.Forgotten {
		return
	}
	one := Count{Live: 1}
	if standing.Closed {
		one = Count{Closed: 1}
	}
	status := s.Lifecycle.Name(standing.Status)
	for _, scope := range s.Scopes(row) {
		counts.Add(scope, status, one)
	}
}
