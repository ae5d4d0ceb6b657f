package processors_test

import (
	"bytes"
	"maps"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/processors"
	"deliverystat/processors/exactlyonce"
)

// fakeTopic is one partition of a topic.
type fakeTopic struct {
	name, id string
	start    int64 // offset of records[0]
	records  []fakeRecord
}

type fakeRecord struct {
	key       string
	value     []byte
	headers   goka.Headers
	more      []*exactlyonce.Header // in order, before headers
	timestamp time.Time
}

// decodable is r as the decoder takes it.
func (r fakeRecord) decodable() *codecs.Record {
	return &codecs.Record{
		Key: r.key, Value: r.value, Timestamp: r.timestamp.UnixNano(),
		Headers: func() []codecs.Header {
			headers := make([]codecs.Header, 0, len(r.headers))
			for name, v := range r.headers {
				headers = append(headers, codecs.Header{Key: name, Value: v})
			}
			return headers
		},
	}
}

func (t *fakeTopic) end() int64 { return t.start + int64(len(t.records)) }

// trim drops the records before offset.
func (t *fakeTopic) trim(offset int64) {
	t.records = t.records[offset-t.start:]
	t.start = offset
}

// failer is what both testing.TB and rapid.T can do.
type failer interface {
	require.TestingT
	Helper()
}

// fakeRuntime stands for exactlyonce.Runtime with one partition: what is
// committed lives here, and survives crashes of the state.
type fakeRuntime struct {
	t          failer
	newState   func() (exactlyonce.State, error)
	partition  int32
	partitions int32
	input      *fakeTopic
	spoil      bool // overwrite a record after its callback

	// Committed.
	table     map[string][]byte
	emitted   []exactlyonce.Emitted
	committed int64
	log       []exactlyonce.Change // the changelog

	// Of the assignment.
	state  exactlyonce.State
	next   int64
	lost   int64
	frozen *fakeEpoch
}

// fakeEpoch is an epoch between its cut and its commit.
type fakeEpoch struct {
	epoch exactlyonce.Epoch
	next  int64
}

func newFakeRuntime(t failer, input *fakeTopic, newState func() (exactlyonce.State, error)) *fakeRuntime {
	return &fakeRuntime{t: t, newState: newState, partitions: 1, input: input, table: map[string][]byte{}, committed: -1}
}

// assign begins an assignment: a new state is recovered from what is committed.
func (r *fakeRuntime) assign() { require.NoError(r.t, r.tryAssign()) }

func (r *fakeRuntime) tryAssign() error {
	in := &exactlyonce.Input{
		Topic: r.input.name, TopicID: r.input.id, Committed: r.committed,
		LogStart: r.input.start, LogEnd: r.input.end(), Start: r.committed,
	}
	if in.Committed < in.LogStart || in.Committed > in.LogEnd {
		in.Start = in.LogStart
	}
	if in.Committed >= 0 && in.Committed < in.LogStart {
		in.Lost = in.LogStart - in.Committed
	}
	var err error
	r.state, err = r.newState()
	require.NoError(r.t, err)
	// The state reads the table while it is written: it must see commits.
	a := exactlyonce.NewTestAssignment(r.partition, r.partitions, []*exactlyonce.Input{in}, r.table)
	if err := r.state.Recover(a); err != nil {
		return err
	}
	r.next, r.lost, r.frozen = in.Start, in.Lost, nil
	return nil
}

// consume runs the callback for up to n records.
func (r *fakeRuntime) consume(n int) {
	for ; n > 0 && r.next < r.input.end(); n-- {
		rec := r.input.records[r.next-r.input.start]
		in := &exactlyonce.Record{
			Topic: r.input.name, Partition: r.partition, Offset: r.next,
			Timestamp: rec.timestamp, Key: []byte(rec.key), Value: bytes.Clone(rec.value),
		}
		in.Headers = append(in.Headers, rec.more...)
		for name, v := range rec.headers {
			in.Headers = append(in.Headers, &exactlyonce.Header{Key: []byte(name), Value: v})
		}
		require.NoError(r.t, processors.Consume(r.state, in))
		if r.spoil {
			copy(in.Key, bytes.Repeat([]byte("#"), len(in.Key)))
			copy(in.Value, bytes.Repeat([]byte("#"), len(in.Value)))
		}
		r.next++
	}
}

// cut ends the running epoch; it reports whether there was anything to write.
func (r *fakeRuntime) cut() bool {
	require.Nil(r.t, r.frozen, "one epoch commits at a time")
	r.frozen = &fakeEpoch{r.state.Cut(), r.next}
	return r.frozen.epoch != nil
}

// commit makes the frozen epoch durable.
func (r *fakeRuntime) commit() {
	r.makeDurable()
	r.state.Committed()
}

// makeDurable does what the broker does in a commit.
func (r *fakeRuntime) makeDurable() {
	var w exactlyonce.Writer
	if r.frozen.epoch != nil {
		require.NoError(r.t, r.frozen.epoch.Write(&w))
	}
	for key, value := range w.Rows() {
		r.log = append(r.log, exactlyonce.Change{Key: key, Value: value})
		if value == nil {
			delete(r.table, key)
		} else {
			r.table[key] = value
		}
	}
	for rec := range w.Records() {
		r.emitted = append(r.emitted, rec)
	}
	r.committed = r.frozen.next
	r.frozen = nil
}

// step consumes n records and commits.
func (r *fakeRuntime) step(n int) {
	r.consume(n)
	r.cut()
	r.commit()
}

// drain consumes everything in one epoch and commits until nothing is pending.
func (r *fakeRuntime) drain() {
	r.consume(len(r.input.records))
	for more := true; more; {
		more = r.cut()
		r.commit()
	}
}

// crash loses the state and everything that was not committed.
func (r *fakeRuntime) crash() {
	r.state, r.frozen = nil, nil
	r.table = maps.Clone(r.table) // a zombie would read another copy
	r.assign()
}

// crashAfterCommit loses the state when the broker has committed and we do not
// know it.
func (r *fakeRuntime) crashAfterCommit() {
	r.makeDurable()
	r.crash()
}

// to returns the records emitted to topic.
func (r *fakeRuntime) to(topic string) []exactlyonce.Emitted {
	var records []exactlyonce.Emitted
	for _, rec := range r.emitted {
		if rec.Topic == topic {
			records = append(records, rec)
		}
	}
	return records
}
