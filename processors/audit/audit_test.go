package audit_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/processors"
	"deliverystat/processors/audit"
)

// noon is the time at which the tests' deliveries begin.
var noon = time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC)

func settings() *processors.Settings {
	s := processors.DefaultSettings()
	s.Dimensions = []codecs.Attribute{codecs.Region}
	return s
}

// row is the bytes of a delivery that has had one event.
func row(t *testing.T, status, region string, after time.Duration) []byte {
	t.Helper()
	l := codecs.BuiltinLifecycle()
	s, ok := l.Lookup(status)
	require.True(t, ok)
	at := noon.Add(after).UnixNano()
	r := &codecs.Row{
		Winner:   codecs.OrderKey{OccurredAt: at, Status: s},
		Timeline: []codecs.StatusTimes{{Status: s, First: at, Last: at}},
		Horizon:  codecs.None,
	}
	r.Attributes[codecs.Region].Value = region
	return l.AppendRow(nil, r)
}

// progress is the bytes of a progress row. The log spans days, so that rows can
// be forgotten.
func progress(position int64, clock time.Duration) []byte {
	return codecs.AppendProgress(nil, &codecs.Progress{
		Next: position, Position: position, Clock: noon.Add(clock).UnixNano(), Horizon: codecs.None,
		FirstRecord: noon.UnixNano(), LastRecord: noon.Add(clock).UnixNano(), Settings: settings().Values(),
	})
}

// written is one row of a log.
type written struct {
	key   string
	value []byte
}

func fold(t *testing.T, target int64, log []written) *audit.Fold {
	t.Helper()
	f := audit.NewFold(target)
	for _, w := range log {
		require.NoError(t, f.Row(w.key, w.value))
	}
	return f
}

func recount(t *testing.T, f *audit.Fold) audit.Counts {
	t.Helper()
	counts, err := f.Recount(settings())
	require.NoError(t, err)
	return counts
}

func TestARecountIsOfTheTargetPosition(t *testing.T) {
	log := []written{
		{"D-1", row(t, "CREATED", "seoul", 0)},
		{codecs.ProgressKey, progress(1, 0)},
		{"D-1", row(t, "DELIVERED", "seoul", time.Minute)},
		{"D-2", row(t, "CREATED", "", time.Minute)},
		{codecs.ProgressKey, progress(3, time.Minute)},
		{"D-2", row(t, "ASSIGNED", "busan", time.Hour)},
		{codecs.ProgressKey, progress(4, time.Hour)},
		{"D-3", row(t, "CREATED", "", time.Hour)}, // no progress row behind it yet
	}
	for target, want := range map[int64]audit.Counts{
		1: {
			"":             {"CREATED": {Live: 1}},
			"region=seoul": {"CREATED": {Live: 1}},
		},
		3: {
			"":             {"CREATED": {Live: 1}, "DELIVERED": {Closed: 1}},
			"region=":      {"CREATED": {Live: 1}},
			"region=seoul": {"DELIVERED": {Closed: 1}},
		},
		4: {
			"":             {"ASSIGNED": {Live: 1}, "DELIVERED": {Closed: 1}},
			"region=busan": {"ASSIGNED": {Live: 1}},
			"region=seoul": {"DELIVERED": {Closed: 1}},
		},
	} {
		t.Run(strconv.FormatInt(target, 10), func(t *testing.T) {
			f := fold(t, target, log)

			require.True(t, f.Done())
			require.False(t, f.Missed())
			require.Equal(t, want, recount(t, f))
		})
	}
}

func TestAPositionThatIsNotInTheLogIsMissed(t *testing.T) {
	log := []written{{codecs.ProgressKey, progress(1, 0)}, {codecs.ProgressKey, progress(3, 0)}}

	missed, ahead := fold(t, 2, log), fold(t, 9, log)

	require.True(t, missed.Missed())
	require.False(t, missed.Done())
	require.False(t, ahead.Missed())
	require.False(t, ahead.Done())
	require.EqualValues(t, 3, ahead.Progress().Position)
}

// The owner forgot a delivery and deleted its row an epoch later, at the same
// position. Both cuts count the same, and what follows at that position is
// looked at, so that a row that somebody else wrote there is found.
func TestRowsOfTheSamePositionFollowLater(t *testing.T) {
	log := []written{
		{"D-1", row(t, "DELIVERED", "", 0)},
		{"D-2", row(t, "CREATED", "", 25*time.Hour)},
		{codecs.ProgressKey, progress(2, 25*time.Hour)},
	}
	want := audit.Counts{"": {"CREATED": {Live: 1}}, "region=": {"CREATED": {Live: 1}}}
	require.Equal(t, want, recount(t, fold(t, 2, log)))

	log = append(log, written{"D-1", nil}, written{codecs.ProgressKey, progress(2, 25*time.Hour)})
	require.Equal(t, want, recount(t, fold(t, 2, log)))

	log = append(log, written{"D-X", row(t, "CREATED", "", 0)}, written{codecs.ProgressKey, progress(2, 25*time.Hour)})
	require.Equal(t, int64(2), recount(t, fold(t, 2, log)).Deliveries().Live)
}

// What is abandoned counts as that, though its row says something else.
func TestTheClockDecidesWhatARowCountsAs(t *testing.T) {
	f := fold(t, 1, []written{{"D-1", row(t, "ASSIGNED", "", 0)}, {codecs.ProgressKey, progress(1, 169*time.Hour)}})

	require.Equal(t, map[string]audit.Count{"ABANDONED": {Closed: 1}}, recount(t, f)[""])
}

func TestDifferences(t *testing.T) {
	got := audit.Counts{
		"":             {"CREATED": {Live: 3}, "DELIVERED": {Closed: 5}, "FAILED": {}},
		"region=busan": {"CREATED": {Live: 3}},
	}
	want := audit.Counts{
		"":             {"CREATED": {Live: 3}, "DELIVERED": {Closed: 6}, "ASSIGNED": {Live: 0}},
		"region=seoul": {"CREATED": {Live: 3}},
	}

	require.Equal(t, []audit.Difference{
		{Scope: "", Status: "DELIVERED", Got: audit.Count{Closed: 5}, Want: audit.Count{Closed: 6}},
		{Scope: "region=busan", Status: "CREATED", Got: audit.Count{Live: 3}},
		{Scope: "region=seoul", Status: "CREATED", Want: audit.Count{Live: 3}},
	}, audit.Compare(got, want))
	require.Empty(t, audit.Compare(got, got))
}

func TestWhatTheCountsTableTells(t *testing.T) {
	created := func(n int64) []byte {
		return codecs.AppendCounts(nil, []codecs.StatusCount{{Status: "CREATED", Live: n}})
	}
	at := codecs.AppendCountsProgress(nil, &codecs.CountsProgress{Next: 2, Partitions: []codecs.PartitionCounts{
		{Partition: 0, Position: 7, Full: true}, {Partition: 1, Position: 4},
	}})
	f := audit.NewCountsFold()
	for _, w := range []written{
		{codecs.ContributionKey(0, ""), created(2)},
		{codecs.ContributionKey(1, ""), created(3)},
		{codecs.TotalKey(""), created(6)},
		{codecs.TotalKey("region=seoul"), created(1)},
		{codecs.ProgressKey, at},
		{codecs.TotalKey("region=seoul"), nil},
		{codecs.ProgressKey, at},
		{codecs.TotalKey(""), created(99)}, // no progress row behind it yet
	} {
		require.NoError(t, f.Row(w.key, w.value))
	}

	told, err := f.Told()

	require.NoError(t, err)
	require.Equal(t, audit.Counts{"": {"CREATED": {Live: 6}}}, told.Totals)
	require.Equal(t, map[int32]audit.Counts{0: {"": {"CREATED": {Live: 2}}}, 1: {"": {"CREATED": {Live: 3}}}}, told.Parts)
	require.EqualValues(t, 7, told.Partitions[0].Position)
	require.EqualError(t, told.Complete(), "partition 1 has not told all its counts yet")
	require.Equal(t, []audit.Difference{{Status: "CREATED", Got: audit.Count{Live: 6}, Want: audit.Count{Live: 5}}}, told.Sum())
}

func TestSettingsAreReadBackAsTheyWereWritten(t *testing.T) {
	s := settings()
	s.OrderBy, s.Lateness, s.AbandonAfter, s.TerminalSkew = processors.BySequence, 36*time.Hour, 0, 1500*time.Millisecond
	s.Dimensions = []codecs.Attribute{codecs.Service, codecs.Region}
	s.Mapping = "0123456789abcdef"

	got, err := audit.ParseSettings(s.Values(), codecs.BuiltinLifecycle())

	require.NoError(t, err)
	require.Equal(t, s.Values(), got.Values())

	other := s.Values()
	for i := range other {
		if other[i].Name == "lifecycle" {
			other[i].Value = "of another profile"
		}
	}
	_, err = audit.ParseSettings(other, codecs.BuiltinLifecycle())
	require.ErrorContains(t, err, `lifecycle is "of another profile" in the table`)
	_, err = audit.ParseSettings([]codecs.Setting{{Name: "max-future", Value: "soon"}}, codecs.BuiltinLifecycle())
	require.ErrorContains(t, err, "reading setting max-future of the table")
}

func TestUnreadableRowsAreErrors(t *testing.T) {
	require.Error(t, audit.NewFold(1).Row(codecs.ProgressKey, []byte("?")))
	require.Error(t, audit.NewCountsFold().Row(codecs.ProgressKey, []byte("?")))
	f := fold(t, 1, []written{{"D-1", []byte(strings.Repeat("\xff", 20))}, {codecs.ProgressKey, progress(1, 0)}})
	_, err := f.Recount(settings())
	require.ErrorContains(t, err, `reading row of delivery "D-1"`)
}

func Example() {
	// The rows of a partition say one thing, the counts another.
	rows := audit.Counts{"": {"CREATED": {Live: 2}}}
	counted := audit.Counts{"": {"CREATED": {Live: 1}, "ASSIGNED": {Live: 1}}}
	for _, d := range audit.Compare(counted, rows) {
		fmt.Println(d.Status, d.Got.Live, "counted,", d.Want.Live, "found")
	}
	// Output:
	// ASSIGNED 1 counted, 0 found
	// CREATED 1 counted, 2 found
}
