package processors_test

import (
	"fmt"
	"maps"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"deliverystat/codecs"
	"deliverystat/processors"
	"deliverystat/processors/market"
	"deliverystat/processors/processorstest"
)

// The laws below are about the decisions alone: no epochs, no broker. A failure
// prints its records, and how to run it again:
//
//	go test ./processors -run NAME -rapid.seed=N

// settingsOf are rules as the processors know them.
func settingsOf(r market.Rules) *processors.Settings {
	s := &processors.Settings{
		Lifecycle: r.Lifecycle, OrderBy: processors.ByEventTime, Lateness: r.Lateness, AbandonAfter: r.AbandonAfter,
		MaxFuture: r.MaxFuture, TerminalSkew: r.TerminalSkew, Dimensions: r.Dimensions,
	}
	if r.BySequence {
		s.OrderBy = processors.BySequence
	}
	return s
}

// partitionState is all that one partition says after some records.
type partitionState struct {
	Rows   map[string]codecs.Row
	Counts map[string]map[string]int64 // by scope and status; closed ones have their terminal status
	Stream processors.Stream
}

// reader takes records through the decisions of one partition.
type reader struct {
	*processors.Replay
	settings *processors.Settings
	decoder  *codecs.Decoder
}

func newReader(s *processors.Settings) *reader {
	d, err := codecs.NewDecoder(codecs.FormatAuto, s.Lifecycle)
	if err != nil {
		panic(err)
	}
	return &reader{processors.NewReplay(s), s, d}
}

func (r *reader) read(records ...processorstest.Record) []processors.Verdict {
	var verdicts []processors.Verdict
	for _, rec := range records {
		var d codecs.Decoded
		record := codecs.Record{Key: rec.Key, Value: rec.Value, Timestamp: rec.Timestamp.UnixNano()}
		r.decoder.Decode(&record, &d)
		verdicts = append(verdicts, r.Apply(&record, &d, false))
	}
	return verdicts
}

func (r *reader) state() partitionState {
	s := partitionState{map[string]codecs.Row{}, map[string]map[string]int64{}, r.Stream()}
	for id, row := range r.Rows() {
		s.Rows[id] = *row
	}
	for _, scope := range r.Counts() {
		for _, c := range scope.Counts {
			if s.Counts[scope.Scope] == nil {
				s.Counts[scope.Scope] = map[string]int64{}
			}
			s.Counts[scope.Scope][c.Status] = c.Live + c.Closed
		}
	}
	return s
}

// contributions are what the rows of s put into which count, one each per
// scope.
func (s *partitionState) contributions(settings *processors.Settings) map[string]map[string]string {
	all := map[string]map[string]string{}
	for id, row := range s.Rows {
		name := settings.Lifecycle.Name(settings.Standing(&row, s.Stream).Status)
		all[id] = map[string]string{"": name}
		for _, d := range settings.Dimensions {
			all[id][fmt.Sprintf("%s=%s", d, row.Attributes[d].Value)] = name
		}
	}
	return all
}

func requireEqualStates(t *rapid.T, want, got partitionState, records []processorstest.Record) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("(-want +got):\n%s\n%s", diff, processorstest.Describe(records))
	}
}

// TestLawIdempotence: delivering any suffix again, as an at-least-once log does,
// changes nothing: no row, no count, neither clock nor horizon.
func TestLawIdempotence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newReader(settingsOf(processorstest.Rules().Draw(t, "rules")))
		records := processorstest.Records(40).Draw(t, "records")
		r.read(records...)
		want := r.state()
		from := rapid.IntRange(0, len(records)).Draw(t, "from")
		for _, v := range r.read(records[from:]...) {
			if v.Result == processors.Applied {
				t.Fatalf("an event was applied again, from record %d on\n%s", from, processorstest.Describe(records))
			}
		}
		requireEqualStates(t, want, r.state(), records)
	})
}

// TestLawLatestWinsInAnyOrder: as long as nothing may be forgotten, the order in
// which records arrive decides nothing, not even about closings and abandonment:
// an initial snapshot may come as it likes.
func TestLawLatestWinsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		settings := settingsOf(processorstest.Rules().Draw(t, "rules"))
		records := processorstest.Records(30).Draw(t, "records")
		now := processorstest.Start.Add(time.Hour)
		for i := range records { // a snapshot: read within less than the lateness
			records[i].Timestamp = now
		}
		want, got := newReader(settings), newReader(settings)
		want.read(records...)
		got.read(rapid.Permutation(records).Draw(t, "permuted")...)
		requireEqualStates(t, want.state(), got.state(), records)
	})
}

// TestLawRetractionBalance: with each record, every delivery takes back exactly
// what it had put into the counts and puts in what it stands for now. A first
// event only adds, forgetting only takes back, and no count is ever negative.
func TestLawRetractionBalance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		settings := settingsOf(processorstest.Rules().Draw(t, "rules"))
		records := processorstest.Records(40).Draw(t, "records")
		r := newReader(settings)
		before := r.state()
		for i, rec := range records {
			r.read(rec)
			after := r.state()
			want := map[string]map[string]int64{}
			add := func(scope, status string, n int64) {
				if want[scope] == nil {
					want[scope] = map[string]int64{}
				}
				want[scope][status] += n
			}
			for scope, counts := range before.Counts {
				for status, n := range counts {
					add(scope, status, n)
				}
			}
			for _, scopes := range before.contributions(settings) {
				for scope, status := range scopes {
					add(scope, status, -1)
				}
			}
			for _, scopes := range after.contributions(settings) {
				for scope, status := range scopes {
					add(scope, status, +1)
				}
			}
			ignoreZeros := cmpopts.IgnoreMapEntries(func(_ string, n int64) bool { return n == 0 })
			ignoreEmpty := cmpopts.IgnoreMapEntries(func(_ string, counts map[string]int64) bool {
				for _, n := range counts {
					if n != 0 {
						return false
					}
				}
				return true
			})
			if diff := cmp.Diff(want, after.Counts, ignoreZeros, ignoreEmpty); diff != "" {
				t.Fatalf("counts after record %d (-want +got):\n%s\n%s", i, diff, processorstest.Describe(records))
			}
			for scope, counts := range after.Counts {
				for status, n := range counts {
					if n < 0 {
						t.Fatalf("%d deliveries in %s of %q after record %d\n%s", n, status, scope, i, processorstest.Describe(records))
					}
				}
			}
			before = after
		}
	})
}

// TestLawRowsNeverGoBack: what a reader sees of a delivery never gets older
// until it is forgotten, and what comes after that is newer than all before.
func TestLawRowsNeverGoBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := processorstest.Rules().Draw(t, "rules")
		settings := settingsOf(rules)
		records := processorstest.Records(60).Draw(t, "records")
		r := newReader(settings)
		newest := map[string]codecs.Row{}
		lastHorizon := int64(codecs.None)
		for i, rec := range records {
			r.read(rec)
			if r.Stream().Horizon < lastHorizon {
				t.Fatalf("the horizon went back at record %d\n%s", i, processorstest.Describe(records))
			}
			lastHorizon = r.Stream().Horizon
			for id, row := range r.Rows() {
				last, seen := newest[id]
				newest[id] = *row
				if rules.BySequence && last.Horizon != row.Horizon {
					continue // sequences of another life say nothing about this one
				}
				if seen && settings.Compare(&row.Winner, &last.Winner) < 0 {
					t.Fatalf("delivery %s went back at record %d\n%s", id, i, processorstest.Describe(records))
				}
			}
		}
	})
}

// TestLawPartitionsDoNotMatter: where nothing depends on the clock, the number
// of partitions that the input is spread over changes no total.
func TestLawPartitionsDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := processorstest.Rules().Draw(t, "rules")
		rules.Lateness, rules.AbandonAfter = 24*time.Hour, 0
		settings := settingsOf(rules)
		records := processorstest.Records(40).Draw(t, "records")
		n := rapid.Int32Range(2, 5).Draw(t, "partitions")
		one := newReader(settings)
		one.read(records...)
		want := one.state()
		got := partitionState{Rows: map[string]codecs.Row{}, Counts: map[string]map[string]int64{}, Stream: want.Stream}
		many := make([]*reader, n)
		for i := range many {
			many[i] = newReader(settings)
		}
		for _, rec := range records {
			many[processorstest.Partition([]byte(rec.Key), n)].read(rec)
		}
		for _, r := range many {
			s := r.state()
			maps.Copy(got.Rows, s.Rows)
			for scope, counts := range s.Counts {
				if got.Counts[scope] == nil {
					got.Counts[scope] = map[string]int64{}
				}
				for status, count := range counts {
					got.Counts[scope][status] += count
				}
			}
		}
		requireEqualStates(t, want, got, records)
	})
}

// FuzzObserve: for any multiset of events of one delivery of which none is late,
// the row is the same in whatever order they are observed, as is where it stands
// at any clock.
func FuzzObserve(f *testing.F) { f.Fuzz(rapid.MakeFuzz(observeCommutes)) }

// TestLawObserveCommutes is what FuzzObserve fuzzes, on random inputs.
func TestLawObserveCommutes(t *testing.T) { rapid.Check(t, observeCommutes) }

func observeCommutes(t *rapid.T) {
	settings := settingsOf(processorstest.Rules().Draw(t, "rules"))
	at := processors.NewStream()
	at.Horizon = rapid.OneOf(rapid.Just(int64(codecs.None)), rapid.Int64Range(sec(-20), sec(-5))).Draw(t, "horizon")
	text := rapid.SampledFrom([]string{"", "a", "b"})
	statuses := rapid.SampledFrom([]codecs.Status{codecs.Unknown, status("CREATED"), status("ASSIGNED"), status("DELIVERED"), status("FAILED")})
	events := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) *codecs.Event {
		e := &codecs.Event{
			DeliveryID: "D",
			Status:     statuses.Draw(t, "status"),
			OccurredAt: sec(float64(rapid.IntRange(0, 2).Draw(t, "at"))),
			Sequence:   rapid.Int64Range(0, 1).Draw(t, "sequence"),
			EventID:    rapid.SampledFrom([]string{"", "", "a"}).Draw(t, "event"),
		}
		e.Sequenced = e.Sequence > 0
		for _, a := range []codecs.Attribute{codecs.Region, codecs.OrderID} {
			e.Attributes[a] = text.Draw(t, "attribute")
		}
		e.Hash = settings.Lifecycle.HashEvent(e)
		return e
	}), rapid.SampledFrom([]int{1, 2, 6, 10}).Draw(t, "least events"), 12).Draw(t, "events")

	observe := func(events []*codecs.Event) *codecs.Row {
		var row *codecs.Row
		for _, e := range events {
			tr := settings.Observe(row, e, at)
			require.NotEqual(t, processors.Late, tr.Result)
			row = tr.Row
		}
		return row
	}
	want := observe(events)
	got := observe(rapid.Permutation(append(events, events[:len(events)/2]...)).Draw(t, "permuted"))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("(-in one order +in another):\n%s", diff)
	}
	at.FirstRecord, at.LastRecord = 0, math.MaxInt64
	for at.Clock = sec(0); at.Clock < sec(70); at.Clock += int64(3 * time.Second) {
		require.Equal(t, settings.Standing(want, at), settings.Standing(got, at))
	}
	require.Equal(t, processors.Since(want), processors.Since(got))
}
