//go:build e2e

package e2e_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/e2e/kafka"
)

// hostile is a record that means harm, or looks like it, and what becomes of it:
// a result, or the reason of its dead letter.
type hostile struct {
	name   string
	key    []byte
	value  []byte
	result string
}

// created is the value of an event CREATED of delivery id, with one field more.
func created(id, field string, value any) []byte {
	fields := map[string]any{
		"event_id": "e", "delivery_id": id, "status": "CREATED", "occurred_at": start.Format(time.RFC3339Nano),
	}
	if field != "" {
		fields[field] = value
	}
	b, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return b
}

const (
	huge        = 5_000_000
	progressKey = "\x00progress" // the reserved key of the tables
)

func hostiles() []hostile {
	text := func(s string) []byte { return []byte(s) }
	of := func(name, id, result string) hostile { return hostile{name, text(id), created(id, "", nil), result} }
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	event := func(id, more string) []byte {
		return text(fmt.Sprintf(`{"delivery_id":%q,"status":"CREATED","occurred_at":%q,%s}`, id, start.Format(time.RFC3339Nano), more))
	}
	ids := []hostile{
		of("ID of goka's offset key", "__offset", "applied"),
		of("ID with slashes", "a/b/../c?d=e#f%2F", "applied"),
		of("Korean ID", "배달-서울-1", "applied"),
		of("ID of 256 bytes", strings.Repeat("i", 256), "applied"),
		of("ID of 257 bytes", strings.Repeat("i", 257), "invalid_id"),
		of("ID with NUL", "a\x00b", "invalid_id"),
		of("ID that is the progress key", progressKey, "invalid_id"),
		of("empty ID", "", "invalid_id"),
	}
	return append(ids,
		hostile{"5 MB value that is an event", text("H-1"), created("H-1", "note", strings.Repeat("x", huge)), "applied"},
		hostile{"5 MB value that is none", text("H-2"), bytes.Repeat([]byte("x"), huge), "unreadable"},
		hostile{"100,000-deep JSON", text("H-3"), text(deep), "unreadable"},
		hostile{"100,000-deep field of an event", text("H-4"), event("H-4", `"note":`+deep), "unreadable"},
		hostile{"NUL", text("H-5"), text("\x00"), "unreadable"},
		hostile{"invalid UTF-8", text("H-6"), bytes.ReplaceAll(created("H-6", "note", "x"), []byte("x"), []byte("\xff\xfe")), "unreadable"},
		hostile{"key that is no UTF-8", text("\xff\xfe"), created("H-7", "", nil), "key_mismatch"},
		hostile{"region of 400 kB", text("H-8"), created("H-8", "region", strings.Repeat("r", 400_000)), "attribute_too_long"},
		hostile{"empty key", text(""), created("H-9", "", nil), "key_mismatch"},
		hostile{"null value", text("H-10"), nil, "ignored"},
		hostile{"empty value", text("H-11"), text(""), "unreadable"},
		hostile{"null", text("H-12"), text("null"), "ignored"},
		hostile{"empty string", text("H-13"), text(`""`), "unreadable"},
		hostile{"the progress key", text(progressKey), created("H-14", "", nil), "key_mismatch"},
		hostile{"the progress key and no value", text(progressKey), nil, "ignored"},
		hostile{"duplicate keys", text("H-15"), event("H-15", `"status":"DELIVERED","status":"CREATED"`), "applied"},
		hostile{"sequence beyond 64 bits", text("H-16"), event("H-16", `"sequence":99999999999999999999`), "wrong_type"},
		hostile{"time beyond 64 bits", text("H-17"), event("H-17", `"occurred_at":99999999999999999999999`), "invalid_time"},
	)
}

// Every hostile record has its stated result, its dead letter has what there was
// of it, and the stream goes on: the counts are exact afterwards.
func TestHostileInput(t *testing.T) {
	d := newDeployment(t)
	require.NoError(t, d.client.CreateTopics(t.Context(), kafka.Topic{
		Name: d.events(), Partitions: partitions, Configs: map[string]string{"max.message.bytes": "8000000"},
	}))
	d.createTopics()
	r := d.serve("one")
	waitReady(t, r)

	want := map[string]string{}   // reason of the dead letter by coordinates
	results := map[string]int64{} // by result
	sent := map[string]hostile{}  // by coordinates
	truth := truth{Counts: map[string]int64{}}
	for _, h := range hostiles() {
		record := kafka.Record{Topic: d.events(), Partition: kafka.JavaPartition(h.key, partitions), Key: h.key, Value: h.value}
		offset, err := d.client.ProduceLarge(t.Context(), record)
		require.NoError(t, err, h.name)
		at := fmt.Sprintf("%d/%d", record.Partition, offset)
		sent[at] = h
		switch h.result {
		case "applied":
			truth.Counts["CREATED"]++
			truth.Live++
			results[h.result]++
		case "ignored":
			results[h.result]++
		default:
			want[at] = h.result
			results["dead_letter"]++
		}
	}
	for p := range int32(partitions) { // behind them in every partition
		d.produce(d.record(idIn(p, 0), "ASSIGNED", 1))
		truth.Counts["ASSIGNED"]++
		truth.Live++
		results["applied"]++
	}

	d.requireExact(truth, r)
	got := map[string]string{}
	log, err := d.client.ReadAll(t.Context(), d.topic("delivery-events-dead-letter"))
	require.NoError(t, err)
	for _, records := range log {
		for _, letter := range records {
			headers := map[string]string{}
			for _, h := range letter.Headers {
				headers[h.Key] = string(h.Value)
			}
			at := headers["__connect.errors.partition"] + "/" + headers["__connect.errors.offset"]
			got[at] = headers["deliverystat.reason"]
			h := sent[at]
			require.Equal(t, d.events(), headers["__connect.errors.topic"], h.name)
			require.NotEmpty(t, headers["__connect.errors.exception.message"], h.name)
			require.NotEmpty(t, headers["deliverystat.timestamp"], h.name)
			require.Equal(t, string(h.key), string(letter.Key), h.name)
			if len(h.value) < huge {
				require.True(t, bytes.Equal(h.value, letter.Value), h.name)
				require.NotContains(t, headers, "deliverystat.value.sha256", h.name)
				continue
			}
			sum := sha256.Sum256(h.value)
			require.Equal(t, hex.EncodeToString(sum[:]), headers["deliverystat.value.sha256"])
			require.Equal(t, strconv.Itoa(huge), headers["deliverystat.value.length"])
			require.True(t, bytes.HasPrefix(h.value, letter.Value) && len(letter.Value) > 500_000)
		}
	}
	for at, h := range sent {
		require.Equal(t, want[at], got[at], h.name)
	}
	require.Len(t, got, len(want))
	m, err := r.Metrics(t.Context())
	require.NoError(t, err)
	require.Equal(t, nonZero(results), nonZero(m.By("deliverystat_events_total", "result")))
	for _, h := range hostiles() {
		if h.result == "applied" {
			d.requireStatus(r, string(h.key), "CREATED")
		}
	}
	d.mustRun([]string{"verify"}, "--from=events")
	d.mustRun([]string{"dead-letters", "list"})
}
