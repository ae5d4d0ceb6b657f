package exactlyonce

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/syndtr/goleveldb/leveldb"
	lerrors "github.com/syndtr/goleveldb/leveldb/errors"
	"github.com/syndtr/goleveldb/leveldb/filter"
	"github.com/syndtr/goleveldb/leveldb/opt"
	"github.com/syndtr/goleveldb/leveldb/util"
)

// LevelDB keys: "d"+key holds a row, "m" the metadata. The prefix keeps
// application keys such as "__offset" away from ours.
const (
	rowPrefix = "d"
	metaKey   = "m"
)

// storeMeta is written in one batch with the rows it speaks of.
type storeMeta struct {
	TopicID string `json:"topic_id"`
	Offset  int64  `json:"offset"` // last changelog offset that the rows contain; -1 for none
}

// store is the local copy of one table partition.
//
// It only ever holds committed rows, each batch together with the changelog
// offset it reaches. So whatever kills the process, it equals a prefix of the
// committed changelog, and recovery resumes behind that offset. It is a cache:
// losing it costs time, never a row.
type store struct {
	dir      string
	interval time.Duration
	log      *slog.Logger

	flushMu sync.Mutex // held while rows go to LevelDB, and to open or close it
	db      *leveldb.DB
	batch   leveldb.Batch // its memory is used again

	mu       sync.RWMutex
	meta     storeMeta
	pending  map[string][]byte // committed, not yet in LevelDB; nil deletes
	bytes    int               // of pending
	flushing map[string][]byte // on their way to LevelDB
	flushed  time.Time
	failed   error // of LevelDB: the next open begins with a new one
	writer   any   // whose rows are taken; nil for nobody's
	flushes  sync.WaitGroup

	readers sync.WaitGroup // of snapshots: LevelDB must not be closed before they end
	closing atomic.Bool    // they shall end
}

// maxPendingBytes bounds what a store keeps in RAM between two flushes.
const maxPendingBytes = 512 << 10

// unusableError says why the content of a store must not be used. Every other
// error says that nobody knows, and is no reason to lose it.
type unusableError struct{ why string }

func (e *unusableError) Error() string { return e.why }

func isUnusable(err error) bool {
	var u *unusableError
	return errors.As(err, &u) || lerrors.IsCorrupted(err) || errors.Is(err, fs.ErrNotExist)
}

// open opens the store, or finds it open already. It starts empty where LevelDB
// finds it corrupt, where it is of another topic, and where usable gives an
// unusableError.
func (s *store) open(topicID string, usable func(storeMeta) error) error {
	s.flushMu.Lock()
	defer s.flushMu.Unlock()
	if err := s.giveUp(); err != nil {
		return err
	}
	if s.db == nil {
		if err := s.openDB(); err != nil {
			if !isUnusable(err) {
				return fmt.Errorf("opening local store %s: %w", s.dir, err)
			}
			if err := s.wipe(err); err != nil {
				return err
			}
		}
	}
	if s.meta.Offset >= 0 || s.meta.TopicID != "" {
		var why error = &unusableError{"the table topic was created anew"}
		if s.meta.TopicID == topicID {
			why = usable(s.meta)
		}
		if why != nil && !isUnusable(why) {
			return fmt.Errorf("asking whether local store %s can be used: %w", s.dir, why)
		}
		if why != nil {
			if err := s.wipe(why); err != nil {
				return err
			}
		}
	}
	s.mu.Lock()
	s.meta.TopicID = topicID
	s.mu.Unlock()
	return nil
}

// giveUp closes a LevelDB that has failed. It remembers a failed write, of a disk
// that was full for one, and never works again; what it has on disk is a prefix
// of the changelog all the same, unless it is corrupt.
func (s *store) giveUp() error {
	s.mu.RLock()
	failed := s.failed
	s.mu.RUnlock()
	switch {
	case s.db == nil || failed == nil:
		return nil
	case isUnusable(failed):
		return s.wipe(failed)
	}
	s.log.Warn("opening a local store again after a fault", "dir", s.dir, "err", failed)
	s.closeDB()
	return nil
}

// closeDB closes a LevelDB of which nothing more is expected.
func (s *store) closeDB() {
	s.endReaders()
	s.mu.Lock()
	db := s.db
	s.db = nil
	s.mu.Unlock()
	if err := db.Close(); err != nil {
		s.log.Warn("closing an unusable local store", "dir", s.dir, "err", err)
	}
}

// fails notes that LevelDB has failed.
func (s *store) fails(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil && !errors.Is(err, leveldb.ErrClosed) {
		s.failed = err
	}
}

func (s *store) openDB() error {
	if err := os.MkdirAll(s.dir, 0o750); err != nil {
		return err
	}
	db, err := leveldb.OpenFile(s.dir, &opt.Options{
		Filter: filter.NewBloomFilter(10), WriteBuffer: 1 << 20, BlockCacheCapacity: 1 << 20,
		// By default it skips what is damaged in its journal and goes on behind it:
		// rows would be missing below the offset.
		Strict: opt.DefaultStrict | opt.StrictJournal | opt.StrictManifest,
	})
	if err != nil {
		return err
	}
	meta := storeMeta{Offset: -1}
	b, err := db.Get([]byte(metaKey), nil)
	if err == nil {
		if broken := json.Unmarshal(b, &meta); broken != nil {
			err = &unusableError{"its metadata cannot be read: " + broken.Error()}
		}
	} else if errors.Is(err, leveldb.ErrNotFound) {
		err = nil
	}
	if err != nil {
		return errors.Join(err, db.Close())
	}
	s.mu.Lock()
	s.db, s.meta, s.failed, s.flushed = db, meta, nil, time.Now()
	s.pending, s.flushing, s.bytes = map[string][]byte{}, nil, 0
	s.mu.Unlock()
	return nil
}

// wipe starts with an empty store.
func (s *store) wipe(why error) error {
	s.log.Warn("local store cannot be used, rebuilding it from the changelog", "dir", s.dir, "err", why)
	if s.db != nil {
		s.closeDB()
	}
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("wiping local store: %w", err)
	}
	if err := s.openDB(); err != nil {
		return fmt.Errorf("opening local store %s: %w", s.dir, err)
	}
	return nil
}

// get returns the committed value of key, or nil.
func (s *store) get(key string) ([]byte, error) {
	s.mu.RLock()
	v, ok := s.pending[key]
	if !ok {
		v, ok = s.flushing[key]
	}
	db := s.db
	s.mu.RUnlock()
	if ok {
		return v, nil
	}
	if db == nil {
		return nil, fmt.Errorf("local store %s is closed", s.dir)
	}
	k := make([]byte, 0, 64)
	v, err := db.Get(append(append(k, rowPrefix...), key...), nil)
	if errors.Is(err, leveldb.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		s.fails(err)
		return nil, fmt.Errorf("reading local store %s: %w", s.dir, err)
	}
	return v, nil
}

// rows yields all committed rows in key order.
func (s *store) rows() (iter.Seq2[string, []byte], func() error) {
	var failed error
	return func(yield func(string, []byte) bool) {
		if failed = s.flush(); failed != nil {
			return
		}
		s.mu.RLock()
		db := s.db
		s.mu.RUnlock()
		if db == nil {
			return
		}
		it := db.NewIterator(util.BytesPrefix([]byte(rowPrefix)), &opt.ReadOptions{DontFillCache: true})
		defer it.Release()
		for it.Next() {
			if !yield(string(it.Key()[len(rowPrefix):]), append([]byte(nil), it.Value()...)) {
				return
			}
		}
		if failed = it.Error(); failed != nil {
			s.fails(failed)
		}
	}, func() error { return failed }
}

// errClosing ends the reading of a snapshot.
var errClosing = errors.New("the local store is being closed")

// snapshot returns the committed rows of now.
func (s *store) snapshot() (iter.Seq2[string, []byte], func() error, error) {
	s.flushMu.Lock()
	defer s.flushMu.Unlock()
	if err := s.flushLocked(); err != nil {
		return nil, nil, err
	}
	if s.db == nil {
		return nil, nil, errClosing
	}
	snapshot, err := s.db.GetSnapshot()
	if err != nil {
		return nil, nil, fmt.Errorf("reading local store %s: %w", s.dir, err)
	}
	s.readers.Add(1)
	var failed error
	return func(yield func(string, []byte) bool) {
		defer s.readers.Done()
		defer snapshot.Release()
		it := snapshot.NewIterator(util.BytesPrefix([]byte(rowPrefix)), &opt.ReadOptions{DontFillCache: true})
		defer it.Release()
		for it.Next() {
			if s.closing.Load() {
				failed = errClosing
				return
			}
			if !yield(string(it.Key()[len(rowPrefix):]), it.Value()) {
				return
			}
		}
		if failed = it.Error(); failed != nil {
			s.fails(failed)
		}
	}, func() error { return failed }, nil
}

// endReaders ends the reading of snapshots.
func (s *store) endReaders() {
	s.closing.Store(true)
	s.readers.Wait()
	s.closing.Store(false)
}

// own makes writer the only one whose rows are taken: a session that commits
// epochs, or one who reads the changelog. Rows of two at a time could overtake
// each other.
func (s *store) own(writer any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writer = writer
}

// disown ends the ownership of writer. Rows of its that come later are refused.
func (s *store) disown(writer any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writer == writer {
		s.writer = nil
	}
}

// put takes committed rows, in the order of the changelog, and the offset there
// of the last of them.
func (s *store) put(writer any, rows []Change, offset int64) error {
	s.mu.Lock()
	if s.writer != writer {
		s.mu.Unlock()
		return fmt.Errorf("local store %s: rows came after the partition was given up", s.dir)
	}
	s.putLocked(rows, offset)
	return s.unlockAndFlush()
}

func (s *store) putLocked(rows []Change, offset int64) {
	for _, r := range rows {
		s.pending[r.Key] = r.Value
		s.bytes += len(r.Key) + len(r.Value) + 64
	}
	if offset > s.meta.Offset {
		s.meta.Offset = offset
	}
}

// unlockAndFlush writes the pending rows in the background when they are many
// or old. It reports the fault of an earlier flush.
func (s *store) unlockAndFlush() error {
	failed := s.failed
	due := s.flushing == nil && (s.bytes >= maxPendingBytes || time.Since(s.flushed) >= s.interval)
	full := s.flushing != nil && s.bytes >= 2*maxPendingBytes
	s.mu.Unlock()
	switch {
	case failed != nil:
		return fmt.Errorf("local store %s has failed: %w", s.dir, failed)
	case full: // the disk is slower than the log: wait for it
		return s.flush()
	case due:
		s.flushes.Go(func() { _ = s.flush() }) // a fault is noted, and shows at the next put
	}
	return nil
}

func (s *store) offset() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.meta.Offset
}

// flush brings LevelDB up to date: rows and the offset they reach in one batch.
func (s *store) flush() error {
	s.flushMu.Lock()
	defer s.flushMu.Unlock()
	return s.flushLocked()
}

func (s *store) flushLocked() error {
	s.mu.Lock()
	if s.db == nil || s.meta.Offset < 0 {
		s.mu.Unlock()
		return nil
	}
	rows, meta := s.pending, s.meta
	s.flushing, s.pending, s.bytes = rows, make(map[string][]byte, len(rows)/2), 0
	s.flushed = time.Now()
	db := s.db
	s.mu.Unlock()

	batch := &s.batch
	batch.Reset()
	key := make([]byte, 0, 64)
	for k, v := range rows {
		key = append(append(key[:0], rowPrefix...), k...)
		if v == nil {
			batch.Delete(key)
		} else {
			batch.Put(key, v)
		}
	}
	m, err := json.Marshal(meta)
	if err != nil {
		return fmt.Errorf("encoding store metadata: %w", err)
	}
	batch.Put([]byte(metaKey), m)
	err = db.Write(batch, nil)

	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil { // keep what LevelDB does not have
		maps.Copy(rows, s.pending)
		s.pending, s.flushing, s.failed = rows, nil, err
		return fmt.Errorf("writing local store %s: %w", s.dir, err)
	}
	s.flushing = nil
	return nil
}

// close flushes and closes the store; it can be opened again.
func (s *store) close() error {
	s.flushes.Wait()
	s.flushMu.Lock()
	defer s.flushMu.Unlock()
	if s.db == nil {
		return nil
	}
	err := s.flushLocked()
	s.endReaders()
	s.mu.Lock()
	db := s.db
	s.db = nil
	s.mu.Unlock()
	return errors.Join(err, db.Close())
}

// stores keeps the partitions of one process open across assignments.
type stores struct {
	root     string
	interval time.Duration
	log      *slog.Logger

	mu  sync.Mutex
	all map[string]*store
}

func newStores(root string, interval time.Duration, log *slog.Logger) *stores {
	return &stores{root: root, interval: interval, log: log, all: map[string]*store{}}
}

func (s *stores) get(topic string, partition int32) *store {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := fmt.Sprintf("%s.%d", topic, partition)
	st := s.all[name]
	if st == nil {
		st = &store{dir: filepath.Join(s.root, name), interval: s.interval, log: s.log, meta: storeMeta{Offset: -1}}
		s.all[name] = st
	}
	return st
}

// disown ends every ownership.
func (s *stores) disown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.all {
		st.own(nil)
	}
}

func (s *stores) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, st := range s.all {
		errs = append(errs, st.close())
	}
	return errors.Join(errs...)
}
