//go:build e2e

package e2e_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/e2e/kafka"
	"deliverystat/e2e/replica"
)

// Three sources whose records do not lie where their delivery belongs: keyed by
// order, placed by another hash, and an outbox without keys. All have other
// numbers of partitions than the input, and a fourth does not exist. Each event
// reaches the input exactly once although a replica is killed again and again.
func TestSourcesAreRepublishedExactlyOnce(t *testing.T) {
	d := install(t)
	byOrder, byHash, outbox := d.topic("by-order"), d.topic("by-hash"), d.topic("outbox")
	require.NoError(t, d.client.CreateTopics(t.Context(),
		kafka.Topic{Name: byOrder, Partitions: 3}, kafka.Topic{Name: byHash, Partitions: 5}, kafka.Topic{Name: outbox, Partitions: 1}))
	sources := fmt.Sprintf("--sources=%s,%s,%s,%s", d.topic("missing"), byOrder, byHash, outbox)
	one, two := d.serve("one", sources), d.serve("two", sources)
	waitReady(t, one, two)

	const each = 3000
	var records []kafka.Record
	for i := range each {
		id, order := fmt.Sprintf("A-%d", i), fmt.Sprintf("O-%d", i)
		for s, status := range []string{"CREATED", "ASSIGNED"} {
			records = append(records, kafka.Record{
				Topic: byOrder, Partition: int32((i + s) % 3), Key: []byte(order),
				Value: fmt.Appendf(nil, `{"delivery_id":%q,"order_id":%q,"status":%q,"occurred_at":%d}`, id, order, status, start.UnixMilli()+int64(s)),
			})
		}
		if i%10 == 0 {
			records = append(records, kafka.Record{Topic: byOrder, Partition: int32(i % 3), Key: []byte(order), Value: []byte("no event")})
		}
		records = append(records, kafka.Record{
			Topic: outbox, Headers: []kafka.Header{{Key: "id", Value: fmt.Appendf(nil, "e-%d", i)}},
			Value: fmt.Appendf(nil, `"{\"deliveryId\":\"C-%d\",\"status\":\"DELIVERED\",\"occurredAt\":%d}"`, i, start.UnixMilli()),
		})
	}
	// At a pace that outlasts the restarts: placed by librdkafka's hash.
	simulation := d.simulate("--events-topic="+byHash, "--key-partitioner=crc32", "--events=60000", "--deliveries=10000", "--seed=5", "--rate=8000",
		"--duplicates=0.05", "--out-of-order=0.1")
	for round := range 3 {
		d.produce(records[len(records)*round/3 : len(records)*(round+1)/3]...)
		require.NoError(t, one.Kill())
		require.NoError(t, one.Start())
		waitReady(t, one)
	}
	truth := simulation.wait(t)

	// Everything has been read, and the input has each event once.
	d.awaitSources(map[string]int32{byOrder: 3, byHash: 5, outbox: 1})
	republished := map[string]int{}
	log, err := d.client.ReadAll(t.Context(), d.events())
	require.NoError(t, err)
	for p, events := range log {
		for _, e := range events {
			require.Equal(t, kafka.JavaPartition(e.Key, partitions), int32(p))
			from := header(e, "deliverystat.source.topic") + "/" + header(e, "deliverystat.source.partition") + "/" + header(e, "deliverystat.source.offset")
			republished[from]++
			require.Equal(t, 1, republished[from], from)
		}
	}
	require.Len(t, republished, 2*each+each+int(truth.Events))

	want := truth
	want.Counts["ASSIGNED"] += each
	want.Live += each
	want.Closed["DELIVERED"] += each
	d.requireExact(want, one, two)

	// What was refused is kept with the coordinates of its source.
	letters, err := d.client.ReadAll(t.Context(), d.topic("delivery-events-dead-letter"))
	require.NoError(t, err)
	source, err := d.client.ReadAll(t.Context(), byOrder)
	require.NoError(t, err)
	refused := 0
	for _, all := range letters {
		for _, letter := range all {
			refused++
			require.Equal(t, byOrder, header(letter, "__connect.errors.topic"))
			p, err := strconv.Atoi(header(letter, "__connect.errors.partition"))
			require.NoError(t, err)
			offset, err := strconv.Atoi(header(letter, "__connect.errors.offset"))
			require.NoError(t, err)
			require.Equal(t, "no event", string(letter.Value))
			require.Equal(t, string(source[p][offset].Value), string(letter.Value))
			require.Equal(t, string(source[p][offset].Key), string(letter.Key))
		}
	}
	require.Equal(t, each/10, refused)
	d.requireSourceMetrics(outbox, one, two)
}

// requireSourceMetrics demands that a source has a delay of its own.
func (d *deployment) requireSourceMetrics(source string, replicas ...*replica.Replica) {
	d.t.Helper()
	observed := 0.0
	for _, r := range replicas {
		m, err := r.Metrics(d.t.Context())
		require.NoError(d.t, err)
		observed += m[`deliverystat_source_delay_seconds_count{source="`+source+`"}`]
	}
	require.Positive(d.t, observed)
}

func header(r kafka.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// awaitSources waits until all records of sources, given with their numbers of
// partitions, are republished.
func (d *deployment) awaitSources(sources map[string]int32) {
	d.t.Helper()
	eventually(d.t, "the sources are read to their ends, and what was written of them is decided", func() (string, bool) {
		visible, err := d.client.Ends(d.t.Context(), d.events(), kafka.Committed)
		require.NoError(d.t, err)
		written, err := d.client.Ends(d.t.Context(), d.events(), kafka.Uncommitted)
		require.NoError(d.t, err)
		state, all := fmt.Sprintf("input visible to %v of %v; ", visible, written), slices.Equal(visible, written)
		for topic, n := range sources {
			offsets, err := d.client.Offsets(d.t.Context(), d.topic("normalize-"+topic), topic, n)
			if err != nil { // a transaction is under way
				return err.Error(), false
			}
			ends, err := d.client.Ends(d.t.Context(), topic, kafka.Uncommitted)
			require.NoError(d.t, err)
			for p := range ends {
				all = all && offsets[p] == ends[p]
			}
			state += fmt.Sprintf("%s at %v of %v; ", topic, offsets, ends)
		}
		return state, all
	})
}
