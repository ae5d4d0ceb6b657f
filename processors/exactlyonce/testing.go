package exactlyonce

import (
	"iter"
	"maps"
	"slices"

	"github.com/lovoo/goka"
)

// NewTestAssignment returns an assignment whose table holds rows, for tests of
// a State that need no Kafka.
func NewTestAssignment(partition, partitions int32, inputs []*Input, rows map[string][]byte) *Assignment {
	return &Assignment{Partition: partition, Partitions: partitions, Inputs: inputs, table: fixedTable(rows)}
}

type fixedTable map[string][]byte

func (t fixedTable) get(key string) ([]byte, error) { return t[key], nil }

func (t fixedTable) rows() (iter.Seq2[string, []byte], func() error) {
	keys := make([]string, 0, len(t))
	for k := range t {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return func(yield func(string, []byte) bool) {
		for _, k := range keys {
			if !yield(k, t[k]) {
				return
			}
		}
	}, func() error { return nil }
}

func (t fixedTable) snapshot() (iter.Seq2[string, []byte], func() error, error) {
	rows, failed := maps.Clone(t).rows()
	return rows, failed, nil
}

// Rows yields what was written to the table, in order; a nil value deletes.
func (w *Writer) Rows() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, r := range w.rows {
			if !yield(r.Key, r.Value) {
				return
			}
		}
	}
}

// Emitted is a record that an epoch emits beside its rows.
type Emitted struct {
	Topic, Key string
	Value      []byte
	Headers    goka.Headers // the last of each name
	All        []Header     // in order
}

// Records yields what was emitted, in order.
func (w *Writer) Records() iter.Seq[Emitted] {
	return func(yield func(Emitted) bool) {
		for _, r := range w.records {
			if !yield(Emitted{r.topic, r.key, r.value, byName(r.headers), r.headers}) {
				return
			}
		}
	}
}

func byName(headers []Header) goka.Headers {
	named := goka.Headers{}
	for _, h := range headers {
		named[string(h.Key)] = h.Value
	}
	return named
}
