package exactlyonce

import (
	"errors"

	"github.com/lovoo/goka/storage"
)

// recovering is what goka sees of a store: it writes the rows that it reads
// from the changelog, then the offset they reach. Goka opens and closes one per
// assignment, while the store stays open.
//
// Goka also calls MarkRecovered when a recovery was cut short, so that means
// nothing here.
type recovering struct {
	*store
	batch []Change // read since the last offset
}

var _ storage.Storage = (*recovering)(nil)

// errNotForCallbacks keeps callbacks from writing rows around their State.
var errNotForCallbacks = errors.New("the goka table is not for callbacks: rows are written by State and Epoch")

func (*recovering) Open() error          { return nil }
func (*recovering) Close() error         { return nil }
func (*recovering) MarkRecovered() error { return nil }

func (r *recovering) Has(key string) (bool, error) {
	v, err := r.get(key)
	return v != nil, err
}

func (r *recovering) Get(key string) ([]byte, error) { return r.get(key) }

func (r *recovering) Set(key string, value []byte) error {
	r.batch = append(r.batch, Change{key, value})
	return nil
}

func (r *recovering) Delete(key string) error { return r.Set(key, nil) }

func (r *recovering) SetOffset(offset int64) error {
	err := r.put(r, r.batch, offset)
	r.batch = r.batch[:0]
	return err
}

func (r *recovering) GetOffset(none int64) (int64, error) {
	if o := r.offset(); o >= 0 {
		return o, nil
	}
	return none, nil
}

func (*recovering) Iterator() (storage.Iterator, error) { return nil, errNotForCallbacks }

func (*recovering) IteratorWithRange(_, _ []byte) (storage.Iterator, error) {
	return nil, errNotForCallbacks
}
