package processors

import (
	"iter"
	"maps"
	"math"
	"time"

	"deliverystat/codecs"
)

// Replay applies the records of one input partition in memory, exactly as the
// first stage does, and writes nothing: for audits and explanations. It is not
// safe for concurrent use.
type Replay struct{ p *partition }

// NewReplay returns a replay of a partition that nothing was read from.
func NewReplay(s *Settings) *Replay {
	return &Replay{newPartition(s, math.MaxInt, nil)}
}

// Apply reads the next record, decoded as d. misplaced says that its key belongs
// to another partition.
func (r *Replay) Apply(rec *codecs.Record, d *codecs.Decoded, misplaced bool) Verdict {
	v, _ := r.p.read(rec, d, misplaced) // every row is in memory, so reading one does not fail
	_, _ = r.p.cut(math.MaxInt, math.MaxInt)
	r.p.committed()
	return v
}

// Stream returns what decisions depend on, as of the last record.
func (r *Replay) Stream() Stream { return r.p.stream }

// Row returns the row of a delivery, or nil if it is unknown or forgotten.
func (r *Replay) Row(id string) *codecs.Row {
	e := r.p.index.entries[id]
	if e == nil {
		return nil
	}
	return r.decoded(e)
}

func (r *Replay) decoded(e *entry) *codecs.Row {
	row, _ := r.p.settings.Lifecycle.ReadRow(e.row) // the bytes are our own
	return row
}

// Rows yields every row that is not forgotten, in no particular order.
func (r *Replay) Rows() iter.Seq2[string, *codecs.Row] {
	return func(yield func(string, *codecs.Row) bool) {
		for id, e := range maps.All(r.p.index.entries) {
			if !yield(id, r.decoded(e)) {
				return
			}
		}
	}
}

// Counts returns the counts of every scope that has any, and of all deliveries.
func (r *Replay) Counts() []codecs.ScopeCounts { return r.p.tally.cut(true) }

// RecordTime is the timestamp of a record as codecs.Record has it.
func RecordTime(t time.Time) int64 { return unixNano(t) }
