package processors_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pb33f/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"deliverystat/codecs"
)

// summaries are the summaries that were committed, by delivery.
func (f *firstStage) summaries() map[string][]string {
	summaries := map[string][]string{}
	for _, rec := range f.to(f.cfg.Topics.Summaries) {
		summaries[rec.Key] = append(summaries[rec.Key], string(rec.Value))
	}
	return summaries
}

// outcomesOfA are the outcomes of the summaries of delivery a, in order.
func (f *firstStage) outcomesOfA() []string {
	var outcomes []string
	for _, value := range f.summaries()["a"] {
		outcomes = append(outcomes, outcomeOf(f.t, value))
	}
	return outcomes
}

func outcomeOf(t failer, summary string) string {
	var s struct {
		Outcome string `json:"outcome"`
	}
	require.NoError(t, json.Unmarshal([]byte(summary), &s))
	return s.Outcome
}

// checkLastSummaries compares the last summary of each delivery with its row.
func checkLastSummaries(t failer, f *firstStage) {
	l := f.cfg.Settings.Lifecycle
	told := f.summaries()
	for id, d := range f.deliveries() {
		row, err := l.ReadRow(f.table[id])
		require.NoError(t, err)
		if !d.Closed {
			require.Zero(t, row.Summarized, id)
			continue
		}
		closing := codecs.Closing{Status: d.Status, ClosedAt: d.ClosedAt}
		require.Equal(t, closing, row.Summarized, id)
		require.NotEmpty(t, told[id], id)
		require.Equal(t, string(l.AppendSummary(nil, id, row, closing)), told[id][len(told[id])-1])
	}
}

func TestSpecASummaryWhenTheDeliveryCloses(t *testing.T) {
	f := run(t, shortSettings(),
		wire("a", "CREATED", 1, "region", "seoul", "order_id", "O-1"), wire("a", "PICKED_UP", 1.5), wire("a", "DELIVERED", 3.25))
	require.Equal(t, map[string][]string{"a": {`{"delivery_id":"a","outcome":"DELIVERED","status":"DELIVERED","order_id":"O-1","region":"seoul",` +
		`"opened_at":"` + stamp(1) + `","closed_at":"` + stamp(3.25) + `","duration_seconds":2.25,"timeline":[` +
		`{"status":"CREATED","first":"` + stamp(1) + `","last":"` + stamp(1) + `","seconds":0.5},` +
		`{"status":"PICKED_UP","first":"` + stamp(1.5) + `","last":"` + stamp(1.5) + `","seconds":1.75},` +
		`{"status":"DELIVERED","first":"` + stamp(3.25) + `","last":"` + stamp(3.25) + `","seconds":0}]}`}}, f.summaries())
	f.produce(wire("a", "DELIVERED", 3.25), wire("a", "CREATED", 1, "region", "seoul", "order_id", "O-1"))
	f.drain()
	require.Len(t, f.summaries()["a"], 1, "nothing has changed")
}

func stamp(at float64) string { return time.Unix(0, sec(at)).UTC().Format(time.RFC3339Nano) }

func TestSpecASummaryWhenTheClosedRowChanges(t *testing.T) {
	f := run(t, shortSettings(), wire("a", "DELIVERED", 3), wire("a", "CREATED", 1, "region", "busan"))
	require.Equal(t, []string{"DELIVERED", "DELIVERED"}, f.outcomesOfA())
	require.Contains(t, f.summaries()["a"][1], `"region":"busan","opened_at":"`+stamp(1)+`"`)
}

func TestSpecReopenedSupersedes(t *testing.T) {
	f := run(t, shortSettings(), wire("a", "DELIVERED", 2), wire("a", "RETURNING", 3), wire("a", "RETURNED", 4))
	require.Equal(t, []string{"DELIVERED", "REOPENED", "RETURNED"}, f.outcomesOfA())
	require.NotContains(t, f.summaries()["a"][1], "closed_at")
}

func TestSpecTheAbandonedAreSummarizedOnce(t *testing.T) {
	f := run(t, shortSettings(), wire("a", "CREATED", 1), wire("b", "CREATED", 21.001))
	require.Equal(t, []string{"ABANDONED"}, f.outcomesOfA())
	require.Contains(t, f.summaries()["a"][0], `"status":"CREATED","opened_at":"`+stamp(1)+`","closed_at":"`+stamp(21)+`","duration_seconds":20,`)
	f.crash()
	f.drain()
	require.Equal(t, []string{"ABANDONED"}, f.outcomesOfA(), "a restart tells nothing again")
	f.produce(wire("a", "CREATED", 3))
	f.drain()
	require.Equal(t, []string{"ABANDONED", "REOPENED"}, f.outcomesOfA())
}

// The abandoned row is forgotten, or changed, before its summary could be sent.
func TestSpecASummaryIsOwedEvenIfTheRowIsDeleted(t *testing.T) {
	for name, more := range map[string][]fakeRecord{
		"in one jump of the clock": {wire("b", "CREATED", 27)},
		"by its next life":         {wire("b", "CREATED", 27), wire("a", "ASSIGNED", 27.5)},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFirstStage(t, shortSettings(), wire("a", "CREATED", 1))
			f.assign()
			f.step(1)
			f.crash() // the row is in the table only
			f.produce(more...)
			f.drain()
			require.Equal(t, []string{"ABANDONED"}, f.outcomesOfA())
		})
	}
}

// What a recovery finds due is owed a summary like what the clock finds.
func TestSpecOtherSettingsAreToldAnew(t *testing.T) {
	f := run(t, shortSettings(), wire("a", "CREATED", 1), wire("b", "CREATED", 22))
	require.Equal(t, []string{"ABANDONED"}, f.outcomesOfA())
	later := *f.cfg.Settings
	later.AbandonAfter = time.Hour
	f.cfg.Settings, f.cfg.AcceptNewMeaning = &later, true
	f.assign()
	f.drain()
	require.Equal(t, []string{"ABANDONED", "REOPENED"}, f.outcomesOfA())
	sooner := *f.cfg.Settings
	sooner.AbandonAfter = 18 * time.Second
	f.cfg.Settings = &sooner
	f.assign()
	f.drain()
	require.Equal(t, []string{"ABANDONED", "REOPENED", "ABANDONED"}, f.outcomesOfA())
	require.Contains(t, f.summaries()["a"][2], `"closed_at":"`+stamp(19)+`"`)
}

// A jump of the clock that makes many rows due tells a bounded number per epoch
// and counts exactly meanwhile.
func TestSpecSummariesOfAClockJumpAreBounded(t *testing.T) {
	f := newFirstStage(t, shortSettings())
	f.cfg.ReadsPerEpoch = 10
	const n = 95
	for i := range n {
		f.produce(wire(string(rune('A'+i/26))+string(rune('a'+i%26)), "CREATED", 1))
	}
	f.assign()
	f.drain()
	f.produce(wire("x", "CREATED", 22))
	f.consume(1)
	for told := 0; told < n; {
		require.True(t, f.cut())
		f.commit()
		sum := len(f.to(f.cfg.Topics.Summaries))
		require.LessOrEqual(t, sum-told, 10)
		told = sum
		require.Equal(t, map[string]int64{"live CREATED": 1, "closed ABANDONED": n}, toldCounts(f))
	}
	require.False(t, f.cut())
}

func toldCounts(f *firstStage) map[string]int64 { return told(f.tallies())[""] }

// Summaries in any order of arrival: the last of each delivery says the same.
// REOPENED says that none stands, like no summary at all.
func TestPropertyLastSummariesInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySettings(t)
		s.Lateness, s.MaxFuture = 24*time.Hour, 24*time.Hour // so that no event is late
		records := anyInput(t, rapid.IntRange(1, 30).Draw(t, "n"))
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 1))
		last := func() map[string]string {
			f := newFirstStage(t, s, records...)
			f.assign()
			for f.next < f.input.end() {
				f.step(1 + random.IntN(5))
			}
			f.drain()
			stands := map[string]string{}
			for id, all := range f.summaries() {
				if value := all[len(all)-1]; outcomeOf(t, value) != codecs.ReopenedName {
					stands[id] = value
				}
			}
			return stands
		}
		want := last()
		random.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
		records = append(records, records[:random.IntN(len(records))]...)
		require.Empty(t, cmp.Diff(want, last()))
	})
}

func TestSummariesAreAsTheirSchemaSays(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	text, err := os.ReadFile(filepath.Join("..", "codecs", "delivery-summary.schema.json"))
	require.NoError(t, err)
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	require.NoError(t, compiler.AddResource("summary.json", document))
	compiler.AssertFormat()
	schema, err := compiler.Compile("summary.json")
	require.NoError(t, err)
	valid := func(value string) bool {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(value)))
		require.NoError(t, err)
		return schema.Validate(v) == nil
	}
	f := run(t, shortSettings(), wire("a", "DELIVERED", 2), wire("a", "RETURNING", 3), wire("a", "배차지연", 4, "store_id", "S \"1\""),
		wire("b", "CANCELLED", 1), wire("b", "CREATED", 0.123456789), wire("c", "CREATED", 30))
	n := 0
	for _, all := range f.summaries() {
		for _, value := range all {
			require.True(t, valid(value), value)
			n++
		}
	}
	require.Equal(t, 5, n)
	require.False(t, valid(`{"delivery_id":"a"}`))
	require.False(t, valid(`{"delivery_id":"a","outcome":"REOPENED","status":"CREATED","opened_at":"`+stamp(1)+`","closed_at":"`+stamp(1)+`","timeline":[{"status":"A","first":"`+stamp(1)+`","last":"`+stamp(1)+`"}]}`))
}
