package processors_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/processors"
	"deliverystat/processors/exactlyonce"
)

func TestFirstCutTellsEverythingOfAnEmptyInput(t *testing.T) {
	f := newFirstStage(t, shortSettings())
	f.assign()
	require.True(t, f.cut())
	f.commit()
	require.Equal(t, []*codecs.Tally{{
		TopicID: "events-1", Full: true, Parts: 1, Clock: codecs.None, Horizon: codecs.None,
		SettingsHash: shortSettings().Hash(), Scopes: []codecs.ScopeCounts{{}}, Audited: codecs.None,
	}}, f.tallies())
	require.Empty(t, cmp.Diff(&codecs.Progress{
		TopicID: "events-1", Clock: codecs.None, Horizon: codecs.None, FirstRecord: codecs.None, LastRecord: codecs.None,
		Settings: shortSettings().Values(),
	}, f.progress()))
	require.False(t, f.cut(), "nothing more to say")
}

func TestEachEpochThatConsumedTellsTheScopesThatChanged(t *testing.T) {
	s := eternalSettings()
	f := newFirstStage(t, s,
		wire("a", "CREATED", 1, "region", "seoul"), wire("b", "CREATED", 2, "region", "busan"),
		wire("a", "CREATED", 1, "region", "seoul"), // a duplicate
		wire("b", "DELIVERED", 3))
	f.assign()
	f.cut()
	f.commit()
	f.step(2)
	f.step(1)
	f.step(1)
	tallies := f.tallies()
	require.Len(t, tallies, 4)
	created := func(n int64) []codecs.StatusCount { return []codecs.StatusCount{{Status: "CREATED", Live: n}} }
	require.Equal(t, []codecs.ScopeCounts{
		{Scope: "", Counts: created(2)}, {Scope: "region=busan", Counts: created(1)}, {Scope: "region=seoul", Counts: created(1)},
	}, tallies[1].Scopes)
	require.Empty(t, tallies[2].Scopes)
	require.Equal(t, int64(3), tallies[2].Position, "a duplicate moves the position all the same")
	require.Equal(t, []codecs.ScopeCounts{
		{Scope: "", Counts: []codecs.StatusCount{{Status: "CREATED", Live: 1}, {Status: "DELIVERED", Closed: 1}}},
		{Scope: "region=busan", Counts: []codecs.StatusCount{{Status: "DELIVERED", Closed: 1}}},
	}, tallies[3].Scopes)
	for _, tally := range tallies[1:] {
		require.False(t, tally.Full)
	}
}

func TestFullTallyIsRepeatedWhenItsTimeHasCome(t *testing.T) {
	f := run(t, eternalSettings(), wire("a", "CREATED", 1))
	f.now = f.now.Add(6*time.Hour - time.Nanosecond)
	require.False(t, f.cut())
	f.commit()
	f.now = f.now.Add(time.Nanosecond)
	require.True(t, f.cut())
	f.commit()
	require.False(t, f.cut())
	f.commit()
	tallies := f.tallies()
	require.Len(t, tallies, 2)
	require.True(t, tallies[1].Full)
	require.Equal(t, int64(1), tallies[1].Position)
	require.Equal(t, f.recount(), told(tallies[1:]))
}

func TestProgressRowIsWrittenLast(t *testing.T) {
	f := run(t, shortSettings(), wire("a", "CREATED", 1), wire("b", "DELIVERED", 2), wire("c", "CREATED", 9))
	require.Equal(t, codecs.ProgressKey, f.log[len(f.log)-1].Key)
	require.Empty(t, cmp.Diff(&codecs.Progress{
		TopicID: "events-1", Next: 3, Position: 3, Clock: sec(9), Horizon: sec(2), FirstRecord: sec(1), LastRecord: sec(9),
		Settings: shortSettings().Values(),
	}, f.progress()))
}

func TestOneRowPerChangedKeyAndEpoch(t *testing.T) {
	f := newFirstStage(t, eternalSettings(), wire("a", "CREATED", 1), wire("b", "CREATED", 1), wire("a", "ASSIGNED", 2), wire("a", "PICKED_UP", 3))
	f.assign()
	f.step(4)
	var keys []string
	for _, c := range f.log {
		keys = append(keys, c.Key)
	}
	require.Equal(t, []string{"a", "b", codecs.ProgressKey}, keys)
}

func TestDeadLetterKeepsTheRecord(t *testing.T) {
	f := run(t, shortSettings(), fakeRecord{
		key: "k", value: []byte("no json"), headers: goka.Headers{"trace": []byte("t1")}, timestamp: time.UnixMilli(1_700_000_000_123),
	})
	letters := f.letters()
	require.Len(t, letters, 1)
	require.Equal(t, "k", letters[0].Key)
	require.Equal(t, "no json", string(letters[0].Value))
	message := string(letters[0].Headers[processors.HeaderMessage])
	require.NotEmpty(t, message)
	require.Equal(t, goka.Headers{
		"trace":                              []byte("t1"),
		"__connect.errors.topic":             []byte("delivery-events"),
		"__connect.errors.partition":         []byte("0"),
		"__connect.errors.offset":            []byte("0"),
		"__connect.errors.exception.message": []byte(message),
		"deliverystat.reason":                []byte("unreadable"),
		"deliverystat.timestamp":             []byte("1700000000123"),
	}, letters[0].Headers)
}

// A name may come twice, and a header of somebody's may begin as ours do.
func TestDeadLetterKeepsTheOrderOfHeaders(t *testing.T) {
	own := []*exactlyonce.Header{
		{Key: []byte("trace"), Value: []byte("t1")},
		{Key: []byte("deliverystat.source.topic"), Value: []byte("orders")},
		{Key: []byte("trace"), Value: []byte("t2")},
		{Key: []byte("none"), Value: nil},
	}
	f := run(t, shortSettings(), fakeRecord{key: "k", value: []byte("{"), more: own, timestamp: epochStart})

	letters := f.letters()
	require.Len(t, letters, 1)
	for i, h := range own {
		require.Equal(t, *h, letters[0].All[i])
	}
}

func TestDeadLetterOfAHugeRecordIsTruncated(t *testing.T) {
	value := bytes.Repeat([]byte("x"), 1_048_000)
	huge := []byte(strings.Repeat("h", 950_000))
	f := run(t, shortSettings(),
		fakeRecord{key: "k", value: value, headers: goka.Headers{"trace": []byte("t1")}, timestamp: epochStart},
		fakeRecord{key: "k", value: []byte("y"), headers: goka.Headers{"trace": huge}, timestamp: epochStart})
	letters := f.letters()
	require.Len(t, letters, 2)
	sum := sha256.Sum256(value)
	require.Equal(t, hex.EncodeToString(sum[:]), string(letters[0].Headers[processors.HeaderValueHash]))
	require.Equal(t, "1048000", string(letters[0].Headers[processors.HeaderValueLength]))
	require.True(t, bytes.HasPrefix(value, letters[0].Value))
	require.Greater(t, len(letters[0].Value), processors.MaxValueBytes-100)
	require.NotContains(t, letters[1].Headers, "trace")
	require.Equal(t, "true", string(letters[1].Headers[processors.HeaderHeadersDropped]))
	for _, l := range letters {
		size := len(l.Key) + len(l.Value)
		for k, v := range l.Headers {
			size += len(k) + len(v)
		}
		require.Less(t, size, exactlyonce.MaxRecordBytes)
	}
}

func TestHeadersReachTheDecoder(t *testing.T) {
	f := run(t, eternalSettings(), fakeRecord{
		key:       "a",
		value:     []byte(`{"delivery_id":"a","occurred_at":"2026-11-30T10:00:01Z","status":"CREATED"}`),
		headers:   goka.Headers{"id": []byte("e-1")},
		timestamp: epochStart.Add(time.Second),
	})
	require.Equal(t, "e-1", mustRow(t, f, "a").Winner.EventID)
}

func TestRefusesATableOfOtherSettings(t *testing.T) {
	f := run(t, shortSettings(), wire("a", "CREATED", 1))
	other := shortSettings()
	other.Lateness, other.Dimensions = time.Minute, nil
	f.cfg.Settings = other
	err := f.tryAssign()
	var differ *processors.SettingsError
	require.ErrorAs(t, err, &differ)
	require.Equal(t, []processors.SettingDifference{
		{Name: "allowed-lateness", Stored: "5s", Configured: "1m0s"},
		{Name: "dimensions", Stored: "region", Configured: ""},
	}, differ.Differences)
	require.EqualError(t, differ, `settings differ from those the table was written with: `+
		`allowed-lateness is "5s" in the table and "1m0s" here; dimensions is "region" in the table and "" here`)

	f.cfg.AcceptNewMeaning = true
	f.assign()
	f.drain()
	require.Equal(t, other.Values(), f.progress().Settings)
	require.Equal(t, other.Hash(), f.tallies()[len(f.tallies())-1].SettingsHash)
	require.Equal(t, f.recount(), told(f.tallies()))
}

func TestRefusesRowsWithoutAProgressRow(t *testing.T) {
	f := run(t, shortSettings(), wire("a", "CREATED", 1))
	delete(f.table, codecs.ProgressKey)
	require.ErrorContains(t, f.tryAssign(), "no progress row")
}

func TestRowThatCanNotBeReadEndsTheAttempt(t *testing.T) {
	f := run(t, shortSettings(), wire("a", "CREATED", 1))
	f.table["a"] = []byte{0xff}
	require.ErrorContains(t, f.tryAssign(), "decoding a row")
}

func TestStartOfReading(t *testing.T) {
	records := func() []fakeRecord {
		return []fakeRecord{wire("a", "CREATED", 1), wire("b", "CREATED", 2), wire("c", "CREATED", 3), wire("d", "CREATED", 4)}
	}
	tests := []struct {
		name           string
		disturb        func(f *firstStage)
		next, position int64
		lost           int64
	}{
		{"where the last epoch ended", func(*firstStage) {}, 2, 2, 0},
		{"operator goes back", func(f *firstStage) { f.committed = 1 }, 1, 2, 0},
		{"operator goes forward", func(f *firstStage) { f.committed = 3 }, 3, 3, 0},
		{"group offsets expired", func(f *firstStage) { f.committed = -1 }, 2, 2, 0},
		{"group offsets expired and log trimmed", func(f *firstStage) { f.committed = -1; f.input.trim(3) }, 3, 3, 1},
		{"log trimmed", func(f *firstStage) { f.input.trim(4) }, 4, 4, 2},
		{"log truncated", func(f *firstStage) { f.input.records = f.input.records[:1] }, 0, 2, 0},
		{"table emptied", func(f *firstStage) { clear(f.table) }, 0, 0, 0},
		{"input created anew", func(f *firstStage) { f.input.id = "events-2"; f.committed = -1 }, 0, 0, 0},
		{"input created anew, old offset left", func(f *firstStage) { f.input.id = "events-2" }, 0, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFirstStage(t, eternalSettings(), records()...)
			f.assign()
			f.step(2)
			tt.disturb(f)
			f.assign()
			require.Equal(t, tt.next, f.next)
			require.Equal(t, tt.lost, f.lost)
			f.cut()
			f.commit()
			require.Equal(t, tt.next, f.progress().Next)
			require.Equal(t, tt.position, f.progress().Position)
			last := f.tallies()[len(f.tallies())-1]
			require.True(t, last.Full)
			require.Equal(t, tt.position, last.Position)
			require.Equal(t, f.input.id, last.TopicID)
			f.drain()
			require.Equal(t, max(tt.position, f.input.end()), f.progress().Position)
			require.Equal(t, f.recount(), told(f.tallies()))
		})
	}
}

func TestReadingTheInputAgainChangesNothing(t *testing.T) {
	f := run(t, eternalSettings(), wire("a", "CREATED", 1), wire("b", "CREATED", 2), wire("a", "DELIVERED", 3))
	before := f.deliveries()
	f.committed = 0
	f.assign()
	f.drain()
	require.Equal(t, before, f.deliveries())
	require.Equal(t, map[string]int64{"live CREATED": 1, "closed DELIVERED": 1}, told(f.tallies())[""])
}

// A new input is another first load, in which nothing may be forgotten at
// first; what was forgotten before stays so.
func TestInputCreatedAnewStartsTheRecordTimesAnew(t *testing.T) {
	f := newFirstStage(t, shortSettings(), wire("a", "DELIVERED", 1), wire("b", "DELIVERED", 2), wire("b2", "DELIVERED", 2), wire("c", "CREATED", 9))
	f.cfg.DeletesPerEpoch = 1
	f.assign()
	f.step(3)
	f.step(1) // forgets a, b and b2, deletes one
	require.Equal(t, []string{"b", "b2", "c"}, f.rowKeys())
	f.input = &fakeTopic{name: f.input.name, id: "events-2", records: []fakeRecord{wire("d", "DELIVERED", 3), wire("e", "CREATED", 10).arriving(4)}}
	f.assign()
	f.cut()
	f.commit()
	require.Equal(t, []string{"c"}, f.rowKeys(), "the owed deletes are not left behind")
	f.drain()
	require.Equal(t, map[string]string{"c": "CREATED", "d": "DELIVERED", "e": "CREATED"}, f.statuses())
	require.Equal(t, sec(3), f.progress().FirstRecord)
	require.Equal(t, f.recount(), told(f.tallies()))
}

func TestClockJumpDeletesInBoundedBatchesOldestFirst(t *testing.T) {
	f := newFirstStage(t, shortSettings())
	for i := range 10 {
		f.produce(wire(fmt.Sprintf("d%d", i), "DELIVERED", 10-float64(i)).arriving(10))
	}
	f.produce(wire("x", "CREATED", 100))
	f.cfg.DeletesPerEpoch = 4
	f.assign()
	f.step(10)
	f.log = nil
	f.step(1)
	require.Equal(t, map[string]int64{"live CREATED": 1}, told(f.tallies())[""], "counted at once")
	require.Equal(t, sec(10), f.progress().Horizon)
	require.Equal(t, map[string]string{"x": "CREATED"}, f.statuses())
	require.Equal(t, []string{"d0", "d1", "d2", "d3", "d4", "d5", "x"}, f.rowKeys())
	f.step(0)
	require.Equal(t, []string{"d0", "d1", "x"}, f.rowKeys())
	f.crash() // what is owed is found again
	f.cut()
	f.commit()
	require.Equal(t, []string{"x"}, f.rowKeys())
	var deleted []string
	for _, c := range f.log {
		if c.Value == nil {
			deleted = append(deleted, c.Key)
		}
	}
	require.Equal(t, []string{"d9", "d8", "d7", "d6", "d5", "d4", "d3", "d2", "d1", "d0"}, deleted)
	require.False(t, f.cut())
}

func TestQueuedDeleteIsDroppedIfTheKeyIsWrittenAgain(t *testing.T) {
	f := newFirstStage(t, shortSettings(), wire("a", "DELIVERED", 1), wire("b", "DELIVERED", 2), wire("x", "CREATED", 8), wire("b", "CREATED", 9))
	f.cfg.DeletesPerEpoch = 1
	f.assign()
	f.step(2)
	f.step(1) // a and b are forgotten, a is deleted
	require.Equal(t, []string{"b", "x"}, f.rowKeys())
	require.NotContains(t, f.statuses(), "b")
	f.step(1)
	f.drain()
	require.Equal(t, map[string]string{"b": "CREATED", "x": "CREATED"}, f.statuses())
	require.Equal(t, sec(2), mustRow(t, f, "b").Horizon)
}

func mustRow(t *testing.T, f *firstStage, key string) *codecs.Row {
	t.Helper()
	row, err := f.cfg.Settings.Lifecycle.ReadRow(f.table[key])
	require.NoError(t, err)
	return row
}

// The committed row is live; the running epoch closes and forgets the delivery.
// If the delete waited for a later epoch, recovery would find it live.
func TestRowChangedAndForgottenInOneEpochIsDeletedInIt(t *testing.T) {
	f := newFirstStage(t, shortSettings(), wire("a", "CREATED", 1), wire("b", "DELIVERED", 1),
		wire("a", "DELIVERED", 2), wire("x", "CREATED", 9))
	f.cfg.DeletesPerEpoch = 1
	f.assign()
	f.step(2)
	f.step(2)
	require.Equal(t, []string{"x"}, f.rowKeys())
	f.crash()
	f.drain()
	require.Equal(t, map[string]string{"x": "CREATED"}, f.statuses())
	require.Equal(t, map[string]int64{"live CREATED": 1}, told(f.tallies())[""])
}

func TestForgottenAndWrittenAgainInOneEpoch(t *testing.T) {
	f := newFirstStage(t, shortSettings(), wire("a", "DELIVERED", 1), wire("x", "CREATED", 8), wire("a", "CREATED", 9), wire("a", "ASSIGNED", 10))
	f.assign()
	f.step(4)
	require.Equal(t, map[string]string{"a": "ASSIGNED", "x": "CREATED"}, f.statuses())
	require.Len(t, f.log, 3, "one record per key")
	require.Equal(t, sec(1), mustRow(t, f, "a").Horizon)
}

// Rows are found wherever they are: in the running epoch, in the committing
// one, in the cache, in the table.
func TestRowsAreFoundInEveryPlace(t *testing.T) {
	f := newFirstStage(t, eternalSettings())
	f.cfg.CachedRows = 1
	ids := []string{"a", "b", "c", "d", "e"}
	for round, name := range []string{"CREATED", "ASSIGNED", "PICKED_UP", "DELIVERING"} {
		for _, id := range ids {
			f.produce(wire(id, name, float64(round), "region", id))
		}
	}
	f.assign()
	f.consume(8)
	f.cut()
	f.consume(7)
	f.commit()
	f.consume(2)
	f.cut()
	f.commit()
	f.drain()
	for _, id := range ids {
		row := mustRow(t, f, id)
		require.Equal(t, status("DELIVERING"), row.Winner.Status)
		require.Len(t, row.Timeline, 4)
	}
	require.Equal(t, map[string]int64{"live DELIVERING": 5}, told(f.tallies())[""])
}

// A decoded event is a part of its record. Nothing of it stays in the state but
// copies: whatever is kept would keep all that was fetched with the record.
func TestStateKeepsNothingOfARecord(t *testing.T) {
	s := shortSettings()
	s.Dimensions = []codecs.Attribute{codecs.Region}
	records := []fakeRecord{
		wire("a", "CREATED", 1, "region", "seoul", "order_id", "o-a"), wire("b", "CREATED", 1, "region", "busan"),
		wire("a", "sent", 2, "event_id", "e-2"), wire("b", "DELIVERED", 2), wire("a", "DELIVERED", 3, "region", "jeju"),
		wire("c", "CREATED", 9), wire("a", "CREATED", 10, "region", "seoul"), wire("a", "ASSIGNED", 11),
	}
	want := run(t, s, records...)
	f := newFirstStage(t, s, records...)
	f.spoil = true
	f.assign()

	f.drain()

	require.Equal(t, want.table, f.table)
	require.Equal(t, want.emitted, f.emitted)
	require.NotEmpty(t, f.summaries())
}

// The story of the lost retraction: a transition was decided and its state survived,
// but the retraction that belongs to it did not. Here both are in one epoch, so
// the transition is decided again from the committed row.
func TestLostRetraction(t *testing.T) {
	for _, crash := range []string{"before the cut", "before the commit", "after the commit"} {
		t.Run(crash, func(t *testing.T) {
			f := newFirstStage(t, eternalSettings(), wire("d1", "CREATED", 1), wire("d1", "PICKED_UP", 2))
			second := newSecondStage(t, 1)
			f.assign()
			f.step(1)
			f.consume(1)
			switch crash {
			case "before the cut":
				f.crash()
			case "before the commit":
				f.cut()
				f.crash()
			case "after the commit":
				f.cut()
				f.crashAfterCommit()
			}
			f.drain()
			second.assign()
			second.feed(f.tallies()...)
			second.drain()
			require.Equal(t, map[string]int64{"live PICKED_UP": 1}, second.counts()[""])
			require.Equal(t, map[string]string{"d1": "PICKED_UP"}, f.statuses())
		})
	}
}

func TestTallyTooLargeForOneRecordComesInParts(t *testing.T) {
	s := eternalSettings()
	f := newFirstStage(t, s)
	const n = 9000
	for i := range n {
		f.produce(wire(strconv.Itoa(i), "CREATED", 1, "region", fmt.Sprintf("%0200d", i)))
	}
	f.assign()
	f.step(n)
	parts := f.tallies()
	require.Greater(t, len(parts), 1)
	for i, rec := range f.to(f.cfg.Topics.Tallies) {
		require.Less(t, len(rec.Value), exactlyonce.MaxRecordBytes)
		require.Equal(t, int32(i), parts[i].Part)
		require.Equal(t, int32(len(parts)), parts[i].Parts)
	}
	require.Equal(t, f.recount(), told(parts))

	second := newSecondStage(t, 1)
	second.feed(parts...)
	second.assign()
	second.drain()
	require.Equal(t, f.recount(), second.counts())
}

func TestConfigurationIsRequired(t *testing.T) {
	_, err := processors.NewLatestDelivery(processors.LatestDeliveryConfig{})
	require.ErrorContains(t, err, "Settings")
	require.ErrorContains(t, err, "Decoder")
	_, err = processors.NewCountPerStatus(processors.CountPerStatusConfig{})
	require.ErrorContains(t, err, "InputPartitions")
}

// An epoch is written while the callbacks of the next one change the same rows.
// The race detector watches.
func TestEpochIsWrittenBesideTheNextOne(t *testing.T) {
	f := newFirstStage(t, eternalSettings())
	const n = 200
	for round, name := range []string{"CREATED", "ASSIGNED"} {
		for i := range n {
			f.produce(wire(strconv.Itoa(i), name, float64(round), "region", strconv.Itoa(i%7+round)))
		}
	}
	f.assign()
	f.consume(n)
	f.cut()
	written := make(chan error)
	var w exactlyonce.Writer
	go func() { written <- f.frozen.epoch.Write(&w) }()
	f.consume(n)
	require.NoError(t, <-written)
	var rows int
	for key, value := range w.Rows() {
		if key != codecs.ProgressKey {
			row, err := f.cfg.Settings.Lifecycle.ReadRow(value)
			require.NoError(t, err)
			require.Equal(t, status("CREATED"), row.Winner.Status)
			rows++
		}
	}
	require.Equal(t, n, rows)
	f.commit()
	f.drain()
	require.Equal(t, map[string]int64{"live ASSIGNED": n}, told(f.tallies())[processors.AllScope])
}
