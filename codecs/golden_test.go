package codecs_test

import (
	"bytes"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
)

// write makes the golden bytes of the current version. Bytes that a release has
// written are never written anew: put those of a new version in a new folder.
var write = flag.Bool("write-golden", false, "write the bytes of golden values that have none")

// goldenBytes returns the bytes in testdata/v1/NAME.hex.
func goldenBytes(t *testing.T, name string, current []byte) []byte {
	t.Helper()
	path := filepath.Join("testdata", "v1", name+".hex")
	if _, err := os.Stat(path); os.IsNotExist(err) && *write {
		require.NoError(t, os.WriteFile(path, hexLines(current), 0o600))
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	b, err := hex.DecodeString(string(bytes.Join(bytes.Fields(text), nil)))
	require.NoError(t, err)
	return b
}

// hexLines writes b as hex, 32 bytes a line.
func hexLines(b []byte) []byte {
	var text []byte
	for len(b) > 0 {
		n := min(len(b), 32)
		text = append(hex.AppendEncode(text, b[:n]), '\n')
		b = b[n:]
	}
	return text
}

func TestGoldenBytesOfVersion1StillDecode(t *testing.T) {
	l := codecs.BuiltinLifecycle()
	status := func(name string) codecs.Status {
		s, ok := l.Lookup(name)
		require.True(t, ok, name)
		return s
	}

	rows := map[string]*codecs.Row{
		"row-typical": {
			Winner: codecs.OrderKey{
				OccurredAt: 1_796_000_400_123_456_000, Status: status("PICKED_UP"), Sequence: 4,
				EventID: "0b6e5f0a-53a1-4c1e-8f0a-2f6f0f1b7c11", Hash: 0xfedcba9876543210,
			},
			Attributes: [codecs.NumAttributes]codecs.AttributeValue{
				codecs.OrderID: {Value: "O-77"},
				codecs.StoreID: {Value: "S-9"},
				codecs.Region:  {Value: "seoul"},
				codecs.Service: {Value: "courier-a"},
			},
			Timeline: []codecs.StatusTimes{
				{status("CREATED"), 1_796_000_000_000_000_000, 1_796_000_000_000_000_000},
				{status("ASSIGNED"), 1_796_000_100_000_000_000, 1_796_000_200_000_000_000},
				{status("PICKED_UP"), 1_796_000_400_123_456_000, 1_796_000_400_123_456_000},
			},
			Horizon: 1_795_000_000_000_000_001,
		},
		"row-late-attribute": {
			Winner:    codecs.OrderKey{OccurredAt: 1_796_000_000_000_000_002, Status: codecs.Unknown, Sequence: -1},
			RawStatus: "길을_잃음",
			Attributes: [codecs.NumAttributes]codecs.AttributeValue{
				codecs.Region: {Value: "서울", Key: &codecs.OrderKey{
					OccurredAt: 1_796_000_000_000_000_001, Status: status("DELIVERED"), Sequence: 9, EventID: "e-1", Hash: 1,
				}},
			},
			Timeline: []codecs.StatusTimes{
				{codecs.Unknown, -5, 1_796_000_000_000_000_002},
				{status("DELIVERED"), 1_796_000_000_000_000_001, 1_796_000_000_000_000_001},
			},
			Horizon: codecs.None,
		},
	}
	for name, want := range rows {
		got, err := l.ReadRow(goldenBytes(t, name, l.AppendRow(nil, want)))
		require.NoError(t, err, name)
		require.Equal(t, want, got, name)
	}

	progress := &codecs.Progress{
		TopicID: "6f1e0c5e9a3b4c1d8e7f001122334455", Next: 1042, Position: 2000,
		Clock: 1_796_000_400_123_456_000, Horizon: codecs.None,
		FirstRecord: 1_795_900_000_000_000_000, LastRecord: 1_796_000_401_000_000_000,
		Settings: []codecs.Setting{{"lifecycle", "0123456789abcdef"}, {"dimensions", ""}, {"allowed-lateness", "24h0m0s"}},
	}
	gotProgress, err := codecs.ReadProgress(goldenBytes(t, "progress", codecs.AppendProgress(nil, progress)))
	require.NoError(t, err)
	require.Equal(t, progress, gotProgress)

	counts := &codecs.CountsProgress{
		TopicID: "00112233445566778899aabbccddeeff", Next: 17,
		Partitions: []codecs.PartitionCounts{
			{0, "6f1e0c5e9a3b4c1d8e7f001122334455", 1042, 1_796_000_400_123_456_000, 1_795_000_000_000_000_000, 7, true, codecs.Audit{At: codecs.None}},
			{1, "6f1e0c5e9a3b4c1d8e7f001122334455", 0, codecs.None, codecs.None, 0, false, codecs.Audit{At: codecs.None}},
		},
	}
	gotCounts, err := codecs.ReadCountsProgress(goldenBytes(t, "counts-progress", codecs.AppendCountsProgress(nil, counts)))
	require.NoError(t, err)
	require.Equal(t, counts, gotCounts)

	tally := &codecs.Tally{
		Partition: 3, TopicID: "6f1e0c5e9a3b4c1d8e7f001122334455", Full: true, Part: 1, Parts: 2,
		Position: 1042, Clock: 1_796_000_400_123_456_000, Horizon: codecs.None, SettingsHash: 0xfedcba9876543210,
		Scopes: []codecs.ScopeCounts{
			{"", []codecs.StatusCount{{"CREATED", 3, 0}, {"DELIVERED", 0, 10}}},
			{"region=서울", []codecs.StatusCount{{"CREATED", 2, 0}, {"PICKED_UP", -1, 0}}},
			{"region=", nil},
		},
		Audited: codecs.None,
	}
	gotTally, err := codecs.ReadTally(goldenBytes(t, "tally", codecs.AppendTally(nil, tally)))
	require.NoError(t, err)
	require.Equal(t, tally, gotTally)

	statusCounts := []codecs.StatusCount{{"CREATED", 1_000_000, 0}, {"ON_A_BOAT", -2, 5}}
	gotStatusCounts, err := codecs.ReadCounts(goldenBytes(t, "status-counts", codecs.AppendCounts(nil, statusCounts)))
	require.NoError(t, err)
	require.Equal(t, statusCounts, gotStatusCounts)
}

// The content hash is part of stored rows, so it is golden too.
func TestContentHashNeverChanges(t *testing.T) {
	l := codecs.BuiltinLifecycle()
	e := codecs.Event{DeliveryID: "D-1", Status: codecs.Unknown, RawStatus: "ON_A_BOAT", OccurredAt: 1_796_000_000_000_000_000}
	require.Equal(t, uint64(0x483289c74d961948), l.HashEvent(&e))
	e = codecs.Event{
		DeliveryID: "배달-1", EventID: "e-1", Status: 4, OccurredAt: 1_796_000_000_000_000_001, Sequence: -4, Sequenced: true,
		Attributes: [codecs.NumAttributes]string{"O-1", "S-1", "서울", "courier-a"},
	}
	require.Equal(t, uint64(0x0cfcd31eb46ed909), l.HashEvent(&e))
}
