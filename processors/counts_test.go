package processors_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/processors"
	"deliverystat/processors/exactlyonce"
)

// tallyOf is a full tally of one part; changes alter it.
func tallyOf(partition int32, position int64, scopes ...codecs.ScopeCounts) *codecs.Tally {
	return &codecs.Tally{
		Partition: partition, TopicID: "events-1", Full: true, Parts: 1, Position: position,
		Clock: sec(float64(position)), Horizon: codecs.None, SettingsHash: 7, Scopes: scopes, Audited: codecs.None,
	}
}

// partial makes a tally of changes only.
func partial(t *codecs.Tally) *codecs.Tally {
	t.Full = false
	return t
}

// part makes a tally part i of n.
func part(t *codecs.Tally, i, n int32) *codecs.Tally {
	t.Part, t.Parts = i, n
	return t
}

func live(scope string, created int64) codecs.ScopeCounts {
	return codecs.ScopeCounts{Scope: scope, Counts: []codecs.StatusCount{{Status: "CREATED", Live: created}}}
}

func gone(scope string) codecs.ScopeCounts { return codecs.ScopeCounts{Scope: scope} }

// created are the counts of live deliveries in CREATED by scope.
func (s *secondStage) created() map[string]int64 {
	created := map[string]int64{}
	for scope, c := range s.counts() {
		created[scope] = c["live CREATED"]
	}
	return created
}

func startSecondStage(t *testing.T, partitions int32, tallies ...*codecs.Tally) *secondStage {
	t.Helper()
	s := newSecondStage(t, partitions)
	s.feed(tallies...)
	s.assign()
	s.drain()
	return s
}

func TestTotalsAreTheSumsOfThePartitions(t *testing.T) {
	s := startSecondStage(t, 2,
		tallyOf(0, 5, live("", 3), live("region=a", 2), live("region=b", 1)),
		tallyOf(1, 8, live("", 4), live("region=b", 4)))
	require.Equal(t, map[string]int64{"": 7, "region=a": 2, "region=b": 5}, s.created())
	snapshot := s.snapshot()
	require.True(t, snapshot.Complete)
	require.True(t, snapshot.Uniform)
	require.Equal(t, codecs.Position{TopicID: "events-1", Next: []int64{5, 8}}, snapshot.Position)
	require.Equal(t, sec(8), snapshot.EventTime)
}

func TestAPartitionThatHasNotToldAllMakesTheCountsIncomplete(t *testing.T) {
	s := startSecondStage(t, 2, tallyOf(0, 5, live("", 3)))
	require.False(t, s.snapshot().Complete)
	require.Equal(t, []int64{5, -1}, s.snapshot().Position.Next)
	s.feed(partial(tallyOf(1, 1, live("", 1))))
	s.drain()
	require.False(t, s.snapshot().Complete)
	s.feed(tallyOf(1, 1, live("", 1)))
	s.drain()
	require.True(t, s.snapshot().Complete)
}

func TestEmptyTalliesGiveCompleteZeros(t *testing.T) {
	s := startSecondStage(t, 1, tallyOf(0, 0, gone("")))
	require.Contains(t, s.table, codecs.TotalKey(""))
	require.True(t, s.snapshot().Complete)
	require.Empty(t, s.snapshot().All.Counts)
}

func TestFirstCutWritesAProgressRowWithoutTallies(t *testing.T) {
	s := newSecondStage(t, 1)
	s.assign()
	require.True(t, s.cut())
	s.commit()
	require.False(t, s.snapshot().Complete)
	require.False(t, s.cut())
}

func TestFullReplacesEverythingOfItsPartition(t *testing.T) {
	s := startSecondStage(t, 2,
		tallyOf(0, 5, live("", 3), live("region=a", 2), live("region=b", 1)),
		tallyOf(1, 8, live("", 4), live("region=b", 4)),
		tallyOf(0, 6, live("", 1), live("region=c", 1)))
	require.Equal(t, map[string]int64{"": 5, "region=b": 4, "region=c": 1}, s.created())
}

func TestChangesReplaceTheirScopesOnly(t *testing.T) {
	s := startSecondStage(t, 1,
		tallyOf(0, 5, live("", 3), live("region=a", 2), live("region=b", 1)),
		partial(tallyOf(0, 6, live("", 4), live("region=b", 2))))
	require.Equal(t, map[string]int64{"": 4, "region=a": 2, "region=b": 2}, s.created())
	require.True(t, s.snapshot().Complete)
}

func TestOlderTallyIsIgnoredAndEqualOneApplied(t *testing.T) {
	s := startSecondStage(t, 1,
		tallyOf(0, 5, live("", 3)),
		tallyOf(0, 4, live("", 9)))
	require.Equal(t, int64(3), s.created()[""])
	require.Equal(t, []int64{5}, s.snapshot().Position.Next)
	s.feed(tallyOf(0, 5, live("", 8)))
	s.drain()
	require.Equal(t, int64(8), s.created()[""])
}

func TestTallyOfANewInputTopicReplacesTheOld(t *testing.T) {
	s := startSecondStage(t, 1, tallyOf(0, 50, live("", 3), live("region=a", 3)))
	anew := partial(tallyOf(0, 1, live("", 1)))
	anew.TopicID = "events-2"
	s.feed(anew)
	s.drain()
	require.Equal(t, map[string]int64{"": 1}, s.created())
	require.False(t, s.snapshot().Complete, "it has not told all")
	require.Equal(t, codecs.Position{TopicID: "events-2", Next: []int64{1}}, s.snapshot().Position)
}

func TestMixedInputTopicsAreIncomplete(t *testing.T) {
	other := tallyOf(1, 1, live("", 1))
	other.TopicID = "events-2"
	s := startSecondStage(t, 2, tallyOf(0, 50, live("", 3)), other)
	require.False(t, s.snapshot().Complete)
}

func TestDifferentSettingsAreNotUniform(t *testing.T) {
	other := tallyOf(1, 1, live("", 1))
	other.SettingsHash = 8
	s := startSecondStage(t, 2, tallyOf(0, 50, live("", 3)), other)
	require.True(t, s.snapshot().Complete)
	require.False(t, s.snapshot().Uniform)
}

func TestEmptyScopesAreDeletedButNotAll(t *testing.T) {
	s := startSecondStage(t, 1, tallyOf(0, 5, live("", 1), live("region=a", 1)))
	s.feed(partial(tallyOf(0, 6, gone(""), gone("region=a"))))
	s.drain()
	require.Equal(t, []string{codecs.ProgressKey, codecs.TotalKey("")}, sortedKeys(s.table))
	require.Equal(t, counts{"": {}}, s.counts())
}

func TestNegativeNumbersAreNotClamped(t *testing.T) {
	s := startSecondStage(t, 1, tallyOf(0, 5, live("", -2)))
	require.Equal(t, int64(-2), s.created()[""])
}

func TestPartsTakeEffectTogether(t *testing.T) {
	s := startSecondStage(t, 1, tallyOf(0, 5, live("", 3), live("region=a", 3)))
	s.feed(
		part(tallyOf(0, 6, live("", 4)), 0, 3),
		part(tallyOf(0, 6, live("region=b", 1)), 1, 3),
		part(tallyOf(0, 6, live("region=c", 3)), 2, 3))
	for range 2 {
		s.step(1)
		require.Equal(t, map[string]int64{"": 3, "region=a": 3}, s.created())
		progress, err := codecs.ReadCountsProgress(s.table[codecs.ProgressKey])
		require.NoError(t, err)
		require.Equal(t, int64(1), progress.Next, "the first part that did not take effect")
	}
	s.step(1)
	require.Equal(t, map[string]int64{"": 4, "region=b": 1, "region=c": 3}, s.created())
	require.Equal(t, []int64{6}, s.snapshot().Position.Next)
}

func TestCrashBetweenThePartsReadsThemAgain(t *testing.T) {
	for consumed := range 4 {
		s := startSecondStage(t, 2, tallyOf(0, 5, live("", 3)), tallyOf(1, 5, live("", 10)))
		s.feed(
			part(tallyOf(0, 6, live("", 4)), 0, 2),
			partial(tallyOf(1, 6, live("", 20))), // of another owner, in between
			part(tallyOf(0, 6, live("region=b", 4)), 1, 2),
			partial(tallyOf(1, 7, live("", 30))))
		s.step(consumed)
		s.crash()
		s.drain()
		require.Equal(t, map[string]int64{"": 34, "region=b": 4}, s.created())
		require.True(t, s.snapshot().Complete)
	}
}

func TestMissingPartsAreAGap(t *testing.T) {
	tests := []struct {
		name    string
		tallies []*codecs.Tally
	}{
		{"the first is trimmed", []*codecs.Tally{part(tallyOf(0, 6, live("", 4)), 1, 2)}},
		{"the last is lost", []*codecs.Tally{part(tallyOf(0, 6, live("", 4)), 0, 2), partial(tallyOf(0, 7, live("", 5)))}},
		{"one between", []*codecs.Tally{part(tallyOf(0, 6, live("", 4)), 0, 3), part(tallyOf(0, 6, live("region=a", 4)), 2, 3)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := startSecondStage(t, 1, tallyOf(0, 5, live("", 3)))
			s.feed(tt.tallies...)
			s.drain()
			require.False(t, s.snapshot().Complete)
			s.feed(tallyOf(0, 8, live("", 6)))
			s.drain()
			require.True(t, s.snapshot().Complete)
			require.Equal(t, map[string]int64{"": 6}, s.created())
		})
	}
}

func TestTalliesThatCanNotBeReadAreAGap(t *testing.T) {
	tests := []struct {
		name, key string
		value     []byte
		want      []bool
	}{
		{"of a partition", "1", []byte{0xff}, []bool{true, false}},
		{"null", "1", nil, []bool{true, false}},
		{"of no partition", "x", []byte{0xff}, []bool{false, false}},
		{"of a partition that is not there", "2", codecs.AppendTally(nil, tallyOf(2, 1, live("", 1))), []bool{false, false}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := startSecondStage(t, 2, tallyOf(0, 5, live("", 3)), tallyOf(1, 5, live("", 3)))
			s.feedRaw(tt.key, tt.value)
			s.drain()
			progress, err := codecs.ReadCountsProgress(s.table[codecs.ProgressKey])
			require.NoError(t, err)
			for p, full := range tt.want {
				require.Equal(t, full, progress.Partitions[p].Full, "partition %d", p)
			}
			require.Equal(t, map[string]int64{"": 6}, s.created())
		})
	}
}

func TestStartOfReadingTallies(t *testing.T) {
	tests := []struct {
		name     string
		disturb  func(s *secondStage)
		next     int64
		complete bool
	}{
		{"where the last epoch ended", func(*secondStage) {}, 2, true},
		{"operator goes back", func(s *secondStage) { s.committed = 0 }, 2, true},
		{"operator goes forward", func(s *secondStage) { s.committed = 3 }, 2, true},
		{"group offsets expired", func(s *secondStage) { s.committed = -1 }, 2, true},
		{"log trimmed up to there", func(s *secondStage) { s.input.trim(2) }, 2, true},
		{"log trimmed beyond", func(s *secondStage) { s.input.trim(3) }, 3, false},
		{"log truncated", func(s *secondStage) { s.input.records = s.input.records[:1] }, 0, false},
		{"topic created anew", func(s *secondStage) { s.input.id = "tallies-2"; s.input.records = s.input.records[2:] }, 0, false},
		{"table emptied", func(s *secondStage) { clear(s.table) }, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSecondStage(t, 1)
			s.feed(tallyOf(0, 1, live("", 1)), partial(tallyOf(0, 2, live("", 2))),
				partial(tallyOf(0, 3, live("", 3))), partial(tallyOf(0, 4, live("", 4))))
			s.assign()
			s.step(2)
			tt.disturb(s)
			s.assign()
			require.Equal(t, tt.next, s.next)
			s.log = nil
			s.cut()
			s.commit()
			require.Equal(t, tt.complete, s.snapshot().Complete)
			s.feed(tallyOf(0, 5, live("", 5)))
			s.drain()
			require.True(t, s.snapshot().Complete)
			require.Equal(t, map[string]int64{"": 5}, s.created())
		})
	}
}

func TestWrongTotalsAreCorrectedFromTheContributions(t *testing.T) {
	s := startSecondStage(t, 2, tallyOf(0, 5, live("", 3), live("region=a", 3)), tallyOf(1, 5, live("", 1), live("region=b", 1)))
	s.table[codecs.TotalKey("")] = codecs.AppendCounts(nil, []codecs.StatusCount{{Status: "CREATED", Live: 99}})
	s.table[codecs.TotalKey("region=x")] = codecs.AppendCounts(nil, []codecs.StatusCount{{Status: "CREATED", Live: 1}})
	delete(s.table, codecs.TotalKey("region=b"))
	s.assign()
	s.drain()
	require.Equal(t, map[string]int64{"": 4, "region=a": 3, "region=b": 1}, s.created())
}

func TestCountsTableOfAnotherKindIsRefused(t *testing.T) {
	s := startSecondStage(t, 2, tallyOf(0, 5, live("", 3)), tallyOf(1, 5, live("", 1)))
	s.table["stranger"] = nil
	require.ErrorContains(t, s.tryAssign(), "none of count-per-status")
	delete(s.table, "stranger")
	s.cfg.InputPartitions = 1
	require.ErrorContains(t, s.tryAssign(), "none of count-per-status")
	s.cfg.InputPartitions = 2
	delete(s.table, codecs.ProgressKey)
	require.ErrorContains(t, s.tryAssign(), "no progress row")
}

func TestCountsSnapshotsAreImmutable(t *testing.T) {
	s := startSecondStage(t, 1, tallyOf(0, 5, live("", 3), live("region=a", 3)))
	table := processors.NewCountsTable()
	first, err := table.Apply(s.log)
	require.NoError(t, err)
	want := *first
	want.Groups = map[string]codecs.ScopeCounts{"region=a": live("region=a", 3)}
	s.log = nil
	s.feed(tallyOf(0, 6, live("", 4), live("region=b", 4)))
	s.drain()
	second, err := table.Apply(s.log)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(&want, first))
	require.Equal(t, map[string]codecs.ScopeCounts{"region=b": live("region=b", 4)}, second.Groups)
	same, err := table.Apply(nil)
	require.NoError(t, err)
	require.Same(t, second, same)
}

func TestCountsTableRefusesWhatItCanNotRead(t *testing.T) {
	for _, c := range []exactlyonce.Change{
		{Key: codecs.ProgressKey, Value: []byte{0xff}},
		{Key: codecs.TotalKey(""), Value: []byte{0xff}},
		{Key: "stranger"},
	} {
		_, err := processors.NewCountsTable().Apply([]exactlyonce.Change{c})
		require.Error(t, err)
	}
}
