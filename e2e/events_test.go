//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/e2e/kafka"
	"deliverystat/processors/market"
)

// record makes the record of an event of delivery id that occurred so many
// seconds after the first one of its test, in the partition where Java's
// producers put it.
func (d *deployment) record(id, status string, seconds int) kafka.Record {
	d.t.Helper()
	value, err := json.Marshal(map[string]string{
		"event_id": fmt.Sprintf("%s-%s-%d", id, status, seconds), "delivery_id": id, "status": status,
		"occurred_at": start.Add(time.Duration(seconds) * time.Second).Format(time.RFC3339Nano),
	})
	require.NoError(d.t, err)
	return kafka.Record{
		Topic: d.events(), Partition: kafka.JavaPartition([]byte(id), partitions), Key: []byte(id), Value: value,
	}
}

// start is an hour ago: no event of a test is in the future.
var start = time.Now().Add(-time.Hour).UTC().Truncate(time.Second)

func (d *deployment) produce(records ...kafka.Record) {
	d.t.Helper()
	_, err := d.client.Produce(d.t.Context(), records...)
	require.NoError(d.t, err)
}

// idIn returns the n-th delivery ID that belongs to a partition.
func idIn(partition int32, n int) string {
	for i := 0; ; i++ {
		id := fmt.Sprintf("D-%d", i)
		if kafka.JavaPartition([]byte(id), partitions) == partition {
			if n == 0 {
				return id
			}
			n--
		}
	}
}

// world reads the input back and returns what it means at each position,
// according to the reference model, counted by dimensions too.
func (d *deployment) world(dimensions ...codecs.Attribute) *market.World {
	d.t.Helper()
	log, err := d.client.ReadAll(d.t.Context(), d.events())
	require.NoError(d.t, err)
	rules := market.DefaultRules()
	rules.Dimensions = dimensions
	w := market.NewWorld(rules, len(log))
	for p, records := range log {
		for _, r := range records {
			w.Append(int32(p), r.Offset, read(rules.Lifecycle, r))
		}
	}
	return w
}

// read decodes what simulate writes: native events in either spelling, and
// records that are none.
func read(lifecycle *codecs.Lifecycle, r kafka.Record) market.Entry {
	entry := market.Entry{Timestamp: r.Timestamp.UnixNano(), Reason: codecs.Unreadable}
	var fields map[string]any
	if json.Unmarshal(r.Value, &fields) != nil {
		return entry
	}
	text := func(snake, camel string) string {
		for _, name := range []string{snake, camel} {
			if s, ok := fields[name].(string); ok {
				return s
			}
		}
		return ""
	}
	id, raw := text("delivery_id", "deliveryId"), text("status", "status")
	at, ok := occurredAt(fields["occurred_at"], fields["occurredAt"])
	if id == "" || id != string(r.Key) || raw == "" || !ok || len(text("region", "region")) > 256 {
		return entry
	}
	status, known := lifecycle.Parse(raw)
	if !known {
		status = codecs.Unknown
	}
	sequence, _ := fields["sequence"].(float64)
	entry.Reason = ""
	entry.Event = &codecs.Event{
		DeliveryID: id, EventID: text("event_id", "eventId"), Status: status, OccurredAt: at,
		Sequence: int64(sequence), Sequenced: sequence != 0,
		Attributes: [codecs.NumAttributes]string{
			codecs.OrderID: text("order_id", "orderId"), codecs.StoreID: text("store_id", "storeId"),
			codecs.Region: text("region", "region"), codecs.Service: text("service", "service"),
		},
	}
	return entry
}

// occurredAt reads a text with a zone or a number of milliseconds.
func occurredAt(spellings ...any) (int64, bool) {
	for _, v := range spellings {
		switch v := v.(type) {
		case string:
			at, err := time.Parse(time.RFC3339Nano, v)
			return at.UnixNano(), err == nil
		case float64:
			return time.UnixMilli(int64(v)).UnixNano(), true
		}
	}
	return 0, false
}

// The tests judge the service by the model's word on what they read back: that
// word has to be the simulator's.
func TestReadKnowsWhatSimulateWrites(t *testing.T) {
	d := install(t)
	truth := d.simulate("--events=2000", "--deliveries=300", "--seed=3", "--duplicates=0.1", "--out-of-order=0.1",
		"--malformed=0.05", "--unknown-status=0.05").wait(t)

	w := d.world()

	live, closed := w.Counts("", w.End())
	require.Equal(t, nonZero(truth.Counts), nonZero(wide(live)))
	require.Equal(t, nonZero(truth.Closed), nonZero(wide(closed)))
	require.EqualValues(t, truth.Malformed, w.Results()[market.DeadLetter])
	require.Positive(t, truth.Malformed)
}

func wide(counts map[string]int) map[string]int64 {
	out := map[string]int64{}
	for status, n := range counts {
		out[status] = int64(n)
	}
	return out
}
