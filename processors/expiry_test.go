package processors_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/processors"
)

func TestStanding(t *testing.T) {
	s := shortSettings() // lateness 5 s, abandoned after 20 s
	live := fold(s, event("CREATED", 1), event("ASSIGNED", 2))
	closed := fold(s, event("CREATED", 1), event("DELIVERED", 3))
	abandoned := s.Lifecycle.Abandoned()
	// A winner by sequence whose event time is not the greatest.
	bySequence := shortSettings()
	bySequence.OrderBy = processors.BySequence
	behind := fold(bySequence, event("ASSIGNED", 9, sequence(1)), event("PICKED_UP", 2, sequence(2)))
	type standing = processors.Standing
	tests := []struct {
		name  string
		row   *codecs.Row
		clock float64
		gate  bool
		want  standing
	}{
		{"live", live, 2, true, standing{status("ASSIGNED"), false, codecs.None, sec(22), false}},
		{"live at the last moment", live, 22, true, standing{status("ASSIGNED"), false, codecs.None, sec(22), false}},
		{"abandoned beyond it", live, 22.001, true, standing{abandoned, true, sec(22), sec(27), false}},
		{"abandoned at its last moment", live, 27, true, standing{abandoned, true, sec(22), sec(27), false}},
		{"abandoned and forgotten", live, 27.001, true, standing{abandoned, true, sec(22), sec(27), true}},
		{"not while the record times do not span the lateness", live, 27.001, false, standing{abandoned, true, sec(22), sec(27), false}},
		{"closed", closed, 3, true, standing{status("DELIVERED"), true, sec(3), sec(8), false}},
		{"closed at the last moment", closed, 8, true, standing{status("DELIVERED"), true, sec(3), sec(8), false}},
		{"forgotten beyond it", closed, 8.001, true, standing{status("DELIVERED"), true, sec(3), sec(8), true}},
		{"not while the gate is shut", closed, 100, false, standing{status("DELIVERED"), true, sec(3), sec(8), false}},
		{"the greatest merged time counts", behind, 28, true, standing{status("PICKED_UP"), false, codecs.None, sec(29), false}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			at := processors.Stream{Clock: sec(tt.clock), Horizon: codecs.None, FirstRecord: sec(0), LastRecord: sec(4.999)}
			if tt.gate {
				at.LastRecord = sec(5)
			}
			require.Equal(t, tt.want, s.Standing(tt.row, at))
		})
	}
}

func TestStandingWithoutAbandonment(t *testing.T) {
	s := eternalSettings()
	at := processors.Stream{Clock: sec(1e9), Horizon: codecs.None, FirstRecord: sec(0), LastRecord: sec(1e9)}
	require.Equal(t, processors.Standing{Status: status("CREATED"), ClosedAt: codecs.None, Due: math.MaxInt64},
		s.Standing(fold(s, event("CREATED", 1)), at))
}

func TestStandingOfAbsurdDurations(t *testing.T) {
	s := shortSettings()
	s.AbandonAfter, s.Lateness = math.MaxInt64, math.MaxInt64
	at := processors.Stream{Clock: sec(1e6), Horizon: codecs.None, FirstRecord: sec(0), LastRecord: sec(1e6)}
	require.False(t, s.Standing(fold(s, event("CREATED", 1)), at).Closed)
	require.False(t, s.Standing(fold(s, event("DELIVERED", 1)), at).Forgotten)
}

func TestNothingIsForgottenBeforeTheFirstRecord(t *testing.T) {
	s := shortSettings()
	require.False(t, s.Forgets(processors.NewStream()))
	require.False(t, s.Forgets(processors.Stream{FirstRecord: sec(0), LastRecord: sec(4.999)}))
	require.True(t, s.Forgets(processors.Stream{FirstRecord: sec(0), LastRecord: sec(5)}))
}

func TestGreatestOrderTime(t *testing.T) {
	s := shortSettings()
	s.TerminalSkew = 2 * time.Second
	require.Equal(t, sec(5), s.GreatestOrderTime(fold(s, event("DELIVERED", 3), event("CREATED", 1))))
	require.Equal(t, sec(7), s.GreatestOrderTime(fold(s, event("DELIVERED", 3), event("CREATED", 7))))
}

func TestAdmit(t *testing.T) {
	s := shortSettings()
	s.MaxFuture = 10 * time.Second
	bySequence := *s
	bySequence.OrderBy = processors.BySequence
	old := event("CREATED", 0)
	old.OccurredAt = time.Date(2014, 12, 31, 23, 59, 59, 999999999, time.UTC).UnixNano()
	first := event("CREATED", 0)
	first.OccurredAt = time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	tests := []struct {
		name      string
		settings  *processors.Settings
		decoded   codecs.Decoded
		timestamp int64
		misplaced bool
		want      processors.Result
		reason    codecs.Reason
	}{
		{"an event", s, codecs.Decoded{Event: *event("CREATED", 1)}, sec(1), false, processors.Applied, ""},
		{"ignored", s, codecs.Decoded{Outcome: codecs.IsIgnored}, sec(1), true, processors.Ignored, ""},
		{"refused", s, codecs.Decoded{Outcome: codecs.IsRefused, Reason: codecs.Unreadable, Detail: "x"}, sec(1), true, processors.Refused, codecs.Unreadable},
		{"misplaced", s, codecs.Decoded{Event: *event("CREATED", 1)}, sec(1), true, processors.Refused, codecs.WrongPartition},
		{"before 2015", s, codecs.Decoded{Event: *old}, sec(1), false, processors.Refused, codecs.InvalidTime},
		{"2015", s, codecs.Decoded{Event: *first}, sec(1), false, processors.Applied, ""},
		{"as late as allowed", s, codecs.Decoded{Event: *event("CREATED", 11)}, sec(1), false, processors.Applied, ""},
		{"later than the record", s, codecs.Decoded{Event: *event("CREATED", 11.001)}, sec(1), false, processors.Refused, codecs.Future},
		{"no record timestamp", s, codecs.Decoded{Event: *event("CREATED", 1)}, codecs.None, false, processors.Refused, codecs.Future},
		{"an absurd record timestamp", s, codecs.Decoded{Event: *event("CREATED", 1)}, math.MaxInt64, false, processors.Applied, ""},
		{"no sequence", &bySequence, codecs.Decoded{Event: *event("CREATED", 1)}, sec(1), false, processors.Refused, codecs.NoSequence},
		{"a sequence of 0", &bySequence, codecs.Decoded{Event: *event("CREATED", 1, sequence(0))}, sec(1), false, processors.Applied, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.settings.Admit(&tt.decoded, tt.timestamp, tt.misplaced)
			require.Equal(t, tt.want, got.Result)
			require.Equal(t, tt.reason, got.Reason)
			require.Equal(t, tt.reason != "", got.Detail != "")
		})
	}
}
