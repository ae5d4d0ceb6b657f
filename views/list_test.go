package views_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"deliverystat/codecs"
	"deliverystat/processors"
	"deliverystat/processors/exactlyonce"
	"deliverystat/views"
)

// modelled is a live delivery as the dumb model knows it.
type modelled struct {
	id, region, order string
	partition         int32
	status            codecs.Status
	since             int64
}

func (m modelled) change() exactlyonce.Change {
	row := codecs.Row{
		Winner:   codecs.OrderKey{OccurredAt: m.since, Status: m.status},
		Timeline: []codecs.StatusTimes{{Status: m.status, First: m.since, Last: m.since}},
		Horizon:  codecs.None,
	}
	row.Attributes[codecs.Region].Value, row.Attributes[codecs.OrderID].Value = m.region, m.order
	return exactlyonce.Change{Key: m.id, Value: codecs.BuiltinLifecycle().AppendRow(nil, &row)}
}

func listed(t require.TestingT, table *fakeTable) *views.Deliveries {
	settings := processors.DefaultSettings()
	settings.Dimensions = []codecs.Attribute{codecs.Region}
	deliveries, err := views.NewDeliveries(views.DeliveriesConfig{Settings: settings, Logger: quiet()}, table.follow)
	require.NoError(t, err)
	return deliveries
}

// Whatever is asked, the pages together are what a filter over all live rows
// finds, in order, and every total is their number.
func TestPropertyListsAreWhatAFilterFinds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const partitions = 3
		table := newFakeTable(partitions)
		table.recovered.Store(true)
		deliveries := listed(t, table)
		lifecycle := codecs.BuiltinLifecycle()
		regions, orders := []string{"", "a", "b", "ab"}, []string{"", "O-1", "O-2"}
		live := map[string]modelled{} // by partition and ID
		next := make([]int64, partitions)
		for p := range int32(partitions) {
			table.write(p, progress(lifeA, 0, epoch))
		}
		for range rapid.IntRange(0, 60).Draw(t, "epochs") {
			p := rapid.Int32Range(0, partitions-1).Draw(t, "partition")
			var rows []exactlyonce.Change
			for range rapid.IntRange(0, 4).Draw(t, "rows") {
				m := modelled{
					id:     fmt.Sprintf("D-%d", rapid.IntRange(0, 12).Draw(t, "id")), // the same ID in several partitions too
					region: rapid.SampledFrom(regions).Draw(t, "region"), order: rapid.SampledFrom(orders).Draw(t, "order"),
					partition: p, status: codecs.Status(rapid.IntRange(0, 8).Draw(t, "status")), // one of them terminal
					since: epoch + int64(rapid.IntRange(0, 9).Draw(t, "since")),
				}
				key := fmt.Sprint(p, m.id)
				if rapid.IntRange(0, 5).Draw(t, "gone") == 0 {
					delete(live, key)
					rows = append(rows, gone(m.id))
					continue
				}
				delete(live, key)
				if !lifecycle.Terminal(m.status) {
					live[key] = m
				}
				rows = append(rows, m.change())
			}
			next[p]++
			table.write(p, append(rows, progress(lifeA, next[p], epoch))...)
		}

		q := codecs.LiveQuery{
			OldestFirst: rapid.Bool().Draw(t, "oldest first"), Before: epoch + int64(rapid.IntRange(0, 10).Draw(t, "before")),
			OrderID: rapid.SampledFrom(orders).Draw(t, "of order"), Limit: rapid.IntRange(1, 9).Draw(t, "limit"),
		}
		if rapid.Bool().Draw(t, "in a region") {
			q.Dimension, q.Value = "region", rapid.SampledFrom(append(regions, "nowhere")).Draw(t, "which")
		}
		if rapid.Bool().Draw(t, "with a status") {
			status := codecs.Status(rapid.IntRange(0, 6).Draw(t, "this"))
			q.Status = &status
		}
		var want []string
		for _, m := range slices.SortedFunc(mapValues(live), func(a, b modelled) int {
			if q.OldestFirst && a.since != b.since {
				return cmp.Compare(a.since, b.since)
			}
			return cmp.Or(strings.Compare(a.id, b.id), cmp.Compare(a.partition, b.partition))
		}) {
			if (q.Status == nil || *q.Status == m.status) && (q.Dimension == "" || q.Value == m.region) &&
				(q.OrderID == "" || q.OrderID == m.order) && (!q.OldestFirst || m.since < q.Before) {
				want = append(want, fmt.Sprint(m.id, lifecycle.Name(m.status), m.region, m.order, m.since))
			}
		}
		var got []string
		for {
			page, ready := deliveries.List(context.Background(), &q)
			require.True(t, ready)
			require.EqualValues(t, len(want), page.Total)
			require.Equal(t, codecs.Position{TopicID: lifeA, Next: next}, page.At.Position)
			for _, d := range page.Deliveries {
				got = append(got, fmt.Sprint(d.ID, lifecycle.Name(d.Status), d.Attributes[codecs.Region], d.Attributes[codecs.OrderID], d.Since))
			}
			if q.After = page.Next; q.After == nil {
				break
			}
			require.Len(t, page.Deliveries, q.Limit)
		}
		require.Equal(t, want, got)
	})
}

func mapValues(m map[string]modelled) func(func(modelled) bool) {
	return func(yield func(modelled) bool) {
		for _, v := range m {
			if !yield(v) {
				return
			}
		}
	}
}

func TestListLeavesOutWhatTheClockAbandoned(t *testing.T) {
	table := newFakeTable(2)
	deliveries := listed(t, table)
	_, ready := deliveries.List(t.Context(), &codecs.LiveQuery{Limit: 1})
	require.False(t, ready, "not recovered")
	table.recovered.Store(true)
	table.write(0, rowIn(t, "a", "CREATED", epoch), progress(lifeA, 1, epoch))
	_, ready = deliveries.List(t.Context(), &codecs.LiveQuery{Limit: 1})
	require.False(t, ready, "partition 1 was never processed")
	table.write(1, rowIn(t, "b", "CREATED", epoch), progress(lifeA, 1, epoch+168*hour+1))
	page, ready := deliveries.List(t.Context(), &codecs.LiveQuery{Limit: 9})
	require.True(t, ready)
	require.EqualValues(t, 1, page.Total)
	require.Equal(t, "a", page.Deliveries[0].ID)
	require.Equal(t, codecs.Reflected{Position: codecs.Position{TopicID: lifeA, Next: []int64{1, 1}}, EventTime: epoch + 168*hour + 1}, page.At)
}

// The index is told a batch before the table shows it: rows are never older than
// the position says.
func TestListWaitsUntilTheTableShowsWhatTheIndexHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newFakeTable(1)
		table.recovered.Store(true)
		deliveries := listed(t, table)
		table.write(0, rowIn(t, "a", "CREATED", epoch), progress(lifeA, 1, epoch))
		table.hold = make(chan struct{})
		assigned, picked := rowIn(t, "a", "ASSIGNED", epoch+1), rowIn(t, "a", "PICKED_UP", epoch+2)
		go table.write(0, assigned, progress(lifeA, 2, epoch))
		synctest.Wait()
		time.AfterFunc(500*time.Millisecond, func() { table.hold <- struct{}{} })
		page, ready := deliveries.List(t.Context(), &codecs.LiveQuery{Limit: 9})
		require.True(t, ready)
		require.Equal(t, []int64{2}, page.At.Next)
		require.Equal(t, status(t, "ASSIGNED"), page.Deliveries[0].Status)

		// One that never does is no answer, and holds nothing up for ever.
		go table.write(0, picked, progress(lifeA, 3, epoch))
		synctest.Wait()
		_, ready = deliveries.List(t.Context(), &codecs.LiveQuery{Limit: 9})
		require.False(t, ready)
		table.hold <- struct{}{}
	})
}

func TestTotalsAreTheStuckDeliveries(t *testing.T) {
	table := newFakeTable(1)
	table.recovered.Store(true)
	deliveries := listed(t, table)
	table.write(0, rowIn(t, "a", "CREATED", epoch), rowIn(t, "b", "CREATED", epoch+1), rowIn(t, "c", "CREATED", epoch+2), progress(lifeA, 3, epoch))
	created := status(t, "CREATED")
	for offset, want := range []int64{0, 1, 2, 3} {
		now := time.Unix(0, epoch+int64(offset)).Add(time.Minute)
		stuck, _ := deliveries.Stuck(now, map[codecs.Status]time.Duration{created: time.Minute})
		page, _ := deliveries.List(t.Context(), &codecs.LiveQuery{
			Status: &created, OldestFirst: true, Before: now.Add(-time.Minute).UnixNano(), Limit: 1,
		})
		require.Equal(t, want, page.Total)
		require.Equal(t, want, stuck[created])
	}
}

// Batches move a delivery between partitions' tables while lists are read: each
// list is of one instant.
func TestListsAreOfOnePositionWhileTheTableMoves(t *testing.T) {
	t.Parallel()
	table := newFakeTable(2)
	table.recovered.Store(true)
	deliveries := listed(t, table)
	write := func(p int32, n int64) {
		rows := make([]exactlyonce.Change, 0, 6)
		for i := range 5 {
			rows = append(rows, modelled{id: fmt.Sprint("D-", p, i), since: epoch + n, region: "a"}.change())
		}
		table.write(p, append(rows, progress(lifeA, n, epoch))...)
	}
	write(0, 0)
	write(1, 0)
	stop := make(chan struct{})
	var writers, readers sync.WaitGroup
	for p := range int32(2) {
		writers.Go(func() {
			for n := int64(1); ; n++ {
				select {
				case <-stop:
					return
				default:
					write(p, n)
				}
			}
		})
	}
	for range 4 {
		readers.Go(func() {
			for range 200 {
				page, ready := deliveries.List(context.Background(), &codecs.LiveQuery{Dimension: "region", Value: "a", Limit: 10})
				if !ready || page.Total != 10 || len(page.Deliveries) != 10 {
					t.Errorf("ready %v, %d of %d", ready, len(page.Deliveries), page.Total)
					return
				}
				for i, d := range page.Deliveries {
					if d.Since != epoch+page.At.Next[i/5] {
						t.Errorf("%s is of %d, the list of %v", d.ID, d.Since-epoch, page.At.Next)
						return
					}
				}
			}
		})
	}
	readers.Wait()
	close(stop)
	writers.Wait()
}
