package codecs_test

import (
	"math"

	"pgregory.net/rapid"

	"deliverystat/codecs"
)

// Generators of the values that the service writes.

var (
	anyTime     = rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, -1, codecs.None + 1, math.MaxInt64}))
	anyNoneTime = rapid.OneOf(anyTime, rapid.Just(int64(codecs.None)))
	anyOffset   = rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, -1, 1 << 40}))
	anyText     = rapid.OneOf(rapid.Just(""), rapid.StringN(0, 20, 256), rapid.SampledFrom([]string{"서울", "courier-a"}))
	anyHash     = rapid.OneOf(rapid.Uint64(), rapid.Just(uint64(0)))
)

// anyStatus draws a status that an event can have: not ABANDONED.
func anyStatus(l *codecs.Lifecycle) *rapid.Generator[codecs.Status] {
	return rapid.Custom(func(t *rapid.T) codecs.Status {
		return codecs.Status(rapid.IntRange(0, int(l.Abandoned())-1).Draw(t, "status"))
	})
}

func anyOrderKey(l *codecs.Lifecycle) *rapid.Generator[codecs.OrderKey] {
	return rapid.Custom(func(t *rapid.T) codecs.OrderKey {
		return codecs.OrderKey{
			OccurredAt: anyTime.Draw(t, "occurred_at"),
			Status:     anyStatus(l).Draw(t, "status"),
			Sequence:   anyOffset.Draw(t, "sequence"),
			EventID:    anyText.Draw(t, "event_id"),
			Hash:       anyHash.Draw(t, "hash"),
		}
	})
}

func anyRow(l *codecs.Lifecycle) *rapid.Generator[*codecs.Row] {
	return rapid.Custom(func(t *rapid.T) *codecs.Row {
		r := &codecs.Row{
			Winner:    anyOrderKey(l).Draw(t, "winner"),
			RawStatus: anyText.Draw(t, "raw"),
			Horizon:   anyNoneTime.Draw(t, "horizon"),
		}
		for a := range r.Attributes {
			r.Attributes[a].Value = anyText.Draw(t, "attribute")
			if rapid.Bool().Draw(t, "keyed") {
				k := anyOrderKey(l).Draw(t, "key")
				r.Attributes[a].Key = &k
			}
		}
		for s := codecs.Unknown; s < l.Abandoned(); s++ {
			if rapid.Bool().Draw(t, "seen") {
				first := anyTime.Draw(t, "first")
				last := rapid.OneOf(rapid.Just(first), anyTime).Draw(t, "last")
				r.Timeline = append(r.Timeline, codecs.StatusTimes{Status: s, First: first, Last: last})
			}
		}
		if rapid.Bool().Draw(t, "summarized") {
			r.Summarized = codecs.Closing{
				Status:   rapid.OneOf(anyStatus(l), rapid.Just(l.Abandoned())).Draw(t, "closing"),
				ClosedAt: anyTime.Draw(t, "closed_at"),
			}
		}
		return r
	})
}

var anyProgress = rapid.Custom(func(t *rapid.T) *codecs.Progress {
	p := &codecs.Progress{
		TopicID:     anyText.Draw(t, "topic"),
		Next:        anyOffset.Draw(t, "next"),
		Position:    anyOffset.Draw(t, "position"),
		Clock:       anyNoneTime.Draw(t, "clock"),
		Horizon:     anyNoneTime.Draw(t, "horizon"),
		FirstRecord: anyNoneTime.Draw(t, "first"),
		LastRecord:  anyNoneTime.Draw(t, "last"),
	}
	for range rapid.IntRange(0, 5).Draw(t, "settings") {
		p.Settings = append(p.Settings, codecs.Setting{Name: anyText.Draw(t, "name"), Value: anyText.Draw(t, "value")})
	}
	return p
})

var anyCountsProgress = rapid.Custom(func(t *rapid.T) *codecs.CountsProgress {
	p := &codecs.CountsProgress{TopicID: anyText.Draw(t, "topic"), Next: anyOffset.Draw(t, "next")}
	for range rapid.IntRange(0, 5).Draw(t, "partitions") {
		p.Partitions = append(p.Partitions, codecs.PartitionCounts{
			Partition:    rapid.Int32().Draw(t, "partition"),
			TopicID:      anyText.Draw(t, "topic"),
			Position:     anyOffset.Draw(t, "position"),
			Clock:        anyNoneTime.Draw(t, "clock"),
			Horizon:      anyNoneTime.Draw(t, "horizon"),
			SettingsHash: anyHash.Draw(t, "hash"),
			Full:         rapid.Bool().Draw(t, "full"),
			Audit: codecs.Audit{
				At: anyNoneTime.Draw(t, "audited"), Rows: anyStatusCounts.Draw(t, "rows"), Table: anyStatusCounts.Draw(t, "table"),
			},
		})
	}
	return p
})

var anyStatusCounts = rapid.Custom(func(t *rapid.T) []codecs.StatusCount {
	var counts []codecs.StatusCount
	for range rapid.IntRange(0, 6).Draw(t, "statuses") {
		counts = append(counts, codecs.StatusCount{
			Status: anyText.Draw(t, "status"), Live: anyOffset.Draw(t, "live"), Closed: anyOffset.Draw(t, "closed"),
		})
	}
	return counts
})

var anyTally = rapid.Custom(func(t *rapid.T) *codecs.Tally {
	tally := &codecs.Tally{
		Partition:    rapid.Int32().Draw(t, "partition"),
		TopicID:      anyText.Draw(t, "topic"),
		Full:         rapid.Bool().Draw(t, "full"),
		Part:         rapid.Int32().Draw(t, "part"),
		Parts:        rapid.Int32().Draw(t, "parts"),
		Position:     anyOffset.Draw(t, "position"),
		Clock:        anyNoneTime.Draw(t, "clock"),
		Horizon:      anyNoneTime.Draw(t, "horizon"),
		SettingsHash: anyHash.Draw(t, "hash"),
		Check:        rapid.Bool().Draw(t, "check"),
		Audited:      anyNoneTime.Draw(t, "audited"),
		Drift:        anyStatusCounts.Draw(t, "drift"),
	}
	for range rapid.IntRange(0, 8).Draw(t, "scopes") {
		tally.Scopes = append(tally.Scopes, codecs.ScopeCounts{
			Scope: anyText.Draw(t, "scope"), Counts: anyStatusCounts.Draw(t, "counts"),
		})
	}
	return tally
})
