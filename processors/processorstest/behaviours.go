package processorstest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// emptyInput: a service on an empty topic answers zeros, not silence.
func emptyInput(t *testing.T, s *suite) { s.checkEnd(t) }

// latestWins: the newest event by order key decides, however it arrived; Σ
// counts is the number of deliveries.
func latestWins(t *testing.T, s *suite) {
	s.Produce(t, Market(t, 1, 3_000))
	s.checkEnd(t)
	r, ok := s.Counts(t, 0, "")
	require.True(t, ok)
	require.Equal(t, 500, total(r), "nothing is forgotten, so that every delivery is live or closed")
}

// idempotence: what is delivered again changes nothing.
func idempotence(t *testing.T, s *suite) {
	records := Market(t, 2, 2_000)
	s.Produce(t, records)
	s.checkEnd(t)
	before, ok := s.Counts(t, 0, "")
	require.True(t, ok)
	s.Produce(t, records[700:])
	s.checkEnd(t)
	after, ok := s.Counts(t, 0, "")
	require.True(t, ok)
	require.Equal(t, before.Live, after.Live)
	require.Equal(t, before.Closed, after.Closed)
}

// exactPositions: each answer given while events flow is that of the model at
// the answer's own position.
func exactPositions(t *testing.T, s *suite) {
	var readings []Reading
	s.batches(t, 3, 3_000, 30, func(batch []Record) {
		s.Produce(t, batch)
		readings = append(readings, s.read(t)...)
	})
	s.checkEnd(t)
	s.checkReadings(t, readings)
}

// read asks all replicas once; replicas may decline.
func (s *suite) read(t testing.TB) []Reading {
	t.Helper()
	var readings []Reading
	for replica := range s.Replicas() {
		if r, ok := s.Counts(t, replica, ""); ok {
			readings = append(readings, r)
		}
	}
	return readings
}

func (s *suite) checkReadings(t testing.TB, readings []Reading) {
	t.Helper()
	w := s.truth(t)
	positions := map[string]bool{}
	for _, r := range readings {
		s.checkReading(t, w, 0, "", r)
		positions[fmt.Sprint(r.Next)] = true
	}
	t.Logf("%d answers at %d positions", len(readings), len(positions))
}

// forgotten: a late event of a forgotten delivery does not bring it back.
func forgotten(t *testing.T, s *suite) {
	records := Market(t, 4, 2_000)
	s.Produce(t, records)
	s.checkEnd(t)
	before, ok := s.Counts(t, 0, "")
	require.True(t, ok)
	require.Less(t, total(before), 333, "most deliveries are forgotten")
	s.Produce(t, records[:500]) // with timestamps of long ago
	s.checkEnd(t)
	after, ok := s.Counts(t, 0, "")
	require.True(t, ok)
	require.Equal(t, before.Live, after.Live)
	require.Equal(t, before.Closed, after.Closed)
}

// crashes: a replica that is killed under load and comes back, on its disk or on
// an empty one, leaves no trace.
func crashes(wipe bool) func(*testing.T, *suite) {
	return func(t *testing.T, s *suite) {
		var readings []Reading
		batch := 0
		s.batches(t, 5, 3_000, 9, func(records []Record) {
			s.Produce(t, records)
			if batch++; batch%3 == 0 {
				s.Crash(t, batch/3%s.Replicas(), wipe)
			}
			readings = append(readings, s.read(t)...)
		})
		s.checkEnd(t)
		s.checkReadings(t, readings)
	}
}

// rebalances: partitions that change hands keep their counts, also those that
// stay idle afterwards.
func rebalances(t *testing.T, s *suite) {
	var readings []Reading
	batch := 0
	s.batches(t, 6, 2_000, 6, func(records []Record) {
		s.Produce(t, records)
		if batch++; batch%2 == 0 {
			s.Rebalance(t)
		}
		readings = append(readings, s.read(t)...)
	})
	s.Rebalance(t)
	s.checkEnd(t)
	s.checkReadings(t, readings)
}

// brokerRestarts: a broker that goes away under load is waited for.
func brokerRestarts(t *testing.T, s *suite) {
	s.batches(t, 7, 2_000, 4, func(records []Record) {
		s.Produce(t, records)
		s.RestartBroker(t)
	})
	s.checkEnd(t)
}

func total(r Reading) int {
	n := 0
	for _, c := range r.Live {
		n += c
	}
	for _, c := range r.Closed {
		n += c
	}
	return n
}
