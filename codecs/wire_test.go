package codecs_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"deliverystat/codecs"
)

// reader reads bytes and writes what it read anew.
type reader struct {
	name  string
	bytes []byte // an example
	again func([]byte) ([]byte, error)
}

// readers returns one reader for each message of a topic.
func readers() []reader {
	l := codecs.BuiltinLifecycle()
	row := benchmarkRow(l)
	row.Attributes[codecs.Region].Key = &codecs.OrderKey{OccurredAt: 1, Status: 3, EventID: strings.Repeat("e", 200)}
	return []reader{
		{"row", l.AppendRow(nil, row), func(b []byte) ([]byte, error) {
			v, err := l.ReadRow(b)
			if err != nil {
				return nil, err
			}
			return l.AppendRow(nil, v), nil
		}},
		{
			"progress row",
			codecs.AppendProgress(nil, &codecs.Progress{TopicID: "t", Next: 300, Position: -300, Clock: 1, Horizon: 2, FirstRecord: 3, LastRecord: 4, Settings: []codecs.Setting{{"a", "b"}}}),
			func(b []byte) ([]byte, error) {
				v, err := codecs.ReadProgress(b)
				if err != nil {
					return nil, err
				}
				return codecs.AppendProgress(nil, v), nil
			},
		},
		{
			"counts progress row",
			codecs.AppendCountsProgress(nil, &codecs.CountsProgress{TopicID: "t", Next: 300, Partitions: []codecs.PartitionCounts{{1, "i", 2, 3, 4, 5, true, codecs.Audit{
				At: 6, Rows: []codecs.StatusCount{{Status: "A", Live: -1}}, Table: []codecs.StatusCount{{Status: "B", Closed: 2}},
			}}}}),
			func(b []byte) ([]byte, error) {
				v, err := codecs.ReadCountsProgress(b)
				if err != nil {
					return nil, err
				}
				return codecs.AppendCountsProgress(nil, v), nil
			},
		},
		{
			"tally",
			codecs.AppendTally(nil, &codecs.Tally{
				Partition: 3, TopicID: "t", Full: true, Part: 1, Parts: 2, Position: 300, Clock: 1, Horizon: 2, SettingsHash: 3,
				Scopes: []codecs.ScopeCounts{{"region=seoul", []codecs.StatusCount{{"CREATED", 1, 2}, {"DELIVERED", -300, 300}}}, {"", nil}},
				Check:  true, Audited: 4, Drift: []codecs.StatusCount{{"CREATED", 5, 0}},
			}),
			func(b []byte) ([]byte, error) {
				v, err := codecs.ReadTally(b)
				if err != nil {
					return nil, err
				}
				return codecs.AppendTally(nil, v), nil
			},
		},
		{
			"counts row", codecs.AppendCounts(nil, []codecs.StatusCount{{"CREATED", 1, 2}, {"DELIVERED", -300, 300}}),
			func(b []byte) ([]byte, error) {
				v, err := codecs.ReadCounts(b)
				if err != nil {
					return nil, err
				}
				return codecs.AppendCounts(nil, v), nil
			},
		},
	}
}

// A cut within a field is an error. One between fields can not be told from a
// message that never had the rest: nothing else than that is read then.
func TestCutBytesAreAnErrorOrLess(t *testing.T) {
	for _, r := range readers() {
		whole, err := r.again(r.bytes)
		require.NoError(t, err, r.name)
		require.Equal(t, r.bytes, whole, r.name)
		failed := 0
		for n := range r.bytes {
			again, err := r.again(r.bytes[:n])
			if err != nil {
				require.ErrorContains(t, err, "reading "+r.name)
				failed++
				continue
			}
			if r.name != "row" { // a row always has a winner
				require.Equal(t, r.bytes[:n], again, "%s cut at %d", r.name, n)
			}
		}
		require.Greater(t, failed, len(r.bytes)/2, r.name)
	}
}

func TestVersionsOfLaterReleasesAreRefused(t *testing.T) {
	for _, r := range readers() {
		require.Equal(t, []byte{1 << 3, 1}, r.bytes[:2], "version first")
		_, err := r.again(append([]byte{1 << 3, 2}, r.bytes[2:]...))
		require.ErrorContains(t, err, "version 2, written by a later release", r.name)
		_, err = r.again(r.bytes[2:])
		require.ErrorContains(t, err, "no version", r.name)
		_, err = r.again(nil)
		require.ErrorContains(t, err, "no version", r.name)
	}
}

// Later releases may add fields of any type anywhere.
func TestUnknownFieldsAreSkipped(t *testing.T) {
	var unknown []byte
	unknown = protowire.AppendVarint(protowire.AppendTag(unknown, 15, protowire.VarintType), 1<<63)
	unknown = protowire.AppendString(protowire.AppendTag(unknown, 16, protowire.BytesType), "later")
	unknown = protowire.AppendFixed32(protowire.AppendTag(unknown, 1000, protowire.Fixed32Type), 7)
	unknown = protowire.AppendFixed64(protowire.AppendTag(unknown, 1<<29-1, protowire.Fixed64Type), 7)
	unknown = protowire.AppendTag(unknown, 99, protowire.StartGroupType)
	unknown = protowire.AppendVarint(protowire.AppendTag(unknown, 1, protowire.VarintType), 1)
	unknown = protowire.AppendTag(unknown, 99, protowire.EndGroupType)
	for _, r := range readers() {
		for _, b := range [][]byte{bytes.Join([][]byte{unknown, r.bytes}, nil), bytes.Join([][]byte{r.bytes, unknown}, nil), interleave(r.bytes, unknown)} {
			again, err := r.again(b)
			require.NoError(t, err, r.name)
			require.Equal(t, r.bytes, again, r.name)
		}
	}
}

// interleave puts unknown before each field of b and into its messages, which
// are the fields that themselves parse as such.
func interleave(b, unknown []byte) []byte {
	var out []byte
	for len(b) > 0 {
		field, typ, n := protowire.ConsumeTag(b)
		m := protowire.ConsumeFieldValue(field, typ, b[n:])
		out = append(out, unknown...)
		value := b[n : n+m]
		if content, k := protowire.ConsumeBytes(value); typ == protowire.BytesType && k > 0 && isMessage(content) {
			out = protowire.AppendBytes(protowire.AppendTag(out, field, typ), interleave(content, unknown))
		} else {
			out = append(append(out, b[:n]...), value...)
		}
		b = b[n+m:]
	}
	return out
}

// isMessage reports whether b is a message of ours: it begins with a field 1
// that is a text or a time.
func isMessage(b []byte) bool {
	return len(b) > 1 && (b[0] == 0x0a && int(b[1]) < len(b)-1 || b[0] == 0x09 && len(b) > 9)
}

func TestWrongWireTypesAreErrors(t *testing.T) {
	for _, r := range readers() {
		// As often as there is a field number, give it a type that no field has.
		for field := protowire.Number(1); field < 12; field++ {
			b := append(bytes.Clone(r.bytes), protowire.AppendTag(nil, field, protowire.Fixed32Type)...)
			b = protowire.AppendFixed32(b, 7)
			if _, err := r.again(b); err != nil {
				require.ErrorContains(t, err, "wire type", r.name)
				continue
			}
			require.Greater(t, int(field), 2, r.name) // every message has the fields 1 and 2
		}
	}
}

func TestRowUnderAnotherLifecycle(t *testing.T) {
	old, err := codecs.NewLifecycle([]codecs.StatusInfo{{Name: "A"}, {Name: "B"}, {Name: "C"}, {Name: "D", Terminal: true}})
	require.NoError(t, err)
	row := &codecs.Row{
		Winner:  codecs.OrderKey{OccurredAt: 9, Status: 2, EventID: "e"}, // B
		Horizon: codecs.None,
		Timeline: []codecs.StatusTimes{
			{codecs.Unknown, 5, 6}, {1, 1, 2}, {2, 3, 9}, {3, 4, 4}, {4, 7, 8},
		},
	}
	row.Attributes[codecs.Region] = codecs.AttributeValue{Value: "seoul", Key: &codecs.OrderKey{OccurredAt: 8, Status: 4}}
	b := old.AppendRow(nil, row)

	// Other ranks, B and C are gone.
	l, err := codecs.NewLifecycle([]codecs.StatusInfo{{Name: "D", Terminal: true}, {Name: "E"}, {Name: "A"}})
	require.NoError(t, err)
	got, err := l.ReadRow(b)
	require.NoError(t, err)
	require.Equal(t, codecs.OrderKey{OccurredAt: 9, Status: codecs.Unknown, EventID: "e"}, got.Winner)
	require.Equal(t, "B", got.RawStatus)
	require.Equal(t, codecs.Status(1), got.Attributes[codecs.Region].Key.Status)
	require.Equal(t, []codecs.StatusTimes{{codecs.Unknown, 3, 9}, {1, 7, 8}, {3, 1, 2}}, got.Timeline)

	// ABANDONED is never stored.
	row.Winner.Status = old.Abandoned()
	got, err = old.ReadRow(old.AppendRow(nil, row))
	require.NoError(t, err)
	require.Equal(t, codecs.Unknown, got.Winner.Status)

	// A name that the producer sent is kept.
	row.Winner.Status, row.RawStatus = 2, "b"
	got, err = l.ReadRow(old.AppendRow(nil, row))
	require.NoError(t, err)
	require.Equal(t, "b", got.RawStatus)
}

// Strings of what was read are not part of the bytes.
func TestReadKeepsNothingOfItsInput(t *testing.T) {
	l := codecs.BuiltinLifecycle()
	b := l.AppendRow(nil, benchmarkRow(l))
	row, err := l.ReadRow(b)
	require.NoError(t, err)
	clear(b)
	require.Equal(t, benchmarkRow(l), row)

	// A timeline has no room for the next entry of another copy.
	grown := append(row.Timeline, codecs.StatusTimes{Status: 9})
	require.NotSame(t, &grown[0], &row.Timeline[0])
}

func TestAppendKeepsWhatIsBefore(t *testing.T) {
	l := codecs.BuiltinLifecycle()
	rapid.Check(t, func(t *rapid.T) {
		row := anyRow(l).Draw(t, "row")
		before := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "before")
		b := l.AppendRow(bytes.Clone(before), row)
		if !bytes.HasPrefix(b, before) || !bytes.Equal(b[len(before):], l.AppendRow(nil, row)) {
			t.Fatal("appending is not the same as encoding alone")
		}
	})
}

// A field must end where the message that it is in ends, also if there are more
// bytes after that.
func TestFieldsEndWithTheirMessage(t *testing.T) {
	for name, b := range map[string][]byte{
		"text":    {8, 1, 0x12, 2, 0x22, 3, 0x18, 0, 0x18, 0},
		"time":    {8, 1, 0x12, 2, 0x09, 3, 0x18, 0, 0x18, 0, 0x18, 0, 0x18, 0},
		"integer": {8, 1, 0x12, 2, 0x18, 0x80, 0x18, 0},
		"message": {8, 1, 0x22, 2, 0x1a, 2, 0x18, 0},
		"unknown": {8, 1, 0x12, 2, 0x7a, 2, 0x18, 0},
	} {
		_, err := codecs.BuiltinLifecycle().ReadRow(b)
		require.ErrorContains(t, err, "unexpected EOF", name)
	}
}

func TestDamagedTagsAreErrors(t *testing.T) {
	for _, r := range readers() {
		for _, tail := range [][]byte{{0, 0}, {1, 0, 0, 0, 0, 0, 0, 0, 0}, {0xff}, {0x7e, 0}, {0x7c}, {0x7b, 0x08, 0x01}} {
			_, err := r.again(append(bytes.Clone(r.bytes), tail...))
			require.ErrorContains(t, err, "reading "+r.name, "% x", tail)
		}
	}
}
