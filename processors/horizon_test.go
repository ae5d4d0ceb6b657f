package processors_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/processors"
)

// Attacks on the rule that forgetting is safe: nothing of a forgotten life may
// come back, and nothing legitimate may be refused.

const hour = 3600.0 // seconds

// daySettings are the defaults of a deployment.
func daySettings() *processors.Settings {
	s := processors.DefaultSettings()
	s.Dimensions = []codecs.Attribute{codecs.Region}
	return s
}

// reconfigure assigns the partition anew, with other settings.
func (f *firstStage) reconfigure(s *processors.Settings) {
	f.cfg.Settings, f.cfg.AcceptNewMeaning = s, true
	f.assign()
	f.drain()
}

// After a longer lateness is set, an event may be younger than it and still
// belong to a life that was forgotten under the shorter one.
func TestHorizonOutlivesALatenessRaisedBetweenRestarts(t *testing.T) {
	f := run(t, daySettings(), wire("a", "CREATED", 0), wire("a", "DELIVERED", 1*hour), wire("x", "CREATED", 26*hour))
	require.NotContains(t, f.statuses(), "a")
	longer := daySettings()
	longer.Lateness = 72 * time.Hour
	f.reconfigure(longer)
	f.produce(wire("a", "ASSIGNED", 0.5*hour), wire("a", "DELIVERED", 1*hour), // the forgotten life
		wire("b", "CREATED", 1.5*hour), wire("x", "ASSIGNED", 1.2*hour)) // legitimate, though older than the old lateness
	f.drain()
	require.Equal(t, []codecs.Reason{codecs.TooLate, codecs.TooLate}, f.reasons())
	f.check(map[string]string{"b": "CREATED", "x": "CREATED"}, map[string]int64{"live CREATED": 2})
}

// A live event between the event time and the order time of a forgotten terminal
// event belongs to the forgotten life.
func TestHorizonIsOrderTimeOfASkewedTerminal(t *testing.T) {
	s := daySettings()
	s.TerminalSkew = 10 * time.Minute
	f := run(t, s, wire("a", "DELIVERED", 0), wire("x", "CREATED", 25*hour))
	require.NotContains(t, f.statuses(), "a")
	f.produce(wire("a", "DELIVERING", 300), wire("a", "CREATED", 601))
	f.drain()
	require.Equal(t, []codecs.Reason{codecs.TooLate}, f.reasons())
	require.Equal(t, "CREATED", f.statuses()["a"], "newer than all that was forgotten: another life")
}

// An initial snapshot comes in random order, slower than it is processed, and
// some deliveries were last seen four days ago.
func TestHorizonRefusesNothingOfASlowInitialSnapshot(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var records []fakeRecord
	want := map[string]string{}
	for i := range 200 {
		id := fmt.Sprintf("d%d", i)
		seen := -float64(random.IntN(96)) * hour
		records = append(records, wire(id, "CREATED", seen-60), wire(id, "ASSIGNED", seen))
		want[id] = "ASSIGNED"
		if i%3 == 0 {
			records = append(records, wire(id, "DELIVERED", seen+60))
			want[id] = "DELIVERED"
		}
	}
	random.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	for i := range records { // all within twenty hours
		records[i] = records[i].arriving(float64(i) / float64(len(records)) * 20 * hour)
	}
	f := newFirstStage(t, daySettings(), records...)
	f.assign()
	for f.next < f.input.end() {
		f.step(7)
	}
	require.Empty(t, f.reasons())
	require.Equal(t, want, f.statuses())
}

// The end of a delivery arrives thirty hours after the fact.
func TestHorizonOfADeliveryClosedByAnOldEvent(t *testing.T) {
	f := run(t, daySettings(), wire("a", "CREATED", 0), wire("x", "CREATED", 31*hour))
	f.produce(wire("a", "DELIVERED", 1*hour))
	f.drain()
	require.Empty(t, f.reasons(), "a known delivery takes it")
	f.check(map[string]string{"x": "CREATED"}, map[string]int64{"live CREATED": 1})
	require.Equal(t, []string{"DELIVERED"}, f.outcomesOfA())
	f.produce(wire("a", "CREATED", 0), wire("a", "ASSIGNED", 0.5*hour))
	f.drain()
	require.Equal(t, []codecs.Reason{codecs.TooLate, codecs.TooLate}, f.reasons())
	f.check(map[string]string{"x": "CREATED"}, map[string]int64{"live CREATED": 1})
}

// A re-opening in the same epoch in which its row was forgotten starts a new
// life, wherever the epoch ends.
func TestHorizonWithAReopeningInTheEpochOfTheForgetting(t *testing.T) {
	for _, step := range []int{1, 2, 4} {
		f := newFirstStage(t, daySettings(), wire("a", "CREATED", 0, "region", "seoul"), wire("a", "DELIVERED", 1*hour),
			wire("x", "CREATED", 26*hour), wire("a", "RETURNING", 26*hour))
		f.assign()
		for f.next < f.input.end() {
			f.step(step)
		}
		f.drain()
		f.check(map[string]string{"a": "RETURNING", "x": "CREATED"}, map[string]int64{"live CREATED": 1, "live RETURNING": 1})
		require.Len(t, mustRow(t, f, "a").Timeline, 1)
		require.Equal(t, sec(1*hour), mustRow(t, f, "a").Horizon)
	}
}

// All rows are forgotten, and another replica takes the empty table over.
func TestHorizonSurvivesAnEmptyTable(t *testing.T) {
	f := run(t, daySettings(), wire("a", "DELIVERED", 0), wire("b", "DELIVERED", 25*hour))
	f.produce(fakeRecord{key: "z", value: []byte("no event")}.arriving(60 * hour))
	f.drain()
	f.produce(wire("c", "DELIVERED", 26*hour), wire("c", "CREATED", 60*hour))
	f.drain()
	f.produce(wire("c", "CANCELLED", 60*hour), wire("y", "FAILED", 90*hour), wire("y", "FAILED", 90*hour))
	f.drain()
	require.Equal(t, []string{"y"}, f.rowKeys())
	f.crash()
	f.produce(wire("a", "CREATED", -1), wire("b", "ASSIGNED", 24*hour), wire("c", "CREATED", 59*hour))
	f.drain()
	f.check(map[string]string{"y": "FAILED"}, map[string]int64{"closed FAILED": 1})
	require.Equal(t, []codecs.Reason{codecs.Unreadable, codecs.TooLate, codecs.TooLate, codecs.TooLate}, f.reasons())
}

// Offsets are reset to 0 under an existing table: the position does not go back,
// and rows do not change.
func TestHorizonWithOffsetsResetUnderTheTable(t *testing.T) {
	f := run(t, daySettings(), wire("a", "CREATED", 0, "region", "seoul"), wire("a", "DELIVERED", 1*hour),
		wire("x", "CREATED", 20*hour, "region", "busan"), wire("x", "ASSIGNED", 26*hour, "region", "daegu"))
	before, table := f.progress(), f.deliveries()
	f.committed = 0
	f.assign()
	for f.next < f.input.end() {
		f.step(1)
		require.Equal(t, before.Position, f.progress().Position)
		require.Equal(t, table, f.deliveries())
	}
	require.Equal(t, []codecs.Reason{codecs.TooLate, codecs.TooLate}, f.reasons(), "of the forgotten life")
}

// A replay into a new group gives the same rows, counts, clock and horizon.
func TestHorizonOfAReplayIntoANewGroup(t *testing.T) {
	records := []fakeRecord{
		wire("a", "DELIVERED", 0), wire("x", "CREATED", 26*hour), wire("a", "CREATED", -1), wire("b", "ASSIGNED", 20*hour), wire("x", "CREATED", 27*hour),
	}
	f := newFirstStage(t, daySettings(), records...)
	f.assign()
	for f.next < f.input.end() {
		f.step(1)
	}
	again := run(t, daySettings(), records...)
	require.Equal(t, f.deliveries(), again.deliveries())
	require.Equal(t, processors.StreamOf(f.progress()), processors.StreamOf(again.progress()))
	require.Equal(t, told(f.tallies()), told(again.tallies()))
}

// One event ten minutes in the future moves the clock: what comes in good order
// behind it is not late.
func TestHorizonWithOneEventInTheFuture(t *testing.T) {
	f := run(t, daySettings(), wire("a", "CREATED", 0), wire("b", "DELIVERED", 0), wire("a", "ASSIGNED", 600).arriving(1))
	f.produce(wire("c", "CREATED", 2), wire("b", "RETURNED", 3), wire("a", "PICKED_UP", 4).arriving(4))
	f.drain()
	require.Empty(t, f.reasons())
	f.check(map[string]string{"a": "ASSIGNED", "b": "RETURNED", "c": "CREATED"},
		map[string]int64{"live ASSIGNED": 1, "live CREATED": 1, "closed RETURNED": 1})
}

// A jump of the clock makes 500,000 rows due at once: the writes of an epoch are
// bounded and the counts exact meanwhile, also over a crash.
func TestHorizonOfAHugeClockJump(t *testing.T) {
	n := 500_000
	if testing.Short() {
		n = 20_000
	}
	s := shortSettings()
	s.AbandonAfter = 0
	f := newFirstStage(t, s)
	f.cfg.CachedRows, f.cfg.DeletesPerEpoch = n, 50_000
	f.input.records = make([]fakeRecord, 0, n+2)
	for i := range n {
		f.produce(fakeRecord{
			key: fmt.Sprintf("d%d", i), timestamp: time.Unix(0, sec(0)),
			value: fmt.Appendf(nil, `{"delivery_id":"d%d","status":"DELIVERED","occurred_at":%d}`, i, sec(0)),
		})
	}
	f.assign()
	f.drain()
	require.Equal(t, map[string]int64{"closed DELIVERED": int64(n)}, toldCounts(f))
	f.produce(wire("x", "CREATED", 100))
	f.consume(1)
	for left, crashed := n, false; left > 0; {
		require.True(t, f.cut())
		f.commit()
		require.Equal(t, map[string]int64{"live CREATED": 1}, toldCounts(f), "exact while deletes are owed")
		now := len(f.table) - 2 // without x and the progress row
		require.Less(t, now, left)
		require.LessOrEqual(t, left-now, f.cfg.DeletesPerEpoch)
		if left = now; !crashed {
			crashed = true
			f.crash()
		}
	}
	require.Equal(t, []string{"x"}, f.rowKeys())
}
