package exactlyonce

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
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
