//go:build e2e

package e2e_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/e2e/kafka"
	"deliverystat/e2e/replica"
)

// Kafka ends a transaction with a marker that takes an offset but is no record.
// An input that ends in one is at its end all the same, also for a replica that
// comes back.
func TestAnInputThatEndsInATransactionMarker(t *testing.T) {
	d := install(t)
	id := idIn(3, 0)
	_, err := d.client.ProduceTransaction(t.Context(), d.prefix+"outbox", true, d.record(id, "CREATED", 0), d.record(id, "ASSIGNED", 1))
	require.NoError(t, err)
	_, err = d.client.ProduceTransaction(t.Context(), d.prefix+"outbox", false, d.record(id, "DELIVERED", 2))
	require.NoError(t, err)
	want := truth{Counts: map[string]int64{"ASSIGNED": 1}, Live: 1}

	r := d.serve("one")
	waitReady(t, r)
	d.requireExact(want, r)

	require.NoError(t, r.Kill())
	require.NoError(t, r.Start())
	waitReady(t, r)
	d.requireExact(want, r)
}

// Nothing was ever produced: the answer is zeros for every live status, not an
// error, from the first minute on.
func TestAnEmptyInputAnswersZeros(t *testing.T) {
	d := install(t)

	r := d.serve("one")
	waitReady(t, r)

	counts := d.countsAtEnd(r)
	require.Equal(t, map[string]int64{
		"UNKNOWN": 0, "CREATED": 0, "ASSIGNED": 0, "PICKUP_REQUESTED": 0, "PICKED_UP": 0, "DELIVERING": 0, "RETURNING": 0,
	}, counts.Counts)
	require.Zero(t, counts.Live)
	require.False(t, counts.AsOf.Stale)
	m, err := r.Metrics(t.Context())
	require.NoError(t, err)
	require.Contains(t, m, `deliverystat_deliveries{status="CREATED"}`)
	require.Zero(t, m[`deliverystat_deliveries{status="CREATED"}`])
	d.mustRun([]string{"verify"})
}

// Seven of eight partitions never get an event. The eighth is counted.
func TestIdlePartitionsDoNotHoldBackTheCounts(t *testing.T) {
	d := install(t)
	d.produce(d.record(idIn(5, 0), "CREATED", 0))

	r := d.serve("one")
	waitReady(t, r)

	d.requireExact(truth{Counts: map[string]int64{"CREATED": 1}, Live: 1}, r)
}

// A second replica joins and takes over partitions that get no event any more.
// What their former owner told of them stands.
func TestCountsOfAnIdlePartitionSurviveItsOwner(t *testing.T) {
	d := install(t)
	for p := range int32(partitions) {
		d.produce(d.record(idIn(p, 0), "CREATED", 0), d.record(idIn(p, 1), "ASSIGNED", 1))
	}
	one := d.serve("one")
	waitReady(t, one)
	want := truth{Counts: map[string]int64{"CREATED": partitions, "ASSIGNED": partitions}, Live: 2 * partitions}
	d.requireExact(want, one)

	two := d.serve("two")
	waitReady(t, two)
	d.waitOwns(two, partitions/2)
	d.requireExact(want, one, two)

	d.produce(d.record(idIn(0, 0), "DELIVERED", 2))
	want.Counts["CREATED"]--
	want.Live--
	want.Closed = map[string]int64{"DELIVERED": 1}
	d.requireExact(want, one, two)
}

// A record that a producer with another partitioner put into the wrong
// partition would split a delivery in two: it is refused, and named.
func TestAStrayRecordIsADeadLetter(t *testing.T) {
	d := install(t)
	good, stray := d.record(idIn(2, 0), "CREATED", 0), d.record(idIn(2, 1), "CREATED", 0)
	stray.Partition = 6
	d.produce(good, stray)

	r := d.serve("one")
	waitReady(t, r)

	d.requireExact(truth{Counts: map[string]int64{"CREATED": 1}, Live: 1}, r)
	require.Equal(t, map[string]int64{"wrong_partition": 1}, d.deadLetters())
	m, err := r.Metrics(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, m[`deliverystat_dead_letters_total{reason="wrong_partition"}`])
}

// The producers of the whole input hash keys as librdkafka does. The service
// refuses to start, and says which hash they use; told so, it counts.
func TestAnInputOfAnotherPartitionerIsNamed(t *testing.T) {
	d := install(t)
	records := make([]kafka.Record, 0, 200)
	for p := range int32(partitions) {
		for n := range 25 {
			r := d.record(idIn(p, n), "CREATED", 0)
			r.Partition = kafka.CRC32Partition(r.Key, partitions)
			records = append(records, r)
		}
	}
	d.produce(records...)

	refused := d.serve("one")
	message := d.requireRefusal(refused)
	require.Contains(t, message, "crc32")
	require.Contains(t, message, d.events())

	r := d.serve("two", "--key-partitioner=crc32")
	waitReady(t, r)
	d.flags = append(d.flags, "--key-partitioner=crc32")
	d.requireExact(truth{Counts: map[string]int64{"CREATED": 200}, Live: 200}, r)
}

// The input is deleted and created anew under running replicas, and filled
// beyond where the former one ended: what is at the old offset is another event.
// The rows of the former input stay, and every event of the new one is counted.
func TestAnInputThatIsCreatedAnewIsReadFromItsBeginning(t *testing.T) {
	d := install(t)
	one, two := d.serve("one"), d.serve("two")
	waitReady(t, one, two)
	fill := func(prefix, status string, n int) {
		var records []kafka.Record
		for i := range n {
			records = append(records, d.record(fmt.Sprintf("%s-%d", prefix, i), status, i))
		}
		d.produce(records...)
	}
	fill("before", "CREATED", 800)
	d.requireExact(truth{Counts: map[string]int64{"CREATED": 800}, Live: 800}, one, two)

	require.NoError(t, d.client.DeleteTopic(t.Context(), d.events()))
	require.NoError(t, d.client.CreateTopics(t.Context(), kafka.Topic{Name: d.events(), Partitions: partitions}))
	d.client = connect(t, d.cluster) // the former one knows the former topic
	fill("after", "ASSIGNED", 3000)

	want := truth{Counts: map[string]int64{"CREATED": 800, "ASSIGNED": 3000}, Live: 3800}
	for _, r := range []*replica.Replica{one, two} {
		eventually(t, "replica "+r.Name+" has counted the new input", func() (string, bool) {
			counts, err := r.Counts(t.Context(), "")
			if err != nil {
				return err.Error(), false
			}
			return fmt.Sprintf("%+v", counts), counts.Live == want.Live
		})
	}
	d.requireExact(want, one, two)
}
