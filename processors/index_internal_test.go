package processors

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"deliverystat/codecs"
)

// The index gives what a search through all entries gives, in the same order,
// whichever way due times move.
func TestPropertyIndexFindsWhatIsDue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newIndex()
		due := rapid.Map(rapid.IntRange(0, 12), func(n int) int64 {
			if n == 12 {
				return math.MaxInt64
			}
			return int64(n)
		})
		naive := func(clock int64, forgets bool) *entry {
			all := slices.Collect(maps.Values(x.entries))
			slices.SortFunc(all, func(a, b *entry) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.key, b.key)) })
			for _, e := range all {
				if e.due < clock && (forgets || !e.closed) {
					return e
				}
			}
			return nil
		}
		pick := func(t *rapid.T) *entry {
			keys := slices.Sorted(maps.Keys(x.entries))
			if len(keys) == 0 {
				return nil
			}
			return x.entries[rapid.SampledFrom(keys).Draw(t, "key")]
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				key := fmt.Sprint(rapid.IntRange(0, 30).Draw(t, "new"))
				if x.entries[key] == nil {
					x.add(&entry{key: key, due: due.Draw(t, "due"), closed: rapid.Bool().Draw(t, "closed")})
				}
			},
			"restand": func(t *rapid.T) {
				if e := pick(t); e != nil {
					x.restand(e, 0, rapid.Bool().Draw(t, "closed"), due.Draw(t, "due"))
				}
			},
			"remove": func(t *rapid.T) {
				if e := pick(t); e != nil {
					x.remove(e)
				}
			},
			"expire": func(t *rapid.T) {
				clock, forgets := rapid.Int64Range(0, 13).Draw(t, "clock"), rapid.Bool().Draw(t, "forgets")
				for {
					want, got := naive(clock, forgets), x.next(clock, forgets)
					require.Same(t, want, got)
					if got == nil {
						return
					}
					x.remove(got)
				}
			},
		})
	})
}

// What is empty leaves nothing in memory, however many values come and go.
func TestTallyLetsGoOfEmptyScopes(t *testing.T) {
	s := DefaultSettings()
	s.Dimensions = []codecs.Attribute{codecs.Region}
	tl := newTally(s)
	for i := range 10 {
		row := &codecs.Row{}
		row.Attributes[codecs.Region].Value = fmt.Sprint(i)
		set := tl.setOf(row, nil)
		tl.add(set, 1, false, +1)
		if i%2 == 0 {
			tl.cut(false)
		}
		tl.add(set, 1, false, -1)
		tl.cut(i == 3)
	}
	require.Len(t, tl.scopes, 1)
	require.Empty(t, tl.sets)
}

// The values of a row are parts of the record or of the bytes it was read from,
// which must not stay in memory for them.
func TestTallyCopiesTheValuesOfARow(t *testing.T) {
	s := DefaultSettings()
	s.Dimensions = []codecs.Attribute{codecs.Region}
	value := []byte("seoul")
	row := &codecs.Row{}
	row.Attributes[codecs.Region].Value = unsafe.String(&value[0], len(value)) //nolint:gosec // what the decoder does with the bytes of a record
	set := newTally(s).setOf(row, nil)

	copy(value, "#####")

	require.Equal(t, "seoul", set.values[codecs.Region])
	require.Equal(t, "region=seoul", set.scopes[1].scope)
}

func TestRowCacheIsBounded(t *testing.T) {
	c := newRowCache(10)
	entries := make([]*entry, 100)
	for i := range entries {
		entries[i] = &entry{row: []byte{1}}
		c.touch(entries[i])
		c.touch(entries[0]) // used all the time
	}
	var held int
	for _, e := range entries {
		if e.row != nil {
			held++
		}
	}
	require.LessOrEqual(t, held, 10)
	require.NotNil(t, entries[0].row)
	require.NotNil(t, entries[99].row)
}

func TestUnixNanoOfAnyTimestamp(t *testing.T) {
	require.Equal(t, int64(codecs.None), unixNano(time.Time{}))
	require.Equal(t, int64(codecs.None), unixNano(time.UnixMilli(-1)))
	require.Equal(t, int64(0), unixNano(time.UnixMilli(0)))
	require.Equal(t, int64(1_700_000_000_123_000_000), unixNano(time.UnixMilli(1_700_000_000_123)))
	require.Equal(t, int64(math.MaxInt64), unixNano(time.UnixMilli(1_700_000_000_123_456)), "microseconds read as milliseconds")
}

func TestLaterSaturates(t *testing.T) {
	require.Equal(t, int64(3), later(1, 2))
	require.Equal(t, int64(codecs.None), later(codecs.None, 5))
	require.Equal(t, int64(math.MaxInt64), later(math.MaxInt64-1, 5))
}
