package processors_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"deliverystat/codecs"
	"deliverystat/processors"
	"deliverystat/processors/exactlyonce"
	"deliverystat/processors/market"
)

// The properties below are checked on random inputs. A failure prints how to
// run it again: go test ./processors -run NAME -rapid.seed=N.

// anyDuration draws tenths of seconds.
func anyDuration(from, to int) *rapid.Generator[time.Duration] {
	return rapid.Map(rapid.IntRange(from*10, to*10), func(n int) time.Duration { return time.Duration(n) * 100 * time.Millisecond })
}

// anySettings draws settings under which deliveries close, are abandoned and
// are forgotten within seconds.
func anySettings(t *rapid.T) *processors.Settings {
	s := &processors.Settings{
		Lifecycle:    codecs.BuiltinLifecycle(),
		OrderBy:      rapid.SampledFrom([]processors.Order{processors.ByEventTime, processors.BySequence}).Draw(t, "order"),
		Lateness:     anyDuration(1, 6).Draw(t, "lateness"),
		AbandonAfter: anyDuration(0, 15).Draw(t, "abandon"),
		MaxFuture:    anyDuration(0, 5).Draw(t, "maxFuture"),
		TerminalSkew: anyDuration(0, 2).Draw(t, "skew"),
	}
	if rapid.Bool().Draw(t, "abandonNever") {
		s.AbandonAfter = 0
	}
	s.Dimensions = rapid.SampledFrom([][]codecs.Attribute{nil, {codecs.Region}, {codecs.Service, codecs.Region}}).Draw(t, "dimensions")
	return s
}

// rulesOf are s as the reference model knows them.
func rulesOf(s *processors.Settings) market.Rules {
	return market.Rules{
		Lifecycle: s.Lifecycle, BySequence: s.OrderBy == processors.BySequence, Lateness: s.Lateness,
		AbandonAfter: s.AbandonAfter, MaxFuture: s.MaxFuture, TerminalSkew: s.TerminalSkew, Dimensions: s.Dimensions,
	}
}

var statusNames = []string{"CREATED", "ASSIGNED", "PICKED_UP", "배차지연", "DELIVERED", "CANCELLED", "ABANDONED"}

// anyInput draws the records of one partition: time goes on in uneven steps,
// events come late and twice, and some records are no events.
func anyInput(t *rapid.T, n int) []fakeRecord {
	var records []fakeRecord
	now := 0.0
	for range n {
		now += float64(rapid.SampledFrom([]int{0, 0, 1, 2, 5, 20, 80}).Draw(t, "step")) / 10
		kind := rapid.IntRange(0, 19).Draw(t, "kind")
		switch {
		case kind == 0 && len(records) > 0:
			again := rapid.SampledFrom(records).Draw(t, "again")
			records = append(records, again.arriving(now))
		case kind == 1:
			records = append(records, fakeRecord{key: "d1", value: nil}.arriving(now))
		case kind == 2:
			records = append(records, fakeRecord{key: "d1", value: []byte("{")}.arriving(now))
		default:
			records = append(records, anyRecord(t, now))
		}
	}
	return records
}

func anyRecord(t *rapid.T, now float64) fakeRecord {
	at := now - float64(rapid.SampledFrom([]int{0, 0, 0, 1, 3, 10, 30, -20}).Draw(t, "age"))/10
	fields := []string{}
	if s := rapid.IntRange(0, 3).Draw(t, "sequence"); s > 0 {
		fields = append(fields, "event_id", fmt.Sprint(s))
	}
	if r := rapid.SampledFrom([]string{"", "seoul", "busan"}).Draw(t, "region"); r != "" {
		fields = append(fields, "region", r)
	}
	if r := rapid.SampledFrom([]string{"", "a"}).Draw(t, "service"); r != "" {
		fields = append(fields, "service", r)
	}
	id := fmt.Sprintf("d%d", rapid.IntRange(1, 6).Draw(t, "id"))
	rec := wire(id, rapid.SampledFrom(statusNames).Draw(t, "status"), at, fields...).arriving(now)
	if rapid.IntRange(0, 7).Draw(t, "acceptLate") == 7 {
		rec.headers = goka.Headers{"deliverystat.accept_late": []byte("true")}
	}
	if s := rapid.IntRange(0, 4).Draw(t, "sequence"); s > 0 {
		rec.value = []byte(strings.Replace(string(rec.value), "{", fmt.Sprintf(`{"sequence":%d,`, s), 1))
	}
	return rec
}

// expectation is what the reference model says after a number of records.
type expectation struct {
	deliveries map[string]codecs.Delivery
	stream     processors.Stream
	counts     counts
}

// expectations asks the model about every prefix of the input.
func expectations(t failer, f *firstStage) []expectation {
	s := f.cfg.Settings
	m := market.NewModel(rulesOf(s))
	expect := func() expectation {
		e := expectation{
			deliveries: m.Rows(),
			stream:     processors.Stream{Clock: m.Clock, Horizon: m.Horizon, FirstRecord: m.FirstRecord, LastRecord: m.LastRecord},
			counts:     counts{},
		}
		for _, scope := range m.Scopes() {
			e.counts[scope] = map[string]int64{}
			live, closed := m.Counts(scope)
			for name, n := range live {
				if n != 0 {
					e.counts[scope]["live "+name] = int64(n)
				}
			}
			for name, n := range closed {
				if n != 0 {
					e.counts[scope]["closed "+name] = int64(n)
				}
			}
		}
		return e
	}
	all := []expectation{expect()}
	for _, rec := range f.input.records {
		m.Apply(entryOf(t, f, rec))
		all = append(all, expect())
	}
	return all
}

// entryOf is a record as the model reads it.
func entryOf(_ failer, f *firstStage, rec fakeRecord) market.Entry {
	var d codecs.Decoded
	f.cfg.Decoder.Decode(rec.decodable(), &d)
	_, accepted := rec.headers["deliverystat.accept_late"]
	e := market.Entry{Timestamp: rec.timestamp.UnixNano(), AcceptLate: accepted}
	switch {
	case d.Outcome == codecs.IsRefused:
		e.Reason = d.Reason
	case d.Outcome == codecs.IsIgnored:
	case exactlyonce.Murmur2.Partition([]byte(rec.key), f.partitions) != f.partition:
		e.Reason = codecs.WrongPartition
	default:
		e.Event = &d.Event
	}
	return e
}

// checkCommitted compares all that is committed with the model at the committed
// position.
func checkCommitted(t failer, f *firstStage, all []expectation) {
	t.Helper()
	progress := f.progress()
	want := all[progress.Next]
	require.Empty(t, cmp.Diff(want.deliveries, f.deliveries()), "rows at %d", progress.Next)
	require.Equal(t, want.stream, processors.StreamOf(progress), "stream at %d", progress.Next)
	require.Empty(t, cmp.Diff(want.counts, told(f.tallies())), "tallies at %d", progress.Next)
}

// Latest wins, conservation, crash points and recovery in one: at every commit,
// wherever epochs end and whatever crashes came before, rows, counts, clock and
// horizon are those of the reference model at the same position.
func TestPropertyStateIsAFunctionOfTheInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFirstStage(t, anySettings(t), anyInput(t, rapid.IntRange(1, 40).Draw(t, "n"))...)
		f.partitions = int32(rapid.SampledFrom([]int{1, 1, 4}).Draw(t, "partitions"))
		f.cfg.DeletesPerEpoch = rapid.IntRange(1, 3).Draw(t, "deletes")
		f.cfg.ReadsPerEpoch = rapid.IntRange(1, 3).Draw(t, "reads")
		f.cfg.CachedRows = rapid.IntRange(1, 6).Draw(t, "cached")
		f.cfg.AuditEvery = time.Second
		second := newSecondStage(t, 1)
		all := expectations(t, f)
		f.assign()
		second.assign()
		committed := false
		t.Repeat(map[string]func(*rapid.T){
			"consume": func(t *rapid.T) { f.consume(rapid.IntRange(1, 8).Draw(t, "records")) },
			"cut": func(*rapid.T) {
				if f.frozen == nil {
					f.cut()
				}
			},
			"pass": func(*rapid.T) { f.now = f.now.Add(time.Second) },
			"commit": func(*rapid.T) {
				if f.frozen != nil {
					f.commit()
					processors.AwaitRecount(f.state)
					committed = true
				}
			},
			"crash": func(*rapid.T) { f.crash() },
			"crashAfterCommit": func(*rapid.T) {
				if f.frozen != nil {
					f.crashAfterCommit()
					committed = true
				}
			},
			"count": func(t *rapid.T) {
				second.input.records = nil
				for _, rec := range f.to(f.cfg.Topics.Tallies) {
					second.feedRaw(rec.Key, rec.Value)
				}
				second.step(rapid.IntRange(0, 3).Draw(t, "tallies"))
			},
			"crashCounting": func(*rapid.T) { second.crash() },
			"": func(t *rapid.T) {
				if committed {
					checkCommitted(t, f, all)
				}
			},
		})
		if f.frozen != nil {
			f.commit()
		}
		f.drain()
		require.Equal(t, f.input.end(), f.progress().Next)
		checkCommitted(t, f, all)
		require.ElementsMatch(t, sortedKeys(f.deliveries()), f.rowKeys(), "every owed delete is written in the end")
		whole := newFirstStage(t, f.cfg.Settings, f.input.records...)
		whole.partitions = f.partitions
		whole.assign()
		whole.drain()
		require.Empty(t, cmp.Diff(whole.summaries(), f.summaries()), "summaries do not depend on epochs and crashes")
		checkLastSummaries(t, f)

		f.runAudit()
		second.input.records = nil
		for _, rec := range f.to(f.cfg.Topics.Tallies) {
			second.feedRaw(rec.Key, rec.Value)
		}
		second.drain()
		require.True(t, second.snapshot().Complete)
		require.Equal(t, []int64{f.input.end()}, second.snapshot().Position.Next)
		require.Empty(t, cmp.Diff(all[f.input.end()].counts, second.counts()))
		require.Equal(t, f.now.UnixNano(), second.snapshot().Audited)
		require.Empty(t, second.snapshot().Drift, "whatever happens, no audit finds a drift that is none")
	})
}

// Every result and reason is that of the model, in a replay in memory too.
func TestPropertyVerdicts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFirstStage(t, anySettings(t), anyInput(t, 40)...)
		m := market.NewModel(rulesOf(f.cfg.Settings))
		replay := processors.NewReplay(f.cfg.Settings)
		for i, rec := range f.input.records {
			want := m.Apply(entryOf(t, f, rec))
			var d codecs.Decoded
			record := rec.decodable()
			f.cfg.Decoder.Decode(record, &d)
			got := replay.Apply(record, &d, false)
			require.Equal(t, string(want.Result), got.Result.String(), "record %d", i)
			require.Equal(t, want.Reason, got.Reason, "record %d", i)
			require.Equal(t, m.Horizon, replay.Stream().Horizon)
			var sum int64
			for _, sc := range replay.Counts() {
				if sc.Scope == processors.AllScope {
					for _, n := range sc.Counts {
						require.GreaterOrEqual(t, min(n.Live, n.Closed), int64(0))
						sum += n.Live + n.Closed
					}
				}
			}
			require.Equal(t, int64(len(m.Rows())), sum)
		}
		ids := map[string]codecs.Delivery{}
		at := replay.Stream()
		for id, row := range replay.Rows() {
			require.Equal(t, row, replay.Row(id))
			d, ok := f.cfg.Settings.Deliver(id, row, &codecs.Progress{
				Clock: at.Clock, Horizon: at.Horizon, FirstRecord: at.FirstRecord, LastRecord: at.LastRecord,
			})
			require.True(t, ok)
			ids[id] = d
		}
		require.Empty(t, cmp.Diff(m.Rows(), ids))
	})
}

// Events of one delivery give the same row in whatever order they arrive, and
// however often.
func TestPropertyObserveCommutes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySettings(t)
		events := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) *codecs.Event {
			e := event(rapid.SampledFrom([]string{"UNKNOWN", "CREATED", "ASSIGNED", "DELIVERED", "FAILED"}).Draw(t, "status"),
				float64(rapid.IntRange(0, 3).Draw(t, "at")))
			e.Sequence = rapid.Int64Range(0, 2).Draw(t, "sequence")
			e.EventID = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "eventID")
			e.RawStatus = rapid.SampledFrom([]string{"", "x"}).Draw(t, "raw")
			for a := range e.Attributes {
				e.Attributes[a] = rapid.SampledFrom([]string{"", "p", "q"}).Draw(t, "attribute")
			}
			e.Hash = contentHash(e)
			return e
		}), 1, 8).Draw(t, "events")
		want := fold(s, events...)
		require.Empty(t, cmp.Diff(want, fold(s, rapid.Permutation(events).Draw(t, "permuted")...)))
		require.Empty(t, cmp.Diff(want, fold(s, append(events, events...)...)))
	})
}

// contentHash tells events of different content apart, as the decoder's does.
func contentHash(e *codecs.Event) uint64 { return codecs.BuiltinLifecycle().HashEvent(e) }
