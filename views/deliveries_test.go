package views_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/processors"
	"deliverystat/processors/exactlyonce"
	"deliverystat/views"
)

const (
	hour   = int64(time.Hour)
	second = int64(time.Second)
	// epoch is when the deliveries of these tests begin.
	epoch = 1_800_000_000 * second
)

func newDeliveries(t *testing.T, table *fakeTable) *views.Deliveries {
	t.Helper()
	deliveries, err := views.NewDeliveries(views.DeliveriesConfig{
		Settings: processors.DefaultSettings(), // abandoned after 168h, forgotten after 24h
		Logger:   quiet(),
	}, table.follow)
	require.NoError(t, err)
	return deliveries
}

func status(t *testing.T, name string) codecs.Status {
	t.Helper()
	s, ok := codecs.BuiltinLifecycle().Lookup(name)
	require.True(t, ok, name)
	return s
}

// rowIn is a row whose only event gave it the named status at a time.
func rowIn(t *testing.T, id, name string, at int64) exactlyonce.Change {
	t.Helper()
	s := status(t, name)
	return exactlyonce.Change{Key: id, Value: codecs.BuiltinLifecycle().AppendRow(nil, &codecs.Row{
		Winner:   codecs.OrderKey{OccurredAt: at, Status: s},
		Timeline: []codecs.StatusTimes{{Status: s, First: at, Last: at}},
		Horizon:  codecs.None,
	})}
}

func gone(id string) exactlyonce.Change { return exactlyonce.Change{Key: id} }

// progress is the progress row of a partition whose records span 48 hours.
func progress(topicID string, position, clock int64) exactlyonce.Change {
	return exactlyonce.Change{Key: codecs.ProgressKey, Value: codecs.AppendProgress(nil, &codecs.Progress{
		TopicID: topicID, Next: position, Position: position, Clock: clock, Horizon: codecs.None,
		FirstRecord: epoch - 48*hour, LastRecord: epoch,
	})}
}

// idIn returns an ID whose key belongs to partition among n.
func idIn(partition, n int32) string {
	id := "D-0"
	for exactlyonce.Murmur2.Partition([]byte(id), n) != partition {
		id += "0"
	}
	return id
}

func TestDeliveriesAreNotReadyBeforeEveryPartitionIsKnown(t *testing.T) {
	table := newFakeTable(2)
	deliveries := newDeliveries(t, table)
	id := idIn(0, 2)
	table.write(0, rowIn(t, id, "CREATED", epoch), progress(lifeA, 1, epoch))
	_, _, found, ready := deliveries.Get(id)
	require.False(t, found)
	require.False(t, ready, "not recovered")
	require.Equal(t, []int64{100, 101}, deliveries.Remaining())

	table.recovered.Store(true)
	require.Equal(t, []int64{0, 0}, deliveries.Remaining())
	_, _, found, ready = deliveries.Get(id)
	require.True(t, found)
	require.True(t, ready)
	_, _, _, ready = deliveries.Get("D-unknown")
	require.False(t, ready, "partition 1 was never processed, so nobody can say that it is not there")
	_, ok := deliveries.Position()
	require.False(t, ok)

	table.write(1, progress(lifeA, 0, codecs.None))
	_, at, found, ready := deliveries.Get("D-unknown")
	require.False(t, found)
	require.True(t, ready)
	require.Equal(t, codecs.Reflected{Position: codecs.Position{TopicID: lifeA, Next: []int64{1, 0}}, EventTime: epoch}, at)
}

func TestDeliveriesAreFoundInAnyPartition(t *testing.T) {
	table := newFakeTable(3)
	table.recovered.Store(true)
	deliveries := newDeliveries(t, table)
	id := idIn(0, 3)
	table.write(0, progress(lifeA, 10, epoch))
	table.write(1, progress(lifeA, 11, epoch))
	// The producer's key was wrapped, so it has another hash.
	table.write(2, rowIn(t, id, "PICKED_UP", epoch), progress(lifeA, 12, epoch+1))
	d, at, found, ready := deliveries.Get(id)
	require.True(t, ready)
	require.True(t, found)
	require.Equal(t, status(t, "PICKED_UP"), d.Status)
	require.Equal(t, epoch, d.Since)
	require.Equal(t, codecs.Reflected{Position: codecs.Position{TopicID: lifeA, Next: []int64{-1, -1, 12}}, EventTime: epoch + 1}, at)
}

func TestDeliveriesAreJudgedByTheClockOfTheirPartition(t *testing.T) {
	for name, test := range map[string]struct {
		row    string
		clock  int64
		found  bool
		status string
		closed bool
	}{
		"live":               {"DELIVERING", epoch + 168*hour, true, "DELIVERING", false},
		"abandoned":          {"DELIVERING", epoch + 168*hour + 1, true, "ABANDONED", true},
		"abandoned, gone":    {"DELIVERING", epoch + 192*hour + 1, false, "", false},
		"closed":             {"DELIVERED", epoch + 24*hour, true, "DELIVERED", true},
		"closed and gone":    {"DELIVERED", epoch + 24*hour + 1, false, "", false},
		"clock of the event": {"CREATED", epoch, true, "CREATED", false},
	} {
		t.Run(name, func(t *testing.T) {
			table := newFakeTable(1)
			table.recovered.Store(true)
			deliveries := newDeliveries(t, table)
			table.write(0, rowIn(t, "D", test.row, epoch), progress(lifeA, 1, epoch))
			table.write(0, progress(lifeA, 2, test.clock))
			d, _, found, ready := deliveries.Get("D")
			require.True(t, ready)
			require.Equal(t, test.found, found)
			if found {
				require.Equal(t, status(t, test.status), d.Status)
				require.Equal(t, test.closed, d.Closed)
			}
		})
	}
}

func TestDeliveriesReservedKeyIsNoDelivery(t *testing.T) {
	table := newFakeTable(1)
	table.recovered.Store(true)
	deliveries := newDeliveries(t, table)
	table.write(0, progress(lifeA, 1, epoch))
	_, _, found, ready := deliveries.Get(codecs.ProgressKey)
	require.False(t, found)
	require.True(t, ready)
}

func TestDeliveriesUnreadableRowIsNotAbsent(t *testing.T) {
	table := newFakeTable(1)
	table.recovered.Store(true)
	deliveries := newDeliveries(t, table)
	table.write(0, exactlyonce.Change{Key: "D", Value: []byte{0xff}}, progress(lifeA, 1, epoch))
	_, _, found, ready := deliveries.Get("D")
	require.False(t, found)
	require.False(t, ready)
}

func TestDeliveriesWaitUntilReadsReflectAPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newFakeTable(2)
		table.recovered.Store(true)
		deliveries := newDeliveries(t, table)
		table.write(0, progress(lifeA, 5, epoch))

		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, deliveries.Wait(ended, codecs.Position{Next: []int64{5, -1}}))
		require.ErrorIs(t, deliveries.Wait(ended, codecs.Position{Next: []int64{6, -1}}), context.Canceled)
		require.ErrorIs(t, deliveries.Wait(ended, codecs.Position{Next: []int64{-1, 0}}), context.Canceled)
		require.ErrorIs(t, deliveries.Wait(ended, codecs.Position{Next: []int64{5, -1, 1}}), context.Canceled)

		done := make(chan bool, 1)
		go func() {
			if deliveries.Wait(t.Context(), codecs.Position{Next: []int64{6, 2}}) == nil {
				_, at, found, _ := deliveries.Get("D")
				done <- found && at.Next[0] == 6
			}
		}()
		synctest.Wait()
		table.write(1, progress(lifeA, 2, epoch))
		synctest.Wait()
		require.Empty(t, done)

		// Announced is not yet visible.
		table.hold = make(chan struct{})
		row := rowIn(t, "D", "CREATED", epoch)
		go table.write(0, row, progress(lifeA, 6, epoch))
		synctest.Wait()
		require.Empty(t, done)
		table.hold <- struct{}{}
		require.True(t, <-done, "what Wait promised, Get shows")
	})
}

// stuck returns what is stuck by status name after 30 minutes, at epoch + now.
func stuck(t *testing.T, deliveries *views.Deliveries, now time.Duration) map[string]int64 {
	t.Helper()
	after := map[codecs.Status]time.Duration{}
	for _, name := range []string{"CREATED", "ASSIGNED", "DELIVERED"} {
		after[status(t, name)] = 30 * time.Minute
	}
	counts, ready := deliveries.Stuck(time.Unix(0, epoch).Add(now), after)
	require.True(t, ready)
	out := map[string]int64{}
	for i, n := range counts {
		if n != 0 {
			out[codecs.BuiltinLifecycle().Name(codecs.Status(i))] = n
		}
	}
	return out
}

func TestStuckCountsLiveDeliveriesByHowLongTheyAreInTheirStatus(t *testing.T) {
	table := newFakeTable(2)
	deliveries := newDeliveries(t, table)
	_, ready := deliveries.Stuck(time.Now(), nil)
	require.False(t, ready)
	table.recovered.Store(true)

	table.write(0,
		rowIn(t, "a", "CREATED", epoch), rowIn(t, "b", "CREATED", epoch+second), rowIn(t, "c", "ASSIGNED", epoch),
		rowIn(t, "d", "DELIVERED", epoch), rowIn(t, "e", "DELIVERING", epoch),
		progress(lifeA, 5, epoch))
	table.write(1, rowIn(t, "f", "CREATED", epoch), progress(lifeA, 1, epoch))
	require.Empty(t, stuck(t, deliveries, 30*time.Minute))
	require.Equal(t, map[string]int64{"CREATED": 2, "ASSIGNED": 1}, stuck(t, deliveries, 30*time.Minute+1))
	require.Equal(t, map[string]int64{"CREATED": 3, "ASSIGNED": 1}, stuck(t, deliveries, time.Hour))

	// Moved on, closed, deleted.
	table.write(0, rowIn(t, "a", "ASSIGNED", epoch+2*second), rowIn(t, "b", "CANCELLED", epoch+2*second), gone("c"), progress(lifeA, 8, epoch))
	require.Equal(t, map[string]int64{"CREATED": 1, "ASSIGNED": 1}, stuck(t, deliveries, time.Hour))

	// Abandoned by the clock of its partition alone: no row says so.
	table.write(1, progress(lifeA, 2, epoch+168*hour))
	require.Equal(t, map[string]int64{"CREATED": 1, "ASSIGNED": 1}, stuck(t, deliveries, 200*time.Hour))
	table.write(1, progress(lifeA, 3, epoch+168*hour+1))
	require.Equal(t, map[string]int64{"ASSIGNED": 1}, stuck(t, deliveries, 200*time.Hour))

	// An event re-opens it.
	table.write(1, rowIn(t, "f", "CREATED", epoch+169*hour), progress(lifeA, 4, epoch+169*hour))
	require.Equal(t, map[string]int64{"CREATED": 1, "ASSIGNED": 1}, stuck(t, deliveries, 200*time.Hour))

	// A copy that starts empty leaves nothing behind.
	table.wipe(1)
	table.recovered.Store(true)
	require.Equal(t, map[string]int64{"ASSIGNED": 1}, stuck(t, deliveries, 200*time.Hour))
}

func TestStuckIndexesWhatTheDiskHoldsInSeveralBatches(t *testing.T) {
	table := newFakeTable(1)
	table.recovered.Store(true)
	deliveries := newDeliveries(t, table)
	table.write(0, rowIn(t, "a", "CREATED", epoch), rowIn(t, "old", "CREATED", epoch-200*hour))
	table.write(0, rowIn(t, "b", "CREATED", epoch), progress(lifeA, 5, epoch))
	require.Equal(t, map[string]int64{"CREATED": 2}, stuck(t, deliveries, time.Hour))
}
