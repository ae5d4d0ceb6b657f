package processorstest

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/processors/market"
)

// Features says which faults a harness can make. A behaviour that needs one the
// harness has not is skipped.
type Features struct {
	Crash         bool // kill a replica without warning and start it again
	Rebalance     bool // make partitions change their owners
	BrokerRestart bool // stop the broker and start it again with its data
}

// Reading is the answer of a replica about one scope.
type Reading struct {
	Next   []int64 // the next input offset per partition that the answer reflects; -1: nothing known
	Live   map[string]int
	Closed map[string]int
}

// Harness is a running service with an empty input of its own. Its methods end
// the test on errors of their own doing.
type Harness interface {
	Features() Features
	Partitions() int
	Replicas() int

	// Produce appends records to the input, each where its key belongs by
	// [Partition], and returns once all are acknowledged.
	Produce(t testing.TB, records []Record)
	// Log reads the whole input, by partition.
	Log(t testing.TB) [][]LogRecord
	// Settle waits until every replica reflects all of the input.
	Settle(t testing.TB)

	// Counts asks a replica; scope is "" or like "region=seoul". ok is false
	// if the replica declines to answer.
	Counts(t testing.TB, replica int, scope string) (r Reading, ok bool)
	// Delivery asks a replica, which has answered before; found is false if
	// the delivery is neither live nor closed within the window.
	Delivery(t testing.TB, replica int, id string) (d codecs.Delivery, found bool)
	// DeadLetters counts the dead letters by reason, those of committed
	// transactions only.
	DeadLetters(t testing.TB) map[codecs.Reason]int

	// Crash kills a replica and starts it again, with an empty disk if wipe.
	// It need not wait until the replica answers.
	Crash(t testing.TB, replica int, wipe bool)
	Rebalance(t testing.TB)
	RestartBroker(t testing.TB)
}

// Launch starts a service with an empty input under rules, and has it stopped
// when t ends.
type Launch func(t *testing.T, rules market.Rules) Harness

// Run checks the behaviours that the service promises wherever it runs.
func Run(t *testing.T, launch Launch) {
	lasting := market.DefaultRules()
	lasting.Dimensions = []codecs.Attribute{codecs.Region}
	fleeting := lasting
	fleeting.Lateness, fleeting.AbandonAfter, fleeting.MaxFuture = 30*time.Second, 90*time.Second, time.Hour

	behaviours := []struct {
		name  string
		needs Features
		rules market.Rules
		check func(t *testing.T, s *suite)
	}{
		{"EmptyInputCountsZero", Features{}, lasting, emptyInput},
		{"LatestWins", Features{}, lasting, latestWins},
		{"Idempotence", Features{}, lasting, idempotence},
		{"EveryAnswerIsExactAtItsPosition", Features{}, fleeting, exactPositions},
		{"ForgottenIsForgotten", Features{}, fleeting, forgotten},
		{"CrashOnTheSameDisk", Features{Crash: true}, fleeting, crashes(false)},
		{"CrashOnAnEmptyDisk", Features{Crash: true}, fleeting, crashes(true)},
		{"Rebalance", Features{Rebalance: true}, fleeting, rebalances},
		{"BrokerRestart", Features{BrokerRestart: true}, fleeting, brokerRestarts},
	}
	for _, b := range behaviours {
		t.Run(b.name, func(t *testing.T) {
			h := launch(t, b.rules)
			if missing := b.needs.without(h.Features()); missing != "" {
				t.Skipf("the harness can not make a %s", missing)
			}
			decoder, err := codecs.NewDecoder(codecs.FormatAuto, b.rules.Lifecycle)
			require.NoError(t, err)
			b.check(t, &suite{Harness: h, rules: b.rules, decoder: decoder})
		})
	}
}

// without names a feature of f that have lacks, or "".
func (f Features) without(have Features) string {
	switch {
	case f.Crash && !have.Crash:
		return "crash"
	case f.Rebalance && !have.Rebalance:
		return "rebalance"
	case f.BrokerRestart && !have.BrokerRestart:
		return "broker restart"
	}
	return ""
}

// suite is a harness with what the behaviours need to judge it.
type suite struct {
	Harness
	rules   market.Rules
	decoder *codecs.Decoder
}

func (s *suite) truth(t testing.TB) *market.World {
	t.Helper()
	return Truth(s.rules, s.decoder, s.Log(t))
}

// checkEnd settles, and compares everything that every replica shows with the
// model.
func (s *suite) checkEnd(t testing.TB) {
	t.Helper()
	s.Settle(t)
	w := s.truth(t)
	rows := s.rows(t)
	for replica := range s.Replicas() {
		for _, scope := range w.Scopes() {
			r, ok := s.Counts(t, replica, scope)
			require.True(t, ok, "replica %d declines to answer at the end of the input", replica)
			s.checkReading(t, w, replica, scope, r)
			require.Equal(t, w.End(), r.Next, "position of replica %d", replica)
		}
		for _, id := range s.sample(t) {
			got, found := s.Delivery(t, replica, id)
			want, exists := rows[id]
			require.Equal(t, exists, found, "delivery %s on replica %d", id, replica)
			if diff := cmp.Diff(want, got); found && diff != "" {
				t.Fatalf("delivery %s on replica %d (-want +got):\n%s", id, replica, diff)
			}
		}
	}
	if diff := cmp.Diff(w.DeadLetters(), s.DeadLetters(t)); diff != "" {
		t.Fatalf("dead letters (-want +got):\n%s", diff)
	}
}

// checkReading compares one answer with the model at its position, and within
// itself.
func (s *suite) checkReading(t testing.TB, w *market.World, replica int, scope string, r Reading) {
	t.Helper()
	live, closed := w.Counts(scope, r.Next)
	if diff := cmp.Diff(Reading{r.Next, live, closed}, r); diff != "" {
		t.Fatalf("counts of %q on replica %d (-want +got):\n%s", scope, replica, diff)
	}
}

// rows are all deliveries at the end of the input, worked out by the naive
// model.
func (s *suite) rows(t testing.TB) map[string]codecs.Delivery {
	t.Helper()
	rows := map[string]codecs.Delivery{}
	for p, records := range s.Log(t) {
		m := market.NewModel(s.rules)
		for _, r := range records {
			misplaced := Partition([]byte(r.Key), int32(s.Partitions())) != int32(p)
			m.Apply(Entry(s.decoder, &r, misplaced))
		}
		maps.Copy(rows, m.Rows())
	}
	return rows
}

// sample is some of the keys in the input, always the same ones.
func (s *suite) sample(t testing.TB) []string {
	t.Helper()
	keys := map[string]bool{}
	for _, records := range s.Log(t) {
		for _, r := range records {
			keys[r.Key] = true
		}
	}
	sorted := slices.Sorted(maps.Keys(keys))
	step := max(1, len(sorted)/40)
	var sample []string
	for i := 0; i < len(sorted); i += step {
		sample = append(sample, sorted[i])
	}
	return sample
}

// batches draws a market of n events and gives it to f in k batches.
func (s *suite) batches(t testing.TB, seed uint64, n, k int, f func(batch []Record)) {
	t.Helper()
	records := Market(t, seed, n)
	for i := range k {
		f(records[i*n/k : (i+1)*n/k])
	}
}

// Market is a market of n events over the last hour with everything in it, of
// one delivery per six events. Record timestamps follow the event times, so
// that short rules make deliveries close, be abandoned and be forgotten.
func Market(t testing.TB, seed uint64, n int) []Record {
	t.Helper()
	m, err := market.New(market.Options{
		Events: n, Deliveries: max(1, n/6), Seed: seed, End: Start.Add(time.Hour), FirstNumber: int(seed) * 100_000,
		Duplicates: 0.1, OutOfOrder: 0.1, Late: 0.02, Malformed: 0.02, UnknownStatus: 0.02,
	})
	require.NoError(t, err)
	records := make([]Record, 0, n)
	at := Start
	for r, ok := m.Next(); ok; r, ok = m.Next() {
		if r.Kind == market.InOrder {
			at = time.Unix(0, max(at.UnixNano(), r.Event.OccurredAt))
		}
		records = append(records, Record{Key: r.Key, Value: r.Value, Timestamp: at})
	}
	require.Len(t, records, n, "records of market %d", seed)
	return records
}
