package processors_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/processors"
)

// audited is a first stage that audits, some deliveries of it, and the second
// stage that reads its tallies.
func audited(t *testing.T) (*firstStage, *secondStage) {
	s := eternalSettings()
	s.Dimensions = []codecs.Attribute{codecs.Region}
	f := newFirstStage(t, s, wire("a", "CREATED", 1, "region", "seoul"), wire("b", "CREATED", 2, "region", "busan"),
		wire("c", "DELIVERED", 3, "region", "seoul"), wire("d", "ASSIGNED", 4))
	f.cfg.AuditEvery = time.Hour
	second := newSecondStage(t, 1)
	f.assign()
	second.assign()
	f.drain()
	second.read(f)
	return f, second
}

// read feeds the tallies that the first stage has emitted since, and commits.
func (s *secondStage) read(f *firstStage) {
	emitted := f.to(f.cfg.Topics.Tallies)
	for _, rec := range emitted[len(s.input.records):] {
		s.feedRaw(rec.Key, rec.Value)
	}
	s.drain()
}

func TestAuditOfRightCounts(t *testing.T) {
	f, second := audited(t)
	before := second.counts()
	require.Equal(t, int64(codecs.None), second.snapshot().Audited, "none has ended")

	f.runAudit() // idle: nothing is consumed
	second.read(f)

	require.Equal(t, f.now.UnixNano(), second.snapshot().Audited)
	require.Empty(t, second.snapshot().Drift)
	require.Equal(t, before, second.counts())
}

// The next audit is as far off as it is to be.
func TestAuditsAreAsFrequentAsTheyAreToBe(t *testing.T) {
	for name, tt := range map[string]struct {
		every, pass time.Duration
		want        int // tallies of audits that began
	}{
		"never":                    {0, 1000 * time.Hour, 0},
		"the first, soon":          {time.Hour, time.Minute, 1},
		"not before that":          {time.Hour, time.Minute - 1, 0},
		"sooner, if all are":       {time.Second, time.Second, 1},
		"the last but one of many": {time.Second, time.Second - 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFirstStage(t, eternalSettings(), wire("a", "CREATED", 1))
			f.cfg.AuditEvery, f.cfg.FullTallyEvery = tt.every, 10_000*time.Hour
			f.assign()
			f.drain()

			f.now = f.now.Add(tt.pass)
			f.drain()

			begun := 0
			for _, tally := range f.tallies() {
				if tally.Check {
					begun++
				}
			}
			require.Equal(t, tt.want, begun)
		})
	}
}

// Running counts that are wrong, by whatever fault, are found by the recount of
// the rows. The state is given up, the next one is right, and says what was found.
func TestAuditFindsWrongRunningCounts(t *testing.T) {
	for name, tt := range map[string]struct {
		scope string
		n     int64
		want  map[string]int64
	}{
		"one too many":                 {processors.AllScope, 1, map[string]int64{"CREATED": -1}},
		"three too few":                {processors.AllScope, -3, map[string]int64{"CREATED": 3}},
		"one too many in a dimension":  {"region=seoul", 1, map[string]int64{"CREATED": -1}},
		"a value that nobody has":      {"region=x", 0, nil},
		"negative, in a dimension too": {"region=busan", -2, map[string]int64{"CREATED": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			f, second := audited(t)
			right := second.counts()
			processors.Spoil(f.state, tt.scope, status("CREATED"), tt.n)
			f.now = f.now.Add(2 * time.Minute)
			f.step(0)
			processors.AwaitRecount(f.state)

			if f.cut(); tt.n != 0 {
				require.ErrorContains(t, f.frozen.epoch.Write(nil), "audit of partition 0: recounted rows minus running counts")
				f.crash()
			} else {
				f.commit()
			}
			f.drain()
			second.read(f)

			require.Equal(t, tt.want, second.snapshot().Drift)
			require.Equal(t, f.now.UnixNano(), second.snapshot().Audited)
			require.Equal(t, right, second.counts())
			f.runAudit()
			second.read(f)
			require.Empty(t, second.snapshot().Drift, "the next audit finds nothing")
			require.Equal(t, right, second.counts())
		})
	}
}

// Rows that are forgotten and not yet deleted count nowhere.
func TestAuditWhileDeletesAreOwed(t *testing.T) {
	f := newFirstStage(t, shortSettings(), wire("a", "DELIVERED", 1), wire("b", "DELIVERED", 1), wire("c", "DELIVERED", 1), wire("x", "CREATED", 9))
	f.cfg.AuditEvery, f.cfg.DeletesPerEpoch = time.Hour, 1
	second := newSecondStage(t, 1)
	second.assign()
	f.assign()
	f.step(3)
	f.consume(1)

	f.runAudit()
	second.read(f)

	require.Len(t, f.rowKeys(), 2, "one more is to be deleted")
	require.Equal(t, f.now.UnixNano(), second.snapshot().Audited)
	require.Empty(t, second.snapshot().Drift)
}

// Whatever puts wrong counts into the table of the second stage, an audit finds
// them and mends them, of a partition that is idle too. What it found stays until
// the next one, also over restarts.
func TestAuditFindsAndMendsWrongCountsOfTheTable(t *testing.T) {
	f, second := audited(t)
	right := second.counts()
	wrong := f.tallies()[len(f.tallies())-1]
	wrong.Full, wrong.Scopes = false, []codecs.ScopeCounts{
		{Scope: processors.AllScope, Counts: []codecs.StatusCount{{Status: "CREATED", Live: 7}, {Status: "DELIVERED", Closed: 1}}},
		{Scope: "region=jeju", Counts: []codecs.StatusCount{{Status: "CREATED", Live: 20}}},
	}
	f.emitted = append(f.emitted, f.to(f.cfg.Topics.Tallies)[0]) // so that offsets agree
	second.feed(wrong)
	second.drain()
	require.NotEqual(t, right, second.counts())
	require.Empty(t, second.snapshot().Drift, "not yet")

	f.runAudit()
	second.read(f)

	require.Equal(t, right, second.counts())
	require.Equal(t, map[string]int64{"ASSIGNED": 1, "CREATED": -20}, second.snapshot().Drift)
	second.crash()
	second.drain()
	require.Equal(t, map[string]int64{"ASSIGNED": 1, "CREATED": -20}, second.snapshot().Drift)
	f.runAudit()
	second.read(f)
	require.Empty(t, second.snapshot().Drift)
}

// A full tally that is no audit's mends counts as well, and does not take back what
// an audit found.
func TestEveryFullTallyMends(t *testing.T) {
	f, second := audited(t)
	right := second.counts()
	wrong := f.tallies()[len(f.tallies())-1]
	wrong.Full, wrong.Scopes = false, []codecs.ScopeCounts{{Scope: processors.AllScope}}
	f.emitted = append(f.emitted, f.to(f.cfg.Topics.Tallies)[0])
	second.feed(wrong)
	second.drain()
	want := map[string]int64{"ASSIGNED": 1, "CREATED": 2, "DELIVERED": 1}

	for range 2 { // a takeover, and another one
		f.crash()
		f.drain()
		second.read(f)

		require.Equal(t, right, second.counts())
		require.Equal(t, want, second.snapshot().Drift)
	}
}

// Full tallies that legitimately change something are not taken for a drift.
func TestWhatIsNoDrift(t *testing.T) {
	tally := func(change func(*codecs.Tally)) *codecs.Tally {
		t := &codecs.Tally{
			TopicID: "events-1", Full: true, Position: 5, SettingsHash: 1, Clock: codecs.None, Horizon: codecs.None, Audited: codecs.None,
			Scopes: []codecs.ScopeCounts{{Counts: []codecs.StatusCount{{Status: "CREATED", Live: 1}}}},
		}
		change(t)
		return t
	}
	for name, change := range map[string]func(*codecs.Tally){
		"a later position":     func(t *codecs.Tally) { t.Position = 6 },
		"an earlier position":  func(t *codecs.Tally) { t.Position = 4 },
		"another topic":        func(t *codecs.Tally) { t.TopicID = "events-2" },
		"other settings":       func(t *codecs.Tally) { t.SettingsHash = 2 },
		"not full":             func(t *codecs.Tally) { t.Full = false },
		"the same once more":   func(t *codecs.Tally) { t.Scopes = tally(func(*codecs.Tally) {}).Scopes },
		"statuses in no order": func(t *codecs.Tally) { t.Scopes = append(t.Scopes, codecs.ScopeCounts{Scope: "region=x"}) },
		"after a gap":          func(*codecs.Tally) {},
	} {
		t.Run(name, func(t *testing.T) {
			second := newSecondStage(t, 1)
			second.feed(tally(func(*codecs.Tally) {}))
			if name == "after a gap" {
				second.feedRaw("0", []byte("no tally"))
			}
			second.feed(tally(func(t *codecs.Tally) {
				if name != "statuses in no order" {
					t.Scopes = []codecs.ScopeCounts{{Counts: []codecs.StatusCount{{Status: "CREATED", Live: 2}}}}
				}
				change(t)
			}))
			second.assign()

			second.drain()

			require.Empty(t, second.snapshot().Drift)
		})
	}
}
