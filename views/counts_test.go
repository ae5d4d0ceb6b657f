package views_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/processors/exactlyonce"
	"deliverystat/views"
)

func newCounts(t *testing.T, table *fakeTable) *views.Counts {
	t.Helper()
	counts, err := views.NewCounts(table.follow, quiet())
	require.NoError(t, err)
	return counts
}

// live is n live deliveries in status.
func live(status string, n int64) codecs.StatusCount {
	return codecs.StatusCount{Status: status, Live: n}
}

func TestCountsHaveNoSnapshotBeforeTheTableRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newFakeTable(1)
		counts := newCounts(t, table)
		start(t, counts.Run)
		table.write(0, total("", live("CREATED", 3)), countsProgress(lifeA, 3))
		synctest.Wait()
		require.Nil(t, counts.Snapshot())

		// No further batch comes: the recovery alone makes it appear.
		table.recovered.Store(true)
		got, err := counts.Wait(t.Context(), codecs.Position{})
		require.NoError(t, err)
		require.Equal(t, &codecs.Counts{
			Position:  codecs.Position{TopicID: lifeA, Next: []int64{3}},
			EventTime: 3e9,
			Complete:  true,
			Uniform:   true,
			All:       codecs.ScopeCounts{Counts: []codecs.StatusCount{live("CREATED", 3)}},
			Audited:   codecs.None,
		}, got)
		require.Same(t, got, counts.Snapshot())
	})
}

func TestCountsHaveNoSnapshotBeforeEveryPartitionHasToldAll(t *testing.T) {
	table := newFakeTable(1)
	table.recovered.Store(true)
	counts := newCounts(t, table)
	table.write(0, total("", live("CREATED", 1)), countsProgressOf(func(p *codecs.PartitionCounts) {
		p.Full = p.Partition == 0
	}, lifeA, 3, 4))
	require.Nil(t, counts.Snapshot())
	table.write(0, countsProgress(lifeA, 3, 5))
	require.Equal(t, []int64{3, 5}, counts.Snapshot().Position.Next)

	// A gap later: what was true stays, for nothing newer is known to be.
	table.write(0, total("", live("CREATED", 9)), countsProgressOf(func(p *codecs.PartitionCounts) {
		p.Full = p.Partition == 0
	}, lifeA, 4, 6))
	require.Equal(t, []int64{3, 5}, counts.Snapshot().Position.Next)
	require.Equal(t, []codecs.StatusCount{live("CREATED", 1)}, counts.Snapshot().All.Counts)
}

func TestCountsShowAllScopesAtOnePosition(t *testing.T) {
	table := newFakeTable(1)
	table.recovered.Store(true)
	counts := newCounts(t, table)
	table.write(0, total("", live("CREATED", 2)), total("region=seoul", live("CREATED", 2)), countsProgress(lifeA, 2))
	before := counts.Snapshot()
	table.write(0,
		total("", live("ASSIGNED", 1), live("CREATED", 1)),
		total("region=busan", live("ASSIGNED", 1)),
		total("region=seoul", live("CREATED", 1)),
		exactlyonce.Change{Key: codecs.ContributionKey(0, "region=busan"), Value: codecs.AppendCounts([]byte{}, nil)},
		countsProgress(lifeA, 3))
	after := counts.Snapshot()
	require.Equal(t, []codecs.StatusCount{live("CREATED", 2)}, before.All.Counts, "a snapshot that was handed out must not change")
	require.Equal(t, map[string]codecs.ScopeCounts{
		"region=seoul": {Scope: "region=seoul", Counts: []codecs.StatusCount{live("CREATED", 2)}},
	}, before.Groups)
	require.Equal(t, []codecs.StatusCount{live("ASSIGNED", 1), live("CREATED", 1)}, after.All.Counts)
	require.Equal(t, map[string]codecs.ScopeCounts{
		"region=busan": {Scope: "region=busan", Counts: []codecs.StatusCount{live("ASSIGNED", 1)}},
		"region=seoul": {Scope: "region=seoul", Counts: []codecs.StatusCount{live("CREATED", 1)}},
	}, after.Groups)

	// An empty scope is a deleted row.
	table.write(0, exactlyonce.Change{Key: codecs.TotalKey("region=busan")}, countsProgress(lifeA, 4))
	require.NotContains(t, counts.Snapshot().Groups, "region=busan")
	require.Contains(t, after.Groups, "region=busan")
}

func TestCountsNeverGoBackWithinOneLifeOfTheTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newFakeTable(1)
		table.recovered.Store(true)
		counts := newCounts(t, table)
		start(t, counts.Run)
		table.write(0, total("", live("CREATED", 5)), countsProgress(lifeA, 5, 7))

		// The copy is lost and recovered anew, through older states.
		table.wipe(0)
		table.write(0, total("", live("CREATED", 1)), countsProgress(lifeA, 6, 1))
		require.Equal(t, []int64{5, 7}, counts.Snapshot().Position.Next)
		table.recovered.Store(true)
		table.write(0, total("", live("CREATED", 2)), countsProgress(lifeA, 8, 6))
		synctest.Wait()
		require.Equal(t, []int64{5, 7}, counts.Snapshot().Position.Next, "one partition would go back")
		table.write(0, total("", live("CREATED", 6)), countsProgress(lifeA, 8, 7))
		require.Equal(t, []int64{8, 7}, counts.Snapshot().Position.Next)
	})
}

func TestCountsPublishARecoveryThatEndsWithoutAFurtherBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newFakeTable(1)
		table.recovered.Store(true)
		counts := newCounts(t, table)
		start(t, counts.Run)
		table.write(0, total("", live("CREATED", 5)), countsProgress(lifeA, 5))
		synctest.Wait()
		table.wipe(0)
		table.write(0, total("", live("CREATED", 6)), countsProgress(lifeA, 6))
		require.Equal(t, []int64{5}, counts.Snapshot().Position.Next)
		table.recovered.Store(true)
		got, err := counts.Wait(t.Context(), codecs.Position{Next: []int64{6}})
		require.NoError(t, err)
		require.Equal(t, []codecs.StatusCount{live("CREATED", 6)}, got.All.Counts)
	})
}

func TestCountsTakeANewLifeOfTheTopicAndNeverAFormerOne(t *testing.T) {
	table := newFakeTable(1)
	table.recovered.Store(true)
	counts := newCounts(t, table)
	table.write(0, countsProgress(lifeA, 9, 9))
	table.write(0, countsProgressOf(func(p *codecs.PartitionCounts) {
		if p.Partition == 1 {
			p.TopicID = lifeA
		}
	}, lifeB, 1, 9))
	require.Equal(t, lifeA, counts.Snapshot().Position.TopicID, "a mixture of lives has no position")
	table.write(0, countsProgress(lifeB, 1, 0))
	require.Equal(t, codecs.Position{TopicID: lifeB, Next: []int64{1, 0}}, counts.Snapshot().Position)
	table.write(0, countsProgress(lifeA, 99, 99))
	require.Equal(t, lifeB, counts.Snapshot().Position.TopicID)
}

func TestCountsStayAsTheyAreWhenARowCanNotBeRead(t *testing.T) {
	table := newFakeTable(1)
	table.recovered.Store(true)
	counts := newCounts(t, table)
	table.write(0, total("", live("CREATED", 1)), countsProgress(lifeA, 1))
	table.write(0, exactlyonce.Change{Key: codecs.TotalKey(""), Value: []byte{0xff}}, countsProgress(lifeA, 2))
	table.write(0, countsProgress(lifeA, 3))
	require.Equal(t, []int64{1}, counts.Snapshot().Position.Next)
	require.Equal(t, []codecs.StatusCount{live("CREATED", 1)}, counts.Snapshot().All.Counts)
}

func TestCountsWaitForAPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newFakeTable(1)
		table.recovered.Store(true)
		counts := newCounts(t, table)
		table.write(0, countsProgress(lifeA, 1, 1))

		ended, cancel := context.WithCancel(t.Context())
		cancel()
		got, err := counts.Wait(ended, codecs.Position{Next: []int64{-1, 1}})
		require.NoError(t, err, "what is there already is answered at once")
		require.Same(t, counts.Snapshot(), got)

		waiters := make(chan []int64, 3)
		for range 3 {
			go func() {
				got, err := counts.Wait(t.Context(), codecs.Position{Next: []int64{-1, 3}})
				if err == nil {
					waiters <- got.Position.Next
				}
			}()
		}
		synctest.Wait()
		table.write(0, countsProgress(lifeA, 2, 2))
		synctest.Wait()
		require.Empty(t, waiters)
		table.write(0, countsProgress(lifeA, 2, 4))
		for range 3 {
			require.Equal(t, []int64{2, 4}, <-waiters)
		}
		_, err = counts.Wait(ended, codecs.Position{Next: []int64{9}})
		require.ErrorIs(t, err, context.Canceled)
	})
}
