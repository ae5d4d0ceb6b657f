package audit

import (
	"errors"
	"fmt"

	"deliverystat/codecs"
)

// Told is what the table count-per-status says at one of its progress rows.
type Told struct {
	Totals     Counts
	Parts      map[int32]Counts // what each input partition contributes
	Partitions []codecs.PartitionCounts
}

// Complete returns an error that says which input partitions the table does
// not know everything of.
func (t *Told) Complete() error {
	if len(t.Partitions) == 0 {
		return errors.New("the counts table has no progress row yet")
	}
	for _, p := range t.Partitions {
		if !p.Full {
			return fmt.Errorf("partition %d has not told all its counts yet", p.Partition)
		}
	}
	return nil
}

// Sum returns the differences between the totals and the sums of the
// contributions, which Want holds.
func (t *Told) Sum() []Difference {
	sum := Counts{}
	for _, part := range t.Parts {
		sum.AddAll(part)
	}
	return Compare(t.Totals, sum)
}

// CountsFold follows the log of the table count-per-status.
type CountsFold struct {
	rows    map[string][]byte
	pending map[string][]byte
	last    []codecs.PartitionCounts
}

// NewCountsFold returns an empty fold.
func NewCountsFold() *CountsFold {
	return &CountsFold{rows: map[string][]byte{}, pending: map[string][]byte{}}
}

// Row is told the next row of the log; a nil value deletes the key. It keeps
// value.
func (f *CountsFold) Row(key string, value []byte) error {
	if key != codecs.ProgressKey {
		f.pending[key] = value
		return nil
	}
	progress, err := codecs.ReadCountsProgress(value)
	if err != nil {
		return fmt.Errorf("reading progress row: %w", err)
	}
	apply(f.rows, f.pending)
	f.last = progress.Partitions
	return nil
}

// Told returns what the table says at the last progress row.
func (f *CountsFold) Told() (*Told, error) {
	t := &Told{Totals: Counts{}, Parts: map[int32]Counts{}, Partitions: f.last}
	for key, value := range f.rows {
		partition, scope, total, ok := codecs.ParseCountsKey(key)
		if !ok {
			return nil, fmt.Errorf("row %q is none of the table count-per-status", key)
		}
		counts, err := codecs.ReadCounts(value)
		if err != nil {
			return nil, fmt.Errorf("reading row %q: %w", key, err)
		}
		into := t.Totals
		if !total {
			if t.Parts[partition] == nil {
				t.Parts[partition] = Counts{}
			}
			into = t.Parts[partition]
		}
		into.AddRow(scope, counts)
	}
	return t, nil
}

// apply moves pending rows into rows; a nil value deletes.
func apply(rows, pending map[string][]byte) {
	for key, value := range pending {
		if value == nil {
			delete(rows, key)
		} else {
			rows[key] = value
		}
	}
	clear(pending)
}
