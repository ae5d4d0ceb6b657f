package market_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/processors/market"
)

var end = time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC)

// all lets a market run to its end.
func all(t *testing.T, o market.Options) ([]market.Record, *market.Market) {
	t.Helper()
	m, err := market.New(o)
	require.NoError(t, err)
	var records []market.Record
	for {
		r, ok := m.Next()
		if !ok {
			return records, m
		}
		records = append(records, r)
	}
}

// busy is a market with everything in it.
func busy(seed uint64) market.Options {
	return market.Options{
		Events: 30_000, Deliveries: 5_000, Seed: seed, End: end,
		Duplicates: 0.1, OutOfOrder: 0.1, Late: 0.02, Malformed: 0.01, UnknownStatus: 0.01,
	}
}

func TestSharesAreExact(t *testing.T) {
	t.Parallel()
	_, m := all(t, busy(1))
	want := market.Summary{
		Events: 30_000, Duplicates: 3_000, OutOfOrder: 3_000, Late: 600, Malformed: 300, UnknownStatus: 300,
	}
	require.Equal(t, want, m.Planned())
	require.Equal(t, want, m.Produced())
}

// TestTraitsAreReal checks each record against those before it: that what is
// said to be in order is the newest event of its delivery, and so on.
func TestTraitsAreReal(t *testing.T) {
	t.Parallel()
	for _, events := range []int{30_000, 6_200, 60_000} { // natural, ended early, repeating
		o := busy(uint64(events))
		o.Events = events
		records, _ := all(t, o)
		rules := market.DefaultRules()
		model := market.NewFastModel(rules)
		seen, completed, deliveries := map[string]bool{}, map[string]bool{}, map[string]bool{}
		for i, r := range records {
			if r.Kind == market.IsMalformed {
				continue
			}
			e := r.Event
			verdict := model.Apply(market.Entry{Timestamp: end.UnixNano(), Event: &e})
			again, after := seen[e.EventID], completed[e.DeliveryID]
			real := false
			switch r.Kind {
			case market.InOrder:
				real = verdict.Result == market.Applied && !again
			case market.IsOutOfOrder:
				real = verdict.Result == market.Stale && !again && !after
			case market.IsLate:
				real = verdict.Result == market.Stale && !again && after
			case market.IsDuplicate:
				real = verdict.Result != market.Applied && again
			case market.IsMalformed:
			}
			within := e.OccurredAt <= end.UnixNano() && e.OccurredAt >= end.Add(-time.Hour).UnixNano()
			if !real || !within {
				t.Fatalf("record %d of %d is of kind %d, but %s (seen before: %v, completed before: %v): %s",
					i, events, r.Kind, verdict.Result, again, after, r.Value)
			}
			seen[e.EventID], deliveries[e.DeliveryID] = true, true
			completed[e.DeliveryID] = completed[e.DeliveryID] || rules.Lifecycle.Terminal(e.Status)
		}
		require.Len(t, deliveries, o.Deliveries)
	}
}

func TestEqualSeedsGiveEqualBytes(t *testing.T) {
	t.Parallel()
	small := func(seed uint64) market.Options {
		o := busy(seed)
		o.Events, o.Deliveries = 3_000, 500
		return o
	}
	a, _ := all(t, small(7))
	b, _ := all(t, small(7))
	require.Equal(t, a, b)
	c, _ := all(t, small(8))
	require.NotEqual(t, a[:100], c[:100])
}

// TestEventsDecodeToThemselves reads every record with the decoder of the
// service: events say what the market meant, malformed records are refused for
// the reason they were made for.
func TestEventsDecodeToThemselves(t *testing.T) {
	t.Parallel()
	decoder, err := codecs.NewDecoder("auto", codecs.BuiltinLifecycle())
	require.NoError(t, err)
	o := busy(3)
	o.Malformed = 0.1
	o.ClockSkew = time.Minute
	records, m := all(t, o)
	reasons := map[codecs.Reason]int{}
	for _, r := range records {
		require.True(t, codecs.ValidID(r.Key))
		var d codecs.Decoded
		decoder.Decode(&codecs.Record{Key: r.Key, Value: r.Value, Timestamp: end.UnixNano()}, &d)
		if r.Kind == market.IsMalformed {
			require.Equal(t, codecs.IsRefused, d.Outcome, "%s", r.Value)
			reasons[d.Reason]++
			continue
		}
		require.Equal(t, codecs.IsEvent, d.Outcome, "%s: %s", r.Value, d.Detail)
		d.Event.Hash = 0
		if r.Event != d.Event {
			t.Fatalf("decoding %s (-meant +read):\n%s", r.Value, cmp.Diff(r.Event, d.Event))
		}
	}
	require.Equal(t, map[codecs.Reason]int{
		codecs.Unreadable: 750, codecs.WrongType: 500, codecs.MissingField: 750,
		codecs.InvalidTime: 500, codecs.AttributeTooLong: 250, codecs.KeyMismatch: 250,
	}, reasons)
	require.Equal(t, 3_000, m.Truth().Malformed)
}

// TestTruthIsTheModel compares the truth, kept along the way, with the naive
// model fed by what the decoder read.
func TestTruthIsTheModel(t *testing.T) {
	t.Parallel()
	rules := market.DefaultRules()
	decoder, err := codecs.NewDecoder("auto", rules.Lifecycle)
	require.NoError(t, err)
	for _, skew := range []time.Duration{0, 10 * time.Minute} {
		o := busy(4)
		o.Events, o.Deliveries, o.ClockSkew = 3_000, 500, skew
		records, m := all(t, o)
		model := market.NewModel(rules)
		for _, r := range records {
			var d codecs.Decoded
			decoder.Decode(&codecs.Record{Key: r.Key, Value: r.Value, Timestamp: end.UnixNano()}, &d)
			entry := market.Entry{Timestamp: end.UnixNano(), Reason: d.Reason}
			if d.Outcome == codecs.IsEvent {
				entry.Event = &d.Event
			}
			model.Apply(entry)
		}
		live, closed := model.Counts("")
		truth := m.Truth()
		require.Equal(t, live, truth.Counts)
		require.Equal(t, closed, truth.Closed)
		require.Equal(t, 3_000, truth.Events)
		require.Equal(t, 30, truth.Malformed)
		require.Equal(t, 500, truth.Live+sum(truth.Closed), "every delivery is live or closed")
		require.Positive(t, truth.Counts["UNKNOWN"])
		require.Positive(t, truth.Live)
		require.Positive(t, truth.Closed["DELIVERED"])
	}
}

func sum(counts map[string]int) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}

func TestTruthIsZeroFilledJSON(t *testing.T) {
	t.Parallel()
	_, m := all(t, market.Options{Events: 1, Deliveries: 1, End: end})
	b, err := json.Marshal(m.Truth())
	require.NoError(t, err)
	require.JSONEq(t, `{"counts":{"UNKNOWN":0,"CREATED":1,"ASSIGNED":0,"PICKUP_REQUESTED":0,"PICKED_UP":0,"DELIVERING":0,"RETURNING":0},
		"live":1,"closed":{"DELIVERED":0,"CANCELLED":0,"RETURNED":0,"FAILED":0,"ABANDONED":0},"events":1,"malformed":0}`, string(b))
}

func TestSharesBeyondReachAreMetAsFarAsPossible(t *testing.T) {
	t.Parallel()
	records, m := all(t, market.Options{
		Events: 1_000, Deliveries: 100, End: end, Late: 1, OutOfOrder: 1, UnknownStatus: 1, Duplicates: 0.2,
	})
	require.Len(t, records, 1_000)
	s := m.Planned()
	require.Equal(t, 200, s.Duplicates)
	require.Positive(t, s.Late)
	require.Positive(t, s.OutOfOrder)
	require.Less(t, s.Late+s.OutOfOrder, 800)
}

func TestOptionsAreRefusedAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := market.New(market.Options{Duplicates: 1.5, Late: -1, ClockSkew: time.Hour, Span: time.Second})
	require.EqualError(t, err, "duplicates 1.5: not a share from 0 to 1\n"+
		"late -1: not a share from 0 to 1\n"+
		"events 0: not from 1 to 2147483647\n"+
		"deliveries 0: not at least 1\n"+
		"end 0001-01-01T00:00:00Z: before 2015\n"+
		"span 1s: not at least 1m\n"+
		"clock-skew 1h0m0s: not from 0 to 250ms, a quarter of the time that is simulated")
	_, err = market.New(market.Options{Events: 10, Deliveries: 10, Duplicates: 0.1, End: end})
	require.EqualError(t, err, "deliveries 10: more than the 9 events that are neither duplicates nor malformed")
}

func TestLiveMarketKeepsItsShapeAndNeverEnds(t *testing.T) {
	t.Parallel()
	rules := market.DefaultRules()
	decoder, err := codecs.NewDecoder("auto", rules.Lifecycle)
	require.NoError(t, err)
	live, err := market.NewLive(market.LiveOptions{
		Seed: 1, Duplicates: 0.02, OutOfOrder: 0.05, Malformed: 0.01, UnknownStatus: 0.01,
	}, rules.Lifecycle)
	require.NoError(t, err)
	model := market.NewFastModel(rules)
	kinds := map[market.Kind]int{}
	now := end
	for range 40_000 { // at 50 a second: over 13 minutes
		now = now.Add(20 * time.Millisecond)
		r := live.Next(now)
		kinds[r.Kind]++
		var d codecs.Decoded
		decoder.Decode(&codecs.Record{Key: r.Key, Value: r.Value, Timestamp: now.UnixNano()}, &d)
		entry := market.Entry{Timestamp: now.UnixNano(), Reason: d.Reason}
		require.Equal(t, r.Kind == market.IsMalformed, d.Outcome != codecs.IsEvent, "%s", r.Value)
		if d.Outcome == codecs.IsEvent {
			require.LessOrEqual(t, d.Event.OccurredAt, now.UnixNano())
			entry.Event = &d.Event
		}
		verdict := model.Apply(entry)
		switch r.Kind {
		case market.InOrder:
			require.Equal(t, market.Applied, verdict.Result, "%s", r.Value)
		case market.IsOutOfOrder:
			require.Equal(t, market.Stale, verdict.Result, "%s", r.Value)
		case market.IsMalformed:
			require.Equal(t, market.DeadLetter, verdict.Result, "%s", r.Value)
		case market.IsDuplicate, market.IsLate:
		}
	}
	require.InDelta(t, 800, kinds[market.IsDuplicate], 120)
	require.InDelta(t, 400, kinds[market.IsMalformed], 80)
	require.Greater(t, kinds[market.IsOutOfOrder], 500)
	counts, closed := model.Counts("")
	for _, status := range []string{"CREATED", "ASSIGNED", "PICKUP_REQUESTED", "PICKED_UP", "DELIVERING"} {
		require.Greater(t, counts[status], 20, "%v", counts)
	}
	require.Greater(t, sum(closed), 4*sum(counts), "deliveries are closed: %v, %v", counts, closed)
}
