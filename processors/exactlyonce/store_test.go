package exactlyonce

import (
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func newTestStore(t *testing.T) *store {
	t.Helper()
	s := &store{
		dir: filepath.Join(t.TempDir(), "s"), interval: time.Hour,
		log: slog.New(slog.NewTextHandler(t.Output(), nil)), meta: storeMeta{Offset: -1},
	}
	t.Cleanup(func() { require.NoError(t, s.close()) })
	return s
}

func always(storeMeta) error { return nil }

func contents(t *testing.T, s *store) map[string]string {
	t.Helper()
	got := map[string]string{}
	rows, failed := s.rows()
	for k, v := range rows {
		got[k] = string(v)
	}
	require.NoError(t, failed())
	return got
}

func TestStoreKeepsRowsAndTheOffsetTheyReach(t *testing.T) {
	s := newTestStore(t)
	require.NoError(t, s.open("id", always))
	require.Equal(t, int64(-1), s.offset())
	require.NoError(t, s.put(nil, []Change{{"a", []byte("1")}, {"b", []byte("2")}, {"__offset", []byte("3")}}, 0))
	require.NoError(t, s.put(nil, []Change{{"a", nil}}, 4))
	require.NoError(t, s.close())

	require.NoError(t, s.open("id", always))
	require.Equal(t, int64(4), s.offset())
	require.Equal(t, map[string]string{"b": "2", "__offset": "3"}, contents(t, s))
	v, err := s.get("a")
	require.NoError(t, err)
	require.Nil(t, v)
}

// A snapshot has the rows of its time, whatever is put while it is read.
func TestSnapshotOfAStore(t *testing.T) {
	s := newTestStore(t)
	require.NoError(t, s.open("id", always))
	require.NoError(t, s.put(nil, []Change{{"a", []byte("1")}, {"b", []byte("2")}}, 1))
	rows, failed, err := s.snapshot()
	require.NoError(t, err)
	require.NoError(t, s.put(nil, []Change{{"a", nil}, {"b", []byte("3")}, {"c", []byte("4")}}, 4))
	require.NoError(t, s.flush())

	got := map[string]string{}
	for k, v := range rows {
		got[k] = string(v)
	}

	require.NoError(t, failed())
	require.Equal(t, map[string]string{"a": "1", "b": "2"}, got)
	require.Equal(t, map[string]string{"b": "3", "c": "4"}, contents(t, s))
}

// A store is closed while a snapshot of it is read: the reader ends first.
func TestStoreEndsTheReadersOfSnapshots(t *testing.T) {
	s := newTestStore(t)
	require.NoError(t, s.open("id", always))
	require.NoError(t, s.put(nil, []Change{{"a", []byte("1")}, {"b", []byte("2")}}, 1))
	rows, failed, err := s.snapshot()
	require.NoError(t, err)
	closed := make(chan error)
	read := 0

	for range rows {
		if read++; read == 1 {
			go func() { closed <- s.close() }()
			require.Eventually(t, s.closing.Load, 10*time.Second, time.Millisecond)
			require.Empty(t, closed)
		}
	}

	require.Equal(t, 1, read)
	require.ErrorIs(t, failed(), errClosing)
	require.NoError(t, <-closed)
	_, _, err = s.snapshot()
	require.ErrorIs(t, err, errClosing)
}

// Rows that are pending, on their way to LevelDB, or there, are all visible,
// the newest first.
func TestStoreReadsPendingRowsFirst(t *testing.T) {
	s := newTestStore(t)
	require.NoError(t, s.open("id", always))
	require.NoError(t, s.put(nil, []Change{{"a", []byte("1")}, {"b", []byte("1")}}, 1))
	require.NoError(t, s.flush())
	require.NoError(t, s.put(nil, []Change{{"a", []byte("2")}}, 2))
	for k, want := range map[string]string{"a": "2", "b": "1"} {
		v, err := s.get(k)
		require.NoError(t, err)
		require.Equal(t, want, string(v), k)
	}
}

func TestStoreIsWipedWhenItCannotBeUsed(t *testing.T) {
	tests := map[string]struct {
		topicID string
		usable  func(storeMeta) error
		damage  func(t *testing.T, dir string)
	}{
		"the topic was created anew": {"other", always, nil},
		"it is ahead of the log, or too old": {"id", func(m storeMeta) error {
			if m.Offset >= 5 {
				return &unusableError{"ahead"}
			}
			return nil
		}, nil},
		"LevelDB is corrupt": {"id", always, func(t *testing.T, dir string) {
			t.Helper()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "CURRENT"), []byte("nonsense"), 0o600))
		}},
		"LevelDB lost a file": {"id", always, func(t *testing.T, dir string) {
			t.Helper()
			for _, pattern := range []string{"MANIFEST-*"} {
				files, err := filepath.Glob(filepath.Join(dir, pattern))
				require.NoError(t, err)
				for _, f := range files {
					require.NoError(t, os.Remove(f))
				}
			}
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newTestStore(t)
			require.NoError(t, s.open("id", always))
			require.NoError(t, s.put(nil, []Change{{"a", []byte("1")}}, 7))
			require.NoError(t, s.close())
			if tt.damage != nil {
				tt.damage(t, s.dir)
			}
			require.NoError(t, s.open(tt.topicID, tt.usable))
			require.Equal(t, int64(-1), s.offset())
			require.Empty(t, contents(t, s))
			require.NoError(t, s.put(nil, []Change{{"a", []byte("2")}}, 1), "it works again")
		})
	}
}

// damage overwrites the middle of the one file that pattern names, or of the
// first of many.
func damage(t *testing.T, pattern string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	content, err := os.ReadFile(files[0])
	require.NoError(t, err)
	copy(content[len(content)/2:], "garbage")
	require.NoError(t, os.WriteFile(files[0], content, 0o600))
}

// Damage in the middle of the journal must not leave rows out below the offset.
func TestStoreWithADamagedJournalIsAPrefix(t *testing.T) {
	s := newTestStore(t)
	require.NoError(t, s.open("id", always))
	value := make([]byte, 1024)
	for i := range int64(50) {
		_, _ = rand.Read(value) // never fails
		require.NoError(t, s.put(nil, []Change{{strconv.FormatInt(i, 10), slices.Clone(value)}}, i))
		require.NoError(t, s.flush())
	}
	require.NoError(t, s.close())
	damage(t, filepath.Join(s.dir, "*.log"))

	require.NoError(t, s.open("id", always))

	require.Len(t, contents(t, s), int(s.offset()+1))
}

// LevelDB finds a damaged table only when it is read. The attempt that reads it
// fails, and the next one begins anew.
func TestStoreWithADamagedTableStartsEmptyAfterTheFirstRead(t *testing.T) {
	s := newTestStore(t)
	require.NoError(t, s.open("id", always))
	value := make([]byte, 1024)
	for i := range int64(8000) { // more than a journal holds
		_, _ = rand.Read(value) // never fails
		require.NoError(t, s.put(nil, []Change{{strconv.FormatInt(i, 10), slices.Clone(value)}}, i))
	}
	require.NoError(t, s.close())
	damage(t, filepath.Join(s.dir, "*.ldb"))
	require.NoError(t, s.open("id", always))

	rows, failed := s.rows()
	for range rows {
	}
	require.ErrorContains(t, failed(), "corruption")

	require.NoError(t, s.open("id", always))
	require.Equal(t, int64(-1), s.offset())
	require.Empty(t, contents(t, s))
	require.NoError(t, s.put(nil, []Change{{"a", []byte("2")}}, 1), "it works again")
}

// After a write that failed, as on a full disk, LevelDB refuses all others. The
// next attempt goes on from what the disk has.
func TestStoreIsOpenedAgainAfterAFailedWrite(t *testing.T) {
	s := newTestStore(t)
	require.NoError(t, s.open("id", always))
	require.NoError(t, s.put(nil, []Change{{"a", []byte("1")}}, 1))
	require.NoError(t, s.flush())
	require.NoError(t, s.db.SetReadOnly())
	require.NoError(t, s.put(nil, []Change{{"b", []byte("1")}}, 2))
	require.Error(t, s.flush())
	require.ErrorContains(t, s.put(nil, []Change{{"c", []byte("1")}}, 3), "has failed")

	require.NoError(t, s.open("id", always))

	require.Equal(t, int64(1), s.offset(), "the changelog is read again from there")
	require.Equal(t, map[string]string{"a": "1"}, contents(t, s))
	require.NoError(t, s.put(nil, []Change{{"b", []byte("1")}}, 2))
	require.NoError(t, s.flush())
}

// A broker that does not answer is no reason to read a whole changelog again.
func TestStoreIsKeptWhenNobodyKnows(t *testing.T) {
	s := newTestStore(t)
	require.NoError(t, s.open("id", always))
	require.NoError(t, s.put(nil, []Change{{"a", []byte("1")}}, 7))
	require.NoError(t, s.close())
	down := errors.New("broker down")
	require.ErrorIs(t, s.open("id", func(storeMeta) error { return down }), down)
	require.NoError(t, s.open("id", always))
	require.Equal(t, int64(7), s.offset())
	require.Equal(t, map[string]string{"a": "1"}, contents(t, s))
}

func TestStoreWithBrokenMetadataStartsEmpty(t *testing.T) {
	s := newTestStore(t)
	require.NoError(t, s.open("id", always))
	require.NoError(t, s.put(nil, []Change{{"a", []byte("1")}}, 7))
	require.NoError(t, s.flush())
	require.NoError(t, s.db.Put([]byte(metaKey), []byte("nonsense"), nil))
	require.NoError(t, s.db.Close())
	s.db = nil // as after a kill
	require.NoError(t, s.open("id", always))
	require.Equal(t, int64(-1), s.offset())
	require.Empty(t, contents(t, s))
}

// An epoch whose commit is answered after the partition was given up must not
// reach the store: another owner's rows may be in the log behind it.
func TestStoreRefusesALateCommit(t *testing.T) {
	s := newTestStore(t)
	require.NoError(t, s.open("id", always))
	session, next := &session{}, &session{stop: make(chan struct{})}
	s.own(session)
	require.NoError(t, s.put(session, []Change{{"a", []byte("1")}}, 1))
	require.ErrorContains(t, s.put(nil, []Change{{"a", []byte("x")}}, 2), "given up")
	s.disown(session)
	require.ErrorContains(t, s.put(session, []Change{{"a", []byte("2")}}, 2), "given up")
	s.own(next)
	require.ErrorContains(t, s.put(session, []Change{{"a", []byte("2")}}, 2), "given up")
	s.disown(session) // no longer its to give up
	require.NoError(t, s.put(next, []Change{{"b", []byte("1")}}, 3))
	require.Equal(t, map[string]string{"a": "1", "b": "1"}, contents(t, s))
	require.Equal(t, int64(3), s.offset())
}

// A disk that cannot be written ends the attempt, and loses nothing.
func TestStoreReportsAFailedFlush(t *testing.T) {
	s := newTestStore(t)
	require.NoError(t, s.open("id", always))
	require.NoError(t, s.put(nil, []Change{{"a", []byte("1")}}, 1))
	require.NoError(t, s.db.Close()) // every write fails from now on
	require.Error(t, s.flush())
	v, err := s.get("a")
	require.NoError(t, err)
	require.Equal(t, "1", string(v))
	s.db = nil
}
