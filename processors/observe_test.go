package processors_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/processors"
)

// Each pair differs in one component of the order key that the components
// before it leave open; the second is the greater.
func TestCompareByEachComponent(t *testing.T) {
	byTime := shortSettings()
	bySequence := shortSettings()
	bySequence.OrderBy = processors.BySequence
	skewed := shortSettings()
	skewed.TerminalSkew = 3 * time.Second
	tests := []struct {
		name           string
		settings       *processors.Settings
		smaller, event *codecs.Event
	}{
		{"time before rank", byTime, event("DELIVERED", 1), event("CREATED", 2)},
		{"time before sequence", byTime, event("CREATED", 1, sequence(9)), event("CREATED", 2, sequence(1))},
		{"rank at equal time", byTime, event("CREATED", 1, sequence(9)), event("ASSIGNED", 1, sequence(1))},
		{"unknown has the lowest rank", byTime, event("UNKNOWN", 1), event("CREATED", 1)},
		{"sequence at equal rank", byTime, event("CREATED", 1, sequence(1), eventID("z")), event("CREATED", 1, sequence(2), eventID("a"))},
		{"missing sequence is 0", byTime, event("CREATED", 1), event("CREATED", 1, sequence(1))},
		{"event ID at equal sequence", byTime, event("CREATED", 1, eventID("a"), hash(9)), event("CREATED", 1, eventID("b"), hash(1))},
		{"content at equal event ID", byTime, event("CREATED", 1, hash(1)), event("CREATED", 1, hash(1<<63))},
		{"skew lifts a terminal status", skewed, event("ASSIGNED", 3), event("DELIVERED", 1)},
		{"skew does not lift it further", skewed, event("DELIVERED", 1), event("ASSIGNED", 4.5)},
		{"skewed times tie by rank", skewed, event("ASSIGNED", 4), event("DELIVERED", 1)},
		{"sequence before time", bySequence, event("DELIVERED", 9, sequence(1)), event("CREATED", 1, sequence(2))},
		{"time at equal sequence", bySequence, event("DELIVERED", 1, sequence(1)), event("CREATED", 2, sequence(1))},
		{"rank at equal sequence and time", bySequence, event("CREATED", 1, sequence(1)), event("ASSIGNED", 1, sequence(1))},
		{"event ID last but one", bySequence, event("CREATED", 1, sequence(1), eventID("a")), event("CREATED", 1, sequence(1), eventID("b"))},
		{"content last", bySequence, event("CREATED", 1, sequence(1), hash(1)), event("CREATED", 1, sequence(1), hash(2))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			small, great := processors.KeyOf(tt.smaller), processors.KeyOf(tt.event)
			require.Equal(t, -1, tt.settings.Compare(&small, &great))
			require.Equal(t, 1, tt.settings.Compare(&great, &small))
			require.Equal(t, 0, tt.settings.Compare(&great, &great))

			forth := tt.settings.Observe(fold(tt.settings, tt.smaller), tt.event, processors.NewStream())
			require.Equal(t, processors.Applied, forth.Result)
			back := tt.settings.Observe(fold(tt.settings, tt.event), tt.smaller, processors.NewStream())
			require.Equal(t, processors.Stale, back.Result)
			require.Equal(t, great, forth.Row.Winner)
			require.Empty(t, cmp.Diff(forth.Row, back.Row))
		})
	}
}

func TestObserveFirstEvent(t *testing.T) {
	s := shortSettings()
	at := processors.NewStream()
	at.Horizon = sec(-100)
	got := s.Observe(nil, event("UNKNOWN", 1, eventID("e1"), sequence(4), region("seoul"), rawStatus("배차"), hash(7)), at)
	want := &codecs.Row{
		Winner:    codecs.OrderKey{OccurredAt: sec(1), Status: codecs.Unknown, Sequence: 4, EventID: "e1", Hash: 7},
		RawStatus: "배차",
		Timeline:  []codecs.StatusTimes{{Status: codecs.Unknown, First: sec(1), Last: sec(1)}},
		Horizon:   sec(-100),
	}
	want.Attributes[codecs.Region].Value = "seoul"
	require.Equal(t, processors.Applied, got.Result)
	require.Empty(t, cmp.Diff(want, got.Row))
}

func TestObserveDuplicateKeepsTheRow(t *testing.T) {
	s := shortSettings()
	row := fold(s, event("CREATED", 1, region("seoul")))
	got := s.Observe(row, event("CREATED", 1, region("seoul")), processors.NewStream())
	require.Equal(t, processors.Duplicate, got.Result)
	require.Same(t, row, got.Row)
}

func TestObserveStaleThatSaysNothingNewKeepsTheRow(t *testing.T) {
	s := shortSettings()
	row := fold(s, event("CREATED", 1, region("seoul")), event("ASSIGNED", 2))
	got := s.Observe(row, event("CREATED", 1, region("seoul")), processors.NewStream())
	require.Equal(t, processors.Stale, got.Result)
	require.Same(t, row, got.Row)
}

func TestAttributeComesFromTheGreatestEventThatCarriesIt(t *testing.T) {
	s := shortSettings()
	key := func(e *codecs.Event) *codecs.OrderKey {
		k := processors.KeyOf(e)
		return &k
	}
	created := event("CREATED", 1, region("seoul"), service("a"))
	assigned := event("ASSIGNED", 2, region("busan"))
	picked := event("PICKED_UP", 3)
	delivering := event("DELIVERING", 4, region("busan"))

	type value = codecs.AttributeValue
	check := func(row *codecs.Row, wantRegion, wantService value) {
		t.Helper()
		require.Equal(t, wantRegion, row.Attributes[codecs.Region])
		require.Equal(t, wantService, row.Attributes[codecs.Service])
	}
	row := fold(s, created)
	check(row, value{Value: "seoul"}, value{Value: "a"})
	row = fold(s, created, assigned) // the winner changes; the old one's key goes into what it alone carried
	check(row, value{Value: "busan"}, value{Value: "a", Key: key(created)})
	row = fold(s, created, assigned, picked)
	check(row, value{Value: "busan", Key: key(assigned)}, value{Value: "a", Key: key(created)})
	row = fold(s, picked, created) // a stale event gives what nobody carried
	check(row, value{Value: "seoul", Key: key(created)}, value{Value: "a", Key: key(created)})
	row = fold(s, picked, created, assigned) // and a greater stale one replaces it
	check(row, value{Value: "busan", Key: key(assigned)}, value{Value: "a", Key: key(created)})
	row = fold(s, picked, assigned, created) // a smaller one does not
	check(row, value{Value: "busan", Key: key(assigned)}, value{Value: "a", Key: key(created)})
	row = fold(s, delivering, assigned) // the winner carries it
	check(row, value{Value: "busan"}, value{})
	row = fold(s, assigned, delivering) // the same value: still the winner's
	check(row, value{Value: "busan"}, value{})
}

func TestTimelineKeepsFirstAndLastOfEachStatus(t *testing.T) {
	s := shortSettings()
	row := fold(s,
		event("ASSIGNED", 5), event("CREATED", 2), event("ASSIGNED", 3), event("DELIVERED", 9),
		event("ASSIGNED", 4), event("CREATED", 6), event("UNKNOWN", 7))
	require.Equal(t, []codecs.StatusTimes{
		{Status: status("UNKNOWN"), First: sec(7), Last: sec(7)},
		{Status: status("CREATED"), First: sec(2), Last: sec(6)},
		{Status: status("ASSIGNED"), First: sec(3), Last: sec(5)},
		{Status: status("DELIVERED"), First: sec(9), Last: sec(9)},
	}, row.Timeline)
}

func TestTimelineOfEveryStatus(t *testing.T) {
	s := shortSettings()
	var row *codecs.Row
	for status := range codecs.Status(s.Lifecycle.Len() - 1) {
		e := &codecs.Event{DeliveryID: "D", Status: status, OccurredAt: sec(float64(status))}
		row = s.Observe(row, e, processors.NewStream()).Row
	}
	require.Len(t, row.Timeline, s.Lifecycle.Len()-1)
	for i, entry := range row.Timeline {
		require.Equal(t, codecs.StatusTimes{Status: codecs.Status(i), First: sec(float64(i)), Last: sec(float64(i))}, entry)
	}
}

func TestSince(t *testing.T) {
	s := shortSettings()
	tests := []struct {
		name   string
		events []*codecs.Event
		want   float64
	}{
		{"one event", []*codecs.Event{event("CREATED", 1)}, 1},
		{"the first of equal statuses", []*codecs.Event{event("CREATED", 1), event("ASSIGNED", 2), event("ASSIGNED", 4)}, 2},
		{"another status at the same time", []*codecs.Event{event("CREATED", 2), event("ASSIGNED", 2), event("ASSIGNED", 4)}, 2},
		{"another status in between", []*codecs.Event{event("ASSIGNED", 2), event("PICKED_UP", 3), event("ASSIGNED", 4)}, 4},
		{"a stale one in between", []*codecs.Event{event("ASSIGNED", 2), event("ASSIGNED", 4), event("PICKED_UP", 3)}, 4},
		{"back again and repeated", []*codecs.Event{event("ASSIGNED", 2), event("PICKED_UP", 3), event("ASSIGNED", 4), event("ASSIGNED", 5)}, 5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, sec(tt.want), processors.Since(fold(s, tt.events...)))
		})
	}
}

func TestObserveNeverChangesTheRowItIsGiven(t *testing.T) {
	s := shortSettings()
	events := []*codecs.Event{
		event("CREATED", 2, region("seoul")), event("ASSIGNED", 3), event("CREATED", 1, service("a")),
		event("CREATED", 4, region("busan")), event("DELIVERED", 5),
	}
	var row *codecs.Row
	for _, e := range events {
		before := s.Lifecycle.AppendRow(nil, orEmpty(row))
		next := s.Observe(row, e, processors.NewStream()).Row
		require.Equal(t, before, s.Lifecycle.AppendRow(nil, orEmpty(row)))
		row = next
	}
}

func orEmpty(row *codecs.Row) *codecs.Row {
	if row == nil {
		return &codecs.Row{}
	}
	return row
}

func TestLate(t *testing.T) {
	s := shortSettings()
	s.TerminalSkew = 2 * time.Second
	at := processors.NewStream()
	at.Horizon = sec(10)
	observe := func(row *codecs.Row, e *codecs.Event) processors.Result {
		got := s.Observe(row, e, at)
		if got.Result == processors.Late {
			require.Same(t, row, got.Row)
		}
		return got.Result
	}
	require.Equal(t, processors.Late, observe(nil, event("CREATED", 10)), "an unknown delivery at the horizon")
	require.Equal(t, processors.Applied, observe(nil, event("CREATED", 10.001)), "after it")
	require.Equal(t, processors.Late, observe(nil, event("DELIVERED", 8)), "by order time")
	require.Equal(t, processors.Applied, observe(nil, event("DELIVERED", 8.001)), "by order time")

	old := fold(s, event("CREATED", 5)) // made when nothing was forgotten
	require.Equal(t, processors.Stale, observe(old, event("CREATED", 1)), "a known delivery has its own horizon")
	young := s.Observe(nil, event("CREATED", 11), at).Row
	require.Equal(t, processors.Late, observe(young, event("CREATED", 10)))
	at.Horizon = sec(20)
	require.Equal(t, processors.Stale, observe(young, event("CREATED", 10.5)), "that of its creation")
}
