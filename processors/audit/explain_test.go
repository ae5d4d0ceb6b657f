package audit_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"deliverystat/codecs"
	"deliverystat/processors"
	"deliverystat/processors/audit"
	"deliverystat/processors/market"
	"deliverystat/processors/processorstest"
)

func decoder(t require.TestingT) *codecs.Decoder {
	d, err := codecs.NewDecoder(codecs.FormatAuto, codecs.BuiltinLifecycle())
	require.NoError(t, err)
	return d
}

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

// standing is what a reader of steps knows of a row: "" is none.
func standing(steps []audit.Step) string {
	state := ""
	for _, s := range steps {
		switch s.What {
		case "applied":
			if state == "" {
				state = "live"
			}
		case audit.Closed, audit.Abandoned:
			state = "closed"
		case audit.Reopened:
			state = "live"
		case audit.Forgotten:
			state = ""
		}
	}
	return state
}

// For random inputs, with marks on late events, each decision and the row are
// those of the reference model after every record, and the steps alone tell
// whether the row is live, closed or none.
func TestPropertyExplanationsAgreeWithTheModel(t *testing.T) {
	d := decoder(t)
	rapid.Check(t, func(t *rapid.T) {
		rules := processorstest.Rules().Draw(t, "rules")
		records := processorstest.Records(50).Draw(t, "records")
		s := settingsOf(rules)
		model := market.NewModel(rules)
		x := audit.NewExplanation(s, d, "d0")
		for i, r := range records {
			rec := processorstest.LogRecord{Record: r}
			if rapid.IntRange(0, 7).Draw(t, "accept late") == 7 {
				rec.Headers = func() []codecs.Header {
					return []codecs.Header{{Key: "deliverystat.accept_late", Value: []byte("true")}}
				}
			}
			verdict := model.Apply(processorstest.Entry(d, &rec, false))
			said := len(x.Steps)
			x.Record(int64(i), &codecs.Record{Key: r.Key, Value: r.Value, Headers: rec.Headers, Timestamp: r.Timestamp.UnixNano()}, false)

			want, exists := model.Rows()["d0"]
			got, found := x.Delivery()
			require.Equal(t, exists, found, "record %d\n%s", i, processorstest.Describe(records))
			require.Empty(t, cmp.Diff(want, got), "record %d\n%s", i, processorstest.Describe(records))
			state := map[bool]string{false: "live", true: "closed"}[want.Closed]
			if !exists {
				state = ""
			}
			require.Equal(t, state, standing(x.Steps), "record %d\n%s\n%+v", i, processorstest.Describe(records), x.Steps)
			var own []audit.Step
			for _, step := range x.Steps[said:] {
				require.Equal(t, int64(i), step.Offset)
				require.NotEmpty(t, step.Why)
				if step.Own {
					own = append(own, step)
				}
			}
			if r.Key != "d0" {
				require.Empty(t, own)
				continue
			}
			require.Len(t, own, 1)
			require.Equal(t, verdict.Reason, own[0].Reason)
			switch verdict.Result {
			case market.DeadLetter:
				require.Contains(t, []string{"late", "refused"}, own[0].What)
			default:
				require.Equal(t, string(verdict.Result), own[0].What)
			}
		}
	})
}

// told is what the steps of an explanation say, as what and why.
func told(x *audit.Explanation) [][2]string {
	var said [][2]string
	for _, s := range x.Steps {
		said = append(said, [2]string{s.What, s.Why})
	}
	return said
}

// The words of each decision and of each turn of a row, in one story.
func TestExplanationsInWords(t *testing.T) {
	s := processors.DefaultSettings()
	s.Lateness, s.AbandonAfter, s.MaxFuture = 10*time.Second, 60*time.Second, time.Hour
	x := audit.NewExplanation(s, decoder(t), "a")
	offset := int64(0)
	send := func(id, status string, at, recorded int, headers ...codecs.Header) {
		occurred := noon.Add(time.Duration(at) * time.Second).Format(time.RFC3339)
		r := &codecs.Record{
			Key: id, Value: []byte(`{"delivery_id":"` + id + `","status":"` + status + `","occurred_at":"` + occurred + `"}`),
			Headers: func() []codecs.Header { return headers }, Timestamp: noon.Add(time.Duration(recorded) * time.Second).UnixNano(),
		}
		x.Record(offset, r, false)
		offset++
	}
	send("a", "CREATED", 0, 0)
	send("a", "DELIVERING", 3, 3)
	send("a", "PICKED_UP", 1, 4)
	send("a", "PICKED_UP", 1, 4)
	send("a", "DELIVERING", 3, 5)
	send("a", "ASSIGNED", 3, 5)
	x.Record(offset, &codecs.Record{Key: "a", Timestamp: noon.UnixNano()}, false)
	offset++
	x.Record(offset, &codecs.Record{Key: "a", Value: []byte("{"), Timestamp: noon.UnixNano()}, false)
	offset++
	send("a", "DELIVERED", 5, 6)
	send("a", "RETURNING", 6, 6)
	send("b", "CREATED", 67, 67)
	send("b", "ASSIGNED", 77, 77)
	send("a", "PICKED_UP", 1, 78)
	send("a", "PICKED_UP", 1, 78, codecs.Header{Key: "deliverystat.accept_late", Value: []byte("true")})

	require.Equal(t, [][2]string{
		{"applied", "it is the first event of the delivery"},
		{"applied", "2026-11-30T12:00:03Z DELIVERING orders after 2026-11-30T12:00:00Z CREATED by event time"},
		{"stale", "2026-11-30T12:00:01Z PICKED_UP orders before 2026-11-30T12:00:03Z DELIVERING by event time; it adds to the row's timeline or attributes"},
		{"stale", "2026-11-30T12:00:01Z PICKED_UP orders before 2026-11-30T12:00:03Z DELIVERING by event time; the row knew all it says"},
		{"duplicate", "it is the newest event once more"},
		{"stale", "2026-11-30T12:00:03Z ASSIGNED orders before 2026-11-30T12:00:03Z DELIVERING by rank in the lifecycle; it adds to the row's timeline or attributes"},
		{"ignored", "such a record says nothing of a delivery"},
		{"refused", x.Steps[7].Why},
		{"applied", "2026-11-30T12:00:05Z DELIVERED orders after 2026-11-30T12:00:03Z DELIVERING by event time"},
		{"closed", "DELIVERED at 2026-11-30T12:00:05Z ends the delivery"},
		{"applied", "2026-11-30T12:00:06Z RETURNING orders after 2026-11-30T12:00:05Z DELIVERED by event time"},
		{"re-opened", "it is RETURNING, after it was DELIVERED"},
		{"abandoned", "no event since 2026-11-30T12:00:06Z, and the clock of the partition, 2026-11-30T12:01:07Z, is more than abandon-after 1m0s past it"},
		{"forgotten", "it ended at 2026-11-30T12:01:06Z, and the clock of the partition, 2026-11-30T12:01:17Z, is more than allowed-lateness 10s past that; the horizon is 2026-11-30T12:00:06Z"},
		{"late", "the order time 2026-11-30T12:00:01Z is not after 2026-11-30T12:00:06Z, up to which deliveries may have been forgotten"},
		{"applied", "it is the first event of the delivery; it is late, and marked to be applied all the same"},
		{"abandoned", "no event since 2026-11-30T12:00:01Z, and the clock of the partition, 2026-11-30T12:01:17Z, is more than abandon-after 1m0s past it"},
		{"forgotten", "it ended at 2026-11-30T12:01:01Z, and the clock of the partition, 2026-11-30T12:01:17Z, is more than allowed-lateness 10s past that; the horizon is 2026-11-30T12:00:06Z"},
	}, told(x))
	require.Equal(t, codecs.Unreadable, x.Steps[7].Reason)
	require.Nil(t, x.Steps[7].Event)
	require.Equal(t, int64(10), x.Steps[12].Offset, "the record of the other delivery that moved the clock")
}

// An event that ends its delivery too long ago is applied and forgotten at once:
// that does not make it late.
func TestAnEventThatIsForgottenAtOnceIsNotCalledLate(t *testing.T) {
	s := processors.DefaultSettings()
	x := audit.NewExplanation(s, decoder(t), "a")
	for offset, e := range []struct {
		id, status string
		at         time.Duration
	}{{"b", "CREATED", -48 * time.Hour}, {"b", "ASSIGNED", 0}, {"a", "DELIVERED", -30 * time.Hour}} {
		value := `{"delivery_id":"` + e.id + `","status":"` + e.status + `","occurred_at":"` + noon.Add(e.at).Format(time.RFC3339) + `"}`
		x.Record(int64(offset), &codecs.Record{Key: e.id, Value: []byte(value), Timestamp: noon.Add(max(e.at, -25*time.Hour)).UnixNano()}, false)
		if offset == 0 { // the record times span the lateness
			x.Record(0, &codecs.Record{Key: "c", Timestamp: noon.UnixNano()}, false)
		}
	}
	require.Equal(t, [][2]string{
		{"applied", "it is the first event of the delivery"},
		{"closed", "DELIVERED at 2026-11-29T06:00:00Z ends the delivery"},
		{"forgotten", "it ended at 2026-11-29T06:00:00Z, and the clock of the partition, 2026-11-30T12:00:00Z, is more than allowed-lateness 24h0m0s past that; the horizon is 2026-11-29T06:00:00Z"},
	}, told(x))
}

// A row of the table that another position, or somebody else, has made is found
// out.
func TestExplanationsCompareWithTheTable(t *testing.T) {
	s := settings()
	x := audit.NewExplanation(s, decoder(t), "a")
	value := []byte(`{"delivery_id":"a","status":"CREATED","occurred_at":"2026-11-30T12:00:00Z","region":"seoul"}`)
	x.Record(0, &codecs.Record{Key: "a", Value: value, Timestamp: noon.UnixNano()}, false)
	at := &codecs.Progress{Clock: noon.UnixNano(), Horizon: codecs.None, FirstRecord: noon.UnixNano(), LastRecord: noon.UnixNano()}
	read := func(b []byte) *codecs.Row {
		r, err := s.Lifecycle.ReadRow(b)
		require.NoError(t, err)
		return r
	}

	require.Empty(t, x.Compare(read(row(t, "CREATED", "seoul", 0)), at))
	require.Equal(t, "region is busan in the table and seoul by the events", x.Compare(read(row(t, "CREATED", "busan", 0)), at))
	require.Equal(t, "status is ASSIGNED in the table and CREATED by the events; timeline of CREATED is nothing in the table and "+
		"2026-11-30T12:00:00Z to 2026-11-30T12:00:00Z by the events; timeline of ASSIGNED is 2026-11-30T12:00:00Z to 2026-11-30T12:00:00Z "+
		"in the table and nothing by the events", x.Compare(read(row(t, "ASSIGNED", "seoul", 0)), at))
	require.Equal(t, "the table has no row, the events lead to one", x.Compare(nil, at))
	require.Equal(t, "the table has a row, the events lead to none",
		audit.NewExplanation(s, decoder(t), "a").Compare(read(row(t, "CREATED", "seoul", 0)), at))
}
