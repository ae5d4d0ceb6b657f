package processors_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"deliverystat/codecs"
)

// A changed abandon-after gives what a rebuild gives, in either direction and
// wherever the change comes, as long as nothing was forgotten under the old one.
func TestPropertyAnotherAbandonAfterGivesWhatARebuildGives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := anySettings(t)
		before.Lateness, before.MaxFuture = 24*time.Hour, 24*time.Hour
		after := *before
		after.AbandonAfter = anyDuration(0, 15).Draw(t, "other")
		records := anyInput(t, rapid.IntRange(1, 30).Draw(t, "n"))
		f := newFirstStage(t, before, records...)
		f.assign()
		f.step(rapid.IntRange(0, len(records)).Draw(t, "change"))
		f.reconfigure(&after)
		rebuilt := run(t, &after, records...)
		require.Empty(t, cmp.Diff(rebuilt.deliveries(), f.deliveries()))
		require.Empty(t, cmp.Diff(told(rebuilt.tallies()), told(f.tallies())))
		checkLastSummaries(t, f)
	})
}

// A shorter lateness forgets rows at the restart: the horizon is raised over them
// as if the clock had done it.
func TestAShorterLatenessRaisesTheHorizon(t *testing.T) {
	f := run(t, daySettings(), wire("a", "DELIVERED", 0), wire("b", "DELIVERED", 1*hour), wire("x", "CREATED", 10*hour))
	shorter := daySettings()
	shorter.Lateness = 5 * time.Hour
	f.reconfigure(shorter)
	require.Equal(t, sec(1*hour), f.progress().Horizon)
	f.produce(wire("a", "CREATED", 0.5*hour), wire("c", "CREATED", 1.5*hour))
	f.drain()
	f.check(map[string]string{"c": "CREATED", "x": "CREATED"}, map[string]int64{"live CREATED": 2})
	require.Equal(t, []codecs.Reason{codecs.TooLate}, f.reasons())
}

// A dimension that is removed, and later added again, leaves no stale count of
// its values behind.
func TestADimensionRemovedAndAddedAgain(t *testing.T) {
	f := run(t, eternalSettings(), wire("a", "CREATED", 1, "region", "seoul"), wire("b", "CREATED", 1, "region", "busan"))
	second := newSecondStage(t, 1)
	second.assign()
	count := func() counts {
		second.input.records = nil
		for _, rec := range f.to(f.cfg.Topics.Tallies) {
			second.feedRaw(rec.Key, rec.Value)
		}
		second.drain()
		return second.counts()
	}
	require.Equal(t, counts{"": {"live CREATED": 2}, "region=seoul": {"live CREATED": 1}, "region=busan": {"live CREATED": 1}}, count())

	without := *f.cfg.Settings
	without.Dimensions = nil
	f.reconfigure(&without)
	require.Equal(t, counts{"": {"live CREATED": 2}}, count())
	f.produce(wire("a", "ASSIGNED", 2, "region", "daegu"), wire("b", "DELIVERED", 2))
	f.drain()
	require.Equal(t, counts{"": {"live ASSIGNED": 1, "closed DELIVERED": 1}}, count())

	again := without
	again.Dimensions = []codecs.Attribute{codecs.Region}
	f.reconfigure(&again)
	require.Equal(t, counts{"": {"live ASSIGNED": 1, "closed DELIVERED": 1}, "region=daegu": {"live ASSIGNED": 1}, "region=busan": {"closed DELIVERED": 1}}, count())
}
