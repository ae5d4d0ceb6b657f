package market_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"deliverystat/codecs"
	"deliverystat/processors/market"
	"deliverystat/processors/processorstest"
)

// Failures of the properties below are run again with
//
//	go test ./processors/market -run NAME -rapid.seed=N
//
// where N is in the report, or with -rapid.failfile and the file it names.

func newDecoder(t require.TestingT) *codecs.Decoder {
	d, err := codecs.NewDecoder(codecs.FormatAuto, codecs.BuiltinLifecycle())
	require.NoError(t, err)
	return d
}

// TestFastModelIsTheModel checks the model for long logs against the one that
// can be checked by reading it, after every record.
func TestFastModelIsTheModel(t *testing.T) {
	t.Parallel()
	decoder := newDecoder(t)
	rapid.Check(t, func(t *rapid.T) {
		rules := processorstest.Rules().Draw(t, "rules")
		records := processorstest.Records(60).Draw(t, "records")
		slow, fast := market.NewModel(rules), market.NewFastModel(rules)
		for i, e := range processorstest.Entries(decoder, records) {
			e.AcceptLate = rapid.IntRange(0, 5).Draw(t, "accept late") == 5
			want, got := slow.Apply(e), fast.Apply(e)
			ok := want == got && slow.Clock == fast.Clock && slow.Horizon == fast.Horizon &&
				slow.FirstRecord == fast.FirstRecord && slow.LastRecord == fast.LastRecord
			if !ok {
				t.Fatalf("record %d: want %v at clock %d, horizon %d; got %v at clock %d, horizon %d\n%s", i,
					want, slow.Clock, slow.Horizon, got, fast.Clock, fast.Horizon, processorstest.Describe(records))
			}
			for _, scope := range append(slow.Scopes(), "region=busan") {
				live, closed := slow.Counts(scope)
				gotLive, gotClosed := fast.Counts(scope)
				if diff := cmp.Diff([]map[string]int{live, closed}, []map[string]int{gotLive, gotClosed}); diff != "" {
					t.Fatalf("counts of %q after record %d (-want +got):\n%s\n%s", scope, i, diff, processorstest.Describe(records))
				}
			}
		}
	})
}

// TestWorldRemembersEveryPrefix spreads records over partitions and offsets with
// gaps, and asks for the totals at arbitrary positions afterwards.
func TestWorldRemembersEveryPrefix(t *testing.T) {
	t.Parallel()
	decoder := newDecoder(t)
	rapid.Check(t, func(t *rapid.T) {
		rules := processorstest.Rules().Draw(t, "rules")
		entries := processorstest.Entries(decoder, processorstest.Records(40).Draw(t, "records"))
		w := market.NewWorld(rules, 2)
		type appended struct {
			offset int64
			entry  market.Entry
		}
		var logs [2][]appended
		next := [2]int64{}
		for _, e := range entries {
			p := rapid.IntRange(0, 1).Draw(t, "partition")
			next[p] += int64(rapid.SampledFrom([]int{0, 0, 0, 1, 5}).Draw(t, "gap"))
			w.Append(int32(p), next[p], e)
			logs[p] = append(logs[p], appended{next[p], e})
			next[p]++
		}
		at := []int64{
			rapid.Int64Range(-1, next[0]).Draw(t, "position 0"),
			rapid.Int64Range(-1, next[1]).Draw(t, "position 1"),
		}
		scope := rapid.SampledFrom(append(w.Scopes(), "region=nowhere")).Draw(t, "scope")
		wantLive, wantClosed := market.NewModel(rules).Counts("")
		newest := int64(codecs.None)
		for p, log := range logs {
			m := market.NewModel(rules)
			for _, a := range log {
				if a.offset < at[p] {
					m.Apply(a.entry)
				}
			}
			live, closed := m.Counts(scope)
			for name, n := range live {
				wantLive[name] += n
			}
			for name, n := range closed {
				wantClosed[name] += n
			}
			newest = max(newest, m.Clock)
		}
		live, closed := w.Counts(scope, at)
		require.Equal(t, wantLive, live, "at %v", at)
		require.Equal(t, wantClosed, closed, "at %v", at)
		require.Equal(t, newest, w.EventTime(at))
		results := w.Results()
		require.Equal(t, len(entries), results[market.Applied]+results[market.Duplicate]+results[market.Stale]+
			results[market.Ignored]+results[market.DeadLetter])
	})
}

// TestModelBySentence checks the model itself, against sentences of the design
// that were worked out by hand.
func TestModelBySentence(t *testing.T) {
	t.Parallel()
	l := codecs.BuiltinLifecycle()
	status := func(name string) codecs.Status {
		s, ok := l.Lookup(name)
		require.True(t, ok)
		return s
	}
	second := func(n int) int64 { return processorstest.Start.Add(time.Duration(n) * time.Second).UnixNano() }
	rules := market.Rules{Lifecycle: l, Lateness: 10 * time.Second, AbandonAfter: 60 * time.Second, MaxFuture: time.Minute}
	event := func(name string, at int) *codecs.Event {
		return &codecs.Event{DeliveryID: "d", Status: status(name), OccurredAt: second(at)}
	}
	// read gives events at their own time, long after the first record.
	read := func(rules market.Rules, events ...*codecs.Event) *market.Model {
		m := market.NewModel(rules)
		m.Apply(market.Entry{Timestamp: second(-100)})
		for _, e := range events {
			m.Apply(market.Entry{Timestamp: e.OccurredAt, Event: e})
		}
		return m
	}
	of := func(id string, e *codecs.Event) *codecs.Event {
		e.DeliveryID = id
		return e
	}

	t.Run("the row is the maximum", func(t *testing.T) {
		t.Parallel()
		m := read(rules, event("CREATED", 0), event("PICKED_UP", 2), event("ASSIGNED", 1))
		require.Equal(t, status("PICKED_UP"), m.Rows()["d"].Status)
		require.Equal(t, market.Stale, m.Verdicts[3].Result)
	})
	t.Run("rank decides ties", func(t *testing.T) {
		t.Parallel()
		m := read(rules, event("ASSIGNED", 1), event("CREATED", 1))
		require.Equal(t, status("ASSIGNED"), m.Rows()["d"].Status)
	})
	t.Run("terminal skew lets a completion win", func(t *testing.T) {
		t.Parallel()
		skewed := rules
		skewed.TerminalSkew = 3 * time.Second
		m := read(skewed, event("DELIVERED", 1), event("DELIVERING", 3))
		require.Equal(t, status("DELIVERED"), m.Rows()["d"].Status)
	})
	t.Run("a completion is forgotten after the lateness, to the nanosecond", func(t *testing.T) {
		t.Parallel()
		m := read(rules, event("DELIVERED", 0), of("other", event("CREATED", 10)))
		require.Len(t, m.Rows(), 2)
		require.Equal(t, int64(codecs.None), m.Horizon)
		tick := of("other", event("CREATED", 10))
		tick.OccurredAt++
		m.Apply(market.Entry{Timestamp: tick.OccurredAt, Event: tick})
		require.Len(t, m.Rows(), 1)
		require.Equal(t, second(0), m.Horizon)
		require.Equal(t, market.Verdict{Result: market.DeadLetter, Reason: codecs.TooLate},
			m.Apply(market.Entry{Timestamp: second(11), Event: event("DELIVERED", 0)}))
	})
	t.Run("nothing is forgotten before the records span the lateness", func(t *testing.T) {
		t.Parallel()
		m := market.NewModel(rules)
		for _, e := range []*codecs.Event{event("DELIVERED", 0), of("other", event("CREATED", 60))} {
			m.Apply(market.Entry{Timestamp: second(60), Event: e})
		}
		require.Len(t, m.Rows(), 2)
		m.Apply(market.Entry{Timestamp: second(70)})
		require.Len(t, m.Rows(), 1)
	})
	t.Run("a known delivery is judged by the horizon at its beginning", func(t *testing.T) {
		t.Parallel()
		m := read(rules, event("CREATED", 0), of("other", event("DELIVERED", 5)), of("other still", event("CREATED", 16)))
		require.Equal(t, second(5), m.Horizon)
		require.Equal(t, market.Stale, m.Apply(market.Entry{Timestamp: second(16), Event: event("CREATED", -1)}).Result)
		require.Equal(t, codecs.TooLate, m.Apply(market.Entry{Timestamp: second(16), Event: of("unknown", event("CREATED", 5))}).Reason)
	})
	t.Run("an abandoned delivery is closed at its last event and re-opened by the next", func(t *testing.T) {
		t.Parallel()
		m := read(rules, event("ASSIGNED", 0), of("other", event("CREATED", 61)))
		d := m.Rows()["d"]
		require.Equal(t, l.Abandoned(), d.Status)
		require.True(t, d.Closed)
		require.Equal(t, second(60), d.ClosedAt)
		_, closed := m.Counts("")
		require.Equal(t, 1, closed["ABANDONED"])
		m.Apply(market.Entry{Timestamp: second(61), Event: event("PICKED_UP", 5)})
		require.Equal(t, status("PICKED_UP"), m.Rows()["d"].Status)
		require.False(t, m.Rows()["d"].Closed)
	})
	t.Run("since is the first time of the status unless another came between", func(t *testing.T) {
		t.Parallel()
		m := read(rules, event("ASSIGNED", 1), event("ASSIGNED", 5))
		require.Equal(t, second(1), m.Rows()["d"].Since)
		m.Apply(market.Entry{Timestamp: second(6), Event: event("CREATED", 3)})
		require.Equal(t, second(5), m.Rows()["d"].Since)
	})
	t.Run("each attribute is from the greatest event that carries it", func(t *testing.T) {
		t.Parallel()
		older, newer := event("CREATED", 1), event("ASSIGNED", 2)
		older.Attributes = [codecs.NumAttributes]string{codecs.Region: "seoul", codecs.OrderID: "o"}
		newer.Attributes = [codecs.NumAttributes]string{codecs.Region: "busan"}
		m := read(rules, newer, older)
		require.Equal(t, [codecs.NumAttributes]string{codecs.Region: "busan", codecs.OrderID: "o"}, m.Rows()["d"].Attributes)
	})
	t.Run("times that can not be are refused", func(t *testing.T) {
		t.Parallel()
		m := market.NewModel(rules)
		early := event("CREATED", 0)
		early.OccurredAt = time.Date(2014, 12, 31, 23, 59, 59, 0, time.UTC).UnixNano()
		require.Equal(t, codecs.InvalidTime, m.Apply(market.Entry{Timestamp: second(0), Event: early}).Reason)
		require.Equal(t, codecs.Future, m.Apply(market.Entry{Timestamp: second(0), Event: event("CREATED", 61)}).Reason)
		require.Equal(t, int64(codecs.None), m.Clock)
	})
}
