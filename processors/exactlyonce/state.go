package exactlyonce

import (
	"iter"
)

// State is what an application keeps in memory for one partition of its table
// while it owns it. A State is made new for each assignment and dropped
// whenever anything about the last epoch is in doubt.
//
// The runtime never calls two methods of one State at the same time, and none
// while a callback of its partition runs.
type State interface {
	// Recover rebuilds the state from the recovered table, before the first
	// callback. An error ends the attempt.
	Recover(*Assignment) error

	// Cut ends the partition's running epoch and begins the next. It must be
	// quick, for the callbacks wait: swap buffers, leave encoding to
	// Epoch.Write. A nil Epoch means that nothing is to be written; consumed
	// offsets are committed all the same.
	Cut() Epoch

	// Committed says that the epoch of the last Cut is durable. It is not
	// called for an epoch whose outcome is in doubt.
	Committed()
}

// Epoch is one partition's share of a transaction.
type Epoch interface {
	// Write hands over the epoch's rows and records. It runs beside the
	// callbacks of the next epoch, which must not change what it reads. An
	// error ends the attempt.
	Write(*Writer) error
}

// Input is one input topic of an assigned partition.
type Input struct {
	Topic     string
	TopicID   string // Kafka's UUID in hex: another one means that the topic was re-created
	Committed int64  // the group's committed offset, or -1
	LogStart  int64
	LogEnd    int64
	// Start is the offset at which reading begins: Committed if the log still
	// has it, else LogStart. Recover may change it.
	Start int64
	// Lost is the number of offsets that were trimmed before they were read.
	Lost int64
}

// Assignment is what State.Recover learns about its partition.
type Assignment struct {
	Partition  int32
	Partitions int32 // of the inputs, and of the table if there is one
	Inputs     []*Input

	table table
}

// table is the committed content of a table partition.
type table interface {
	get(key string) ([]byte, error)
	// rows yields the rows in key order; the second result says, afterwards,
	// whether reading failed.
	rows() (iter.Seq2[string, []byte], func() error)
	// snapshot is rows of now, to be read later.
	snapshot() (rows iter.Seq2[string, []byte], failed func() error, err error)
}

// Rows yields the committed rows in key order, and then says whether reading
// them failed. Keys and values are the caller's to keep.
func (a *Assignment) Rows() (rows iter.Seq2[string, []byte], failed func() error) {
	return a.table.rows()
}

// Snapshot returns the rows as they are committed now, to be read once and beside
// everything else: within State.Committed, those of the epoch that was just
// committed. Reading fails when the table is closed meanwhile.
func (a *Assignment) Snapshot() (rows iter.Seq2[string, []byte], failed func() error, err error) {
	return a.table.snapshot()
}

// Get returns the committed value of key, or nil. It may be used for the whole
// assignment, by callbacks too. Rows of an epoch that is not yet committed are
// not visible: the State still has those.
func (a *Assignment) Get(key string) ([]byte, error) { return a.table.get(key) }

// Writer collects what an epoch writes. Rows keep their order within the table
// partition, so a row that must come last is written last.
type Writer struct {
	rows    []Change
	records []record
}

// Change is one row written to a table; a nil Value deletes the key.
type Change struct {
	Key   string
	Value []byte
}

type record struct {
	topic, key string
	value      []byte
	headers    []Header
}

// Row sets the value of key in the table; nil deletes it. The value must not be
// changed afterwards. Key and value together have at most MaxRecordBytes.
func (w *Writer) Row(key string, value []byte) {
	w.rows = append(w.rows, Change{key, value})
}

// Record emits a record whose partition follows from its key. Key, value and
// headers together have at most MaxRecordBytes, and are not changed afterwards.
func (w *Writer) Record(topic, key string, value []byte, headers []Header) {
	w.records = append(w.records, record{topic, key, value, headers})
}
