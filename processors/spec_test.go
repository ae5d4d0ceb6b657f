package processors_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/processors"
)

// One test per sentence of the part of DESIGN.md that says what an event means.
// Each runs the whole first stage, from bytes to committed rows and tallies. In
// shortSettings a delivery is forgotten 5 s after it was closed and abandoned
// after 20 s.

// check compares the rows, one by one, and the counts with what is wanted.
func (f *firstStage) check(wantStatuses map[string]string, wantCounts map[string]int64) {
	f.t.Helper()
	require.Equal(f.t, wantStatuses, f.statuses())
	require.Equal(f.t, wantCounts, told(f.tallies())[processors.AllScope])
	require.Equal(f.t, f.recount(), told(f.tallies()))
}

// Time.

func TestSpecClockIsTheGreatestEventTimeNotRefused(t *testing.T) {
	f := run(t, shortSettings(), wire("a", "CREATED", 5), wire("b", "CREATED", 3), wire("c", "CREATED", 99).arriving(-1e5))
	require.Equal(t, sec(5), f.progress().Clock)
	require.Equal(t, []codecs.Reason{codecs.Future}, f.reasons())
}

func TestSpecNoWallClockDecidesAnything(t *testing.T) {
	f := run(t, shortSettings(), wire("a", "CREATED", 1), wire("b", "DELIVERED", 7))
	f.now = f.now.Add(1000 * time.Hour)
	f.drain()
	f.crash()
	f.drain()
	f.check(map[string]string{"a": "CREATED", "b": "DELIVERED"}, map[string]int64{"live CREATED": 1, "closed DELIVERED": 1})
}

func TestSpecASilentInputExpiresNothing(t *testing.T) {
	f := run(t, shortSettings(), wire("a", "CREATED", 1))
	for range 3 {
		f.step(0)
	}
	f.check(map[string]string{"a": "CREATED"}, map[string]int64{"live CREATED": 1})
}

// Order.

func TestSpecTheRowIsTheMaximumWhateverTheArrival(t *testing.T) {
	records := []fakeRecord{wire("a", "CREATED", 1), wire("a", "ASSIGNED", 2), wire("a", "PICKED_UP", 3)}
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}, {2, 2, 0, 0, 1, 1, 2}} {
		f := newFirstStage(t, eternalSettings())
		for _, i := range order {
			f.produce(records[i])
		}
		f.assign()
		f.drain()
		f.check(map[string]string{"a": "PICKED_UP"}, map[string]int64{"live PICKED_UP": 1})
		require.Len(t, mustRow(t, f, "a").Timeline, 3)
	}
}

func TestSpecRankDecidesTies(t *testing.T) {
	f := run(t, eternalSettings(), wire("a", "PICKED_UP", 1), wire("a", "ASSIGNED", 1), wire("a", "CREATED", 1))
	f.check(map[string]string{"a": "PICKED_UP"}, map[string]int64{"live PICKED_UP": 1})
}

func TestSpecTerminalSkewLetsATerminalStatusWin(t *testing.T) {
	s := eternalSettings()
	s.TerminalSkew = 2 * time.Second
	f := run(t, s, wire("a", "PICKED_UP", 3), wire("a", "DELIVERED", 1.5), wire("b", "PICKED_UP", 3), wire("b", "DELIVERED", 0.5))
	f.check(map[string]string{"a": "DELIVERED", "b": "PICKED_UP"}, map[string]int64{"live PICKED_UP": 1, "closed DELIVERED": 1})
	require.Equal(t, sec(1.5), f.deliveries()["a"].ClosedAt, "the skew orders; it does not move times")
}

func TestSpecEqualKeyIsADuplicate(t *testing.T) {
	f := run(t, eternalSettings(), wire("a", "CREATED", 1), wire("a", "CREATED", 1))
	require.Len(t, f.log, 2, "nothing is written but the row and the progress row")
	f.log = nil
	f.produce(wire("a", "CREATED", 1))
	f.drain()
	require.Len(t, f.log, 1)
}

func TestSpecSequenceOrderRefusesAnEventWithoutOne(t *testing.T) {
	s := eternalSettings()
	s.OrderBy = processors.BySequence
	f := run(t, s, wire("a", "CREATED", 1))
	f.check(map[string]string{}, map[string]int64{})
	require.Equal(t, []codecs.Reason{codecs.NoSequence}, f.reasons())
}

// Merge.

func TestSpecUnknownStatusIsCountedAndKeepsItsName(t *testing.T) {
	f := run(t, eternalSettings(), wire("a", "배차지연", 1), wire("b", "ABANDONED", 1))
	f.check(map[string]string{"a": "UNKNOWN", "b": "UNKNOWN"}, map[string]int64{"live UNKNOWN": 2})
	require.Equal(t, "배차지연", f.deliveries()["a"].RawStatus)
	require.Equal(t, "ABANDONED", f.deliveries()["b"].RawStatus, "no event can say so")
}

func TestSpecRowMovesByMinusOneAndPlusOne(t *testing.T) {
	f := run(t, eternalSettings(), wire("a", "CREATED", 1), wire("b", "CREATED", 1))
	f.produce(wire("a", "PICKED_UP", 2)) // two statuses are skipped
	f.drain()
	f.check(map[string]string{"a": "PICKED_UP", "b": "CREATED"}, map[string]int64{"live CREATED": 1, "live PICKED_UP": 1})
}

// Closing.

func TestSpecTerminalWinnerClosesAtOnce(t *testing.T) {
	f := run(t, shortSettings(), wire("a", "CREATED", 1), wire("a", "DELIVERED", 2))
	f.check(map[string]string{"a": "DELIVERED"}, map[string]int64{"closed DELIVERED": 1})
	d := f.deliveries()["a"]
	require.True(t, d.Closed)
	require.Equal(t, sec(2), d.ClosedAt)
}

func TestSpecClosedMarkerStaysForTheLateness(t *testing.T) {
	f := run(t, shortSettings(), wire("a", "DELIVERED", 2), wire("b", "CREATED", 7))
	f.check(map[string]string{"a": "DELIVERED", "b": "CREATED"}, map[string]int64{"closed DELIVERED": 1, "live CREATED": 1})
	f.produce(wire("b", "CREATED", 7.001))
	f.drain()
	f.check(map[string]string{"b": "CREATED"}, map[string]int64{"live CREATED": 1})
	require.NotContains(t, f.table, "a", "tombstone")
}

func TestSpecALaterWinnerReopens(t *testing.T) {
	f := run(t, shortSettings(), wire("a", "DELIVERED", 2), wire("a", "RETURNING", 3))
	f.check(map[string]string{"a": "RETURNING"}, map[string]int64{"live RETURNING": 1})
}

func TestSpecANewerTerminalReplacesAnOlder(t *testing.T) {
	f := run(t, shortSettings(), wire("a", "DELIVERED", 2), wire("a", "RETURNED", 3))
	f.check(map[string]string{"a": "RETURNED"}, map[string]int64{"closed RETURNED": 1})
}

func TestSpecLiveRowIsAbandonedByTheClock(t *testing.T) {
	f := run(t, shortSettings(), wire("a", "CREATED", 1), wire("b", "CREATED", 21))
	f.check(map[string]string{"a": "CREATED", "b": "CREATED"}, map[string]int64{"live CREATED": 2})
	f.log = nil
	f.produce(wire("b", "CREATED", 21.001))
	f.drain()
	f.check(map[string]string{"a": "ABANDONED", "b": "CREATED"}, map[string]int64{"live CREATED": 1, "closed ABANDONED": 1})
	require.Equal(t, sec(21), f.deliveries()["a"].ClosedAt)
	require.Equal(t, sec(21), f.deliveries()["a"].Since)
	require.Equal(t, "CREATED", f.cfg.Settings.Lifecycle.Name(mustRow(t, f, "a").Winner.Status), "never stored as a winner")
	require.Equal(t, codecs.Closing{Status: f.cfg.Settings.Lifecycle.Abandoned(), ClosedAt: sec(21)}, mustRow(t, f, "a").Summarized)
}

func TestSpecAnEventThatRaisesTheTimeReopensTheAbandoned(t *testing.T) {
	f := run(t, shortSettings(), wire("a", "CREATED", 1), wire("b", "CREATED", 22))
	require.Equal(t, "ABANDONED", f.statuses()["a"])
	f.produce(wire("a", "CREATED", 1)) // a duplicate raises nothing
	f.drain()
	require.Equal(t, "ABANDONED", f.statuses()["a"])
	f.produce(wire("a", "CREATED", 3))
	f.drain()
	f.check(map[string]string{"a": "CREATED", "b": "CREATED"}, map[string]int64{"live CREATED": 2})
}

func TestSpecAStaleEventReopensTheAbandonedToo(t *testing.T) {
	s := shortSettings()
	s.OrderBy = processors.BySequence
	f := newFirstStage(t, s, sequenced(wire("a", "PICKED_UP", 1), 5), sequenced(wire("b", "CREATED", 22), 1))
	f.assign()
	f.drain()
	require.Equal(t, "ABANDONED", f.statuses()["a"])
	f.produce(sequenced(wire("a", "ASSIGNED", 4), 2)) // smaller by sequence, later by time
	f.drain()
	f.check(map[string]string{"a": "PICKED_UP", "b": "CREATED"}, map[string]int64{"live CREATED": 1, "live PICKED_UP": 1})
}

func TestSpecAbandonAfterZeroIsNever(t *testing.T) {
	s := shortSettings()
	s.AbandonAfter = 0
	f := run(t, s, wire("a", "CREATED", 1), wire("b", "CREATED", 1e6))
	f.check(map[string]string{"a": "CREATED", "b": "CREATED"}, map[string]int64{"live CREATED": 2})
}

// Forgetting.

func TestSpecAnAbandonedRowIsForgottenInTheEnd(t *testing.T) {
	f := run(t, shortSettings(), wire("a", "CREATED", 1), wire("b", "CREATED", 26.001))
	f.check(map[string]string{"b": "CREATED"}, map[string]int64{"live CREATED": 1})
	require.Equal(t, sec(1), f.progress().Horizon)
}

func TestSpecHorizonIsTheGreatestOrderTimeForgotten(t *testing.T) {
	s := shortSettings()
	s.TerminalSkew = 2 * time.Second
	f := run(t, s, wire("a", "DELIVERED", 2), wire("b", "DELIVERED", 1), wire("x", "CREATED", 9))
	require.Equal(t, sec(4), f.progress().Horizon, "order time: the skew is in it")
}

func TestSpecNothingResurrects(t *testing.T) {
	f := run(t, shortSettings(), wire("a", "CREATED", 1), wire("a", "DELIVERED", 2), wire("x", "CREATED", 9))
	f.produce(wire("a", "CREATED", 1), wire("a", "DELIVERED", 2), wire("a", "ASSIGNED", 1.5))
	f.drain()
	f.check(map[string]string{"x": "CREATED"}, map[string]int64{"live CREATED": 1})
	require.Equal(t, []codecs.Reason{codecs.TooLate, codecs.TooLate, codecs.TooLate}, f.reasons())
}

func TestSpecAnEventNewerThanTheHorizonStartsANewLife(t *testing.T) {
	f := run(t, shortSettings(), wire("a", "DELIVERED", 2), wire("x", "CREATED", 9), wire("a", "CREATED", 2.001))
	f.check(map[string]string{"a": "CREATED", "x": "CREATED"}, map[string]int64{"live CREATED": 2})
	f.produce(wire("a", "DELIVERED", 2)) // belongs to the old life
	f.drain()
	require.Equal(t, []codecs.Reason{codecs.TooLate}, f.reasons())
	require.Equal(t, "CREATED", f.statuses()["a"])
}

func TestSpecAKnownDeliveryTakesEventsBelowTheHorizon(t *testing.T) {
	f := run(t, shortSettings(), wire("a", "ASSIGNED", 1), wire("b", "DELIVERED", 2), wire("x", "CREATED", 9))
	require.Equal(t, sec(2), f.progress().Horizon)
	f.produce(wire("a", "CREATED", 0.5), wire("a", "PICKED_UP", 1.5))
	f.drain()
	require.Empty(t, f.reasons())
	require.Equal(t, "PICKED_UP", f.statuses()["a"])
}

func TestSpecNothingIsForgottenDuringAFirstLoad(t *testing.T) {
	// A snapshot in random order: all records arrive within the lateness.
	f := run(t, shortSettings(),
		wire("a", "DELIVERED", -1000).arriving(0), wire("b", "CREATED", 0).arriving(1),
		wire("a", "CREATED", -1010).arriving(2), wire("c", "CREATED", -5).arriving(4.9))
	f.check(map[string]string{"a": "DELIVERED", "b": "CREATED", "c": "CREATED"}, map[string]int64{"closed DELIVERED": 1, "live CREATED": 2})
	require.Empty(t, f.reasons())
	// The next record shows that it is over; any record does.
	f.produce(fakeRecord{key: "z", value: nil}.arriving(5))
	f.drain()
	f.check(map[string]string{"b": "CREATED", "c": "CREATED"}, map[string]int64{"live CREATED": 2})
	require.Equal(t, sec(-1000), f.progress().Horizon)
}

func TestSpecExpiryComesBeforeTheEventThatCausesIt(t *testing.T) {
	// The event of a itself moves the clock: its old life is forgotten first.
	f := run(t, shortSettings(), wire("a", "DELIVERED", 1, "region", "seoul"), wire("a", "CREATED", 7))
	f.check(map[string]string{"a": "CREATED"}, map[string]int64{"live CREATED": 1})
	row := mustRow(t, f, "a")
	require.Equal(t, sec(1), row.Horizon)
	require.Len(t, row.Timeline, 1, "another life")
	require.Empty(t, row.Attributes[codecs.Region].Value)
}

func TestSpecTheEventsOwnRowIsCheckedAgain(t *testing.T) {
	f := run(t, shortSettings(), wire("x", "CREATED", 0), wire("x", "CREATED", 10),
		wire("a", "DELIVERED", 4), // closed and past its lateness already
		wire("b", "CREATED", 3))   // so b, of order time 3, is late now
	f.check(map[string]string{"x": "CREATED"}, map[string]int64{"live CREATED": 1})
	require.Equal(t, sec(4), f.progress().Horizon)
	require.Equal(t, []codecs.Reason{codecs.TooLate}, f.reasons())
}

// Refused.

func TestSpecRefusals(t *testing.T) {
	long := make([]byte, 257)
	for i := range long {
		long[i] = 'x'
	}
	tests := []struct {
		name   string
		record fakeRecord
		want   codecs.Reason
	}{
		{"not readable", fakeRecord{key: "a", value: []byte("{")}, codecs.Unreadable},
		{"wrong type", fakeRecord{key: "a", value: []byte(`{"delivery_id":7,"status":"CREATED","occurred_at":"2026-11-30T10:00:00Z"}`)}, codecs.WrongType},
		{"no status", fakeRecord{key: "a", value: []byte(`{"delivery_id":"a","occurred_at":"2026-11-30T10:00:00Z"}`)}, codecs.MissingField},
		{"bad ID", wire("a\u0001", "CREATED", 0), codecs.InvalidID},
		{"key is not the ID", fakeRecord{key: "b", value: wire("a", "CREATED", 0).value}, codecs.KeyMismatch},
		{"attribute too long", wire("a", "CREATED", 0, "region", string(long)), codecs.AttributeTooLong},
		{"before 2015", wire("a", "CREATED", -1e9), codecs.InvalidTime},
		{"later than the record", wire("a", "CREATED", 1e5).arriving(0), codecs.Future},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.record.timestamp.IsZero() {
				tt.record = tt.record.arriving(0)
			}
			f := run(t, shortSettings(), tt.record, wire("ok", "CREATED", 0))
			f.check(map[string]string{"ok": "CREATED"}, map[string]int64{"live CREATED": 1})
			require.Equal(t, []codecs.Reason{tt.want}, f.reasons())
			require.Equal(t, int64(2), f.progress().Next, "offsets move on")
			require.Equal(t, string(tt.record.value), string(f.letters()[0].Value))
		})
	}
}

func TestSpecAnotherPartitionThanTheKeys(t *testing.T) {
	// The test vectors of Kafka's own murmur2: -790332482, -973932308, 479470107.
	f := newFirstStage(t, shortSettings(), wire("foobar", "CREATED", 1), wire("21", "CREATED", 1), wire("abc", "CREATED", 1))
	f.partitions = 2
	f.assign()
	f.drain()
	f.check(map[string]string{"foobar": "CREATED", "21": "CREATED"}, map[string]int64{"live CREATED": 2})
	require.Equal(t, []codecs.Reason{codecs.WrongPartition}, f.reasons())
	require.Equal(t, "abc", f.letters()[0].Key)
}

func TestSpecTheRawKeyDecidesThePartition(t *testing.T) {
	f := newFirstStage(t, shortSettings())
	for _, id := range []string{"a", "b", "c", "d"} {
		rec := wire(id, "CREATED", 1)
		rec.key = `"` + id + `"` // as the JSON converter writes it
		f.produce(rec)
	}
	f.partitions = 2
	f.assign()
	f.drain()
	require.Equal(t, len(f.deliveries()), 4-len(f.reasons()))
	for id := range f.deliveries() {
		require.Len(t, id, 1, "rows have the plain ID")
	}
}

func TestSpecANullValueIsIgnored(t *testing.T) {
	f := run(t, shortSettings(), wire("a", "CREATED", 1), fakeRecord{key: "a"}.arriving(2))
	f.check(map[string]string{"a": "CREATED"}, map[string]int64{"live CREATED": 1})
	require.Empty(t, f.letters())
	require.Equal(t, sec(2), f.progress().LastRecord, "it moves the record times")
}

func TestSpecMaxFutureIsMeasuredFromTheRecord(t *testing.T) {
	s := shortSettings()
	s.MaxFuture = 10 * time.Second
	f := run(t, s, wire("a", "CREATED", 11).arriving(1), wire("b", "CREATED", 11.001).arriving(1))
	f.check(map[string]string{"a": "CREATED"}, map[string]int64{"live CREATED": 1})
	require.Equal(t, []codecs.Reason{codecs.Future}, f.reasons())
}

// sequenced gives a record a sequence.
func sequenced(rec fakeRecord, n int) fakeRecord {
	rec.value = append([]byte(`{"sequence":`+string(rune('0'+n))+`,`), rec.value[1:]...)
	return rec
}
