package codecs_test

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/cloudevents/sdk-go/protocol/kafka_sarama/v2"
	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"deliverystat/codecs"
)

// sent is the record that the official SDK makes of a CloudEvent.
func sent(t require.TestingT, ctx func(*binding.EventMessage, *sarama.ProducerMessage) error, e *event.Event) *codecs.Record {
	require.NoError(t, e.Validate())
	message := &sarama.ProducerMessage{}
	require.NoError(t, ctx((*binding.EventMessage)(e), message))
	value, err := message.Value.Encode()
	require.NoError(t, err)
	var headers []codecs.Header
	for _, h := range message.Headers {
		headers = append(headers, codecs.Header{Key: string(h.Key), Value: h.Value})
	}
	key := ""
	if message.Key != nil {
		b, err := message.Key.Encode()
		require.NoError(t, err)
		key = string(b)
	}
	return &codecs.Record{Key: key, Value: value, Headers: func() []codecs.Header { return headers }}
}

// What the official SDK writes, in both modes, reads as the event that it was
// made of.
func TestPropertyCloudEventsOfTheOfficialSDK(t *testing.T) {
	l := codecs.BuiltinLifecycle()
	structured := func(m *binding.EventMessage, to *sarama.ProducerMessage) error {
		return kafka_sarama.WriteProducerMessage(binding.WithForceStructured(t.Context()), m, to)
	}
	binary := func(m *binding.EventMessage, to *sarama.ProducerMessage) error {
		return kafka_sarama.WriteProducerMessage(binding.WithForceBinary(t.Context()), m, to)
	}
	rapid.Check(t, func(t *rapid.T) {
		e := codecs.Event{
			DeliveryID: rapid.StringMatching(`[A-Za-z0-9가-힣 /"\\_-]{1,40}`).Draw(t, "delivery"),
			Status:     codecs.Status(rapid.IntRange(1, 9).Draw(t, "status")),
			OccurredAt: rapid.Int64Range(codecs.MinEventTime, 1_900_000_000_000_000_000).Draw(t, "time"),
		}
		id := rapid.StringMatching(`[a-z0-9-]{1,36}`).Draw(t, "id")
		data := `{"delivery_id":` + quoteJSON(e.DeliveryID) + `,"status":"` + l.Name(e.Status) + `"`
		cloudTime := e.OccurredAt
		if rapid.Bool().Draw(t, "own time") {
			data += `,"occurred_at":"` + time.Unix(0, e.OccurredAt).UTC().Format(time.RFC3339Nano) + `"`
			cloudTime = rapid.Int64Range(0, 1_900_000_000_000_000_000).Draw(t, "other time")
		}
		e.EventID = id
		if rapid.Bool().Draw(t, "own id") {
			e.EventID = "own-" + id
			data += `,"event_id":"` + e.EventID + `"`
		}
		if rapid.Bool().Draw(t, "sequence") {
			e.Sequence, e.Sequenced = 7, true
			data += `,"sequence":7`
		}
		e.Hash = l.HashEvent(&e)

		cloud := event.New()
		cloud.SetID(id)
		cloud.SetSource("/orders")
		cloud.SetType("com.example.delivery.changed")
		cloud.SetSubject("D-of-nobody")
		cloud.SetTime(time.Unix(0, cloudTime).UTC())
		cloud.SetExtension("partitionkey", e.DeliveryID)
		cloud.SetExtension("region", "an extension says nothing")
		contentType := rapid.SampledFrom([]string{"application/json", "application/octet-stream"}).Draw(t, "content type")
		require.NoError(t, cloud.SetData(contentType, []byte(data+`}`)))

		for mode, write := range map[string]func(*binding.EventMessage, *sarama.ProducerMessage) error{"structured": structured, "binary": binary} {
			r := sent(t, write, &cloud)
			for _, format := range []string{codecs.FormatAuto, codecs.FormatCloudEvents} {
				d, err := codecs.NewDecoder(format, l)
				require.NoError(t, err)
				var out codecs.Decoded
				d.Decode(r, &out)
				require.Equal(t, codecs.Decoded{Event: e}, out, "%s, %s, %s", mode, format, r.Value)
			}
		}
	})
}

// cloud is a structured CloudEvent whose last members are given.
func cloud(members string) string {
	return `{"specversion":"1.0","id":"e-1","source":"/orders","type":"t","time":"2026-03-14T02:01:42.123456Z",` + members + `}`
}

const fromData = `{"deliveryId":"D-1","orderId":"O-7","status":"ASSIGNED"}`

func TestStructuredCloudEvents(t *testing.T) {
	base64Of := func(s string) string { return `"data_base64":"` + base64.StdEncoding.EncodeToString([]byte(s)) + `"` }
	for name, value := range map[string]string{
		"id and time of the envelope": cloud(`"data":` + fromData),
		"id and time of the data":     `{"specversion":"1.0","id":"x","source":"/s","type":"t","time":"2020-01-01T00:00:00Z","data":` + payload + `}`,
		"data as text":                cloud(`"datacontenttype":"text/plain","data":` + quoteJSON(fromData)),
		"data as base64":              cloud(base64Of(fromData)),
		"both":                        cloud(`"data":` + fromData + `,` + base64Of(`{"status":"DELIVERED"}`)),
		"extensions say nothing":      cloud(`"status":"DELIVERED","region":"seoul","sequence":"7","service":"x","data":` + fromData),
		"a later version":             `{"specversion":"1.1","id":"e-1","source":"/s","type":"t","time":"2026-03-14T02:01:42.123456Z","data":` + fromData + `}`,
		"data in an envelope":         cloud(`"data":{"payload":` + quoteJSON(fromData) + `}`),
		"data with schema":            cloud(`"data":` + withSchema(fromData)),
		"in an outbox, escaped":       quoteJSON(cloud(`"data":` + fromData)),
		"in an outbox, enveloped":     `{"payload":` + cloud(`"data":`+fromData) + `,"eventType":"DeliveryAssigned"}`,
		"a change event":              cloud(`"data":` + change("c", "null", outboxRow(quoteJSON(payload)))),
	} {
		out := decode(t, codecs.FormatAuto, "D-1", []byte(value))
		require.Equal(t, codecs.Decoded{Event: outboxEvent(nil)}, out, name)
		out = decode(t, codecs.FormatCloudEvents, "D-1", []byte(value), "content-type", "application/cloudevents+json", "ce_id", "x", "ce_time", "2020-01-01T00:00:00Z")
		require.Equal(t, codecs.Decoded{Event: outboxEvent(nil)}, out, name)
	}
}

// Debezium's converter after its outbox router: the event ID may be the envelope's,
// its time is when Debezium read the row.
func TestCloudEventsOfTheOutboxRouter(t *testing.T) {
	router := func(data string) string {
		return `{"id":"e-1","source":"/debezium/mysql/my-h2","specversion":"1.0","type":"DeliveryAssigned","time":"2026-11-30T21:24:51.000Z",` +
			`"datacontenttype":"application/json","iodebeziumop":"c","iodebeziumtsms":"1796073891000","data":` + data + `}`
	}
	headers := []string{"id", `{"schema":{"type":"string"},"payload":"e-1"}`, "__debezium.context.taskId", `"0"`}
	for _, data := range []string{payload, quoteJSON(payload), withSchema(payload), `{"orderId":"O-7","status":"ASSIGNED","occurredAt":1773453702123456}`} {
		out := decode(t, codecs.FormatAuto, "D-1", []byte(router(data)), headers...)
		require.Equal(t, codecs.Decoded{Event: outboxEvent(nil)}, out, data)
	}
	out := decode(t, codecs.FormatAuto, "D-1", []byte(router(fromData)), headers...)
	require.Equal(t, codecs.MissingField, out.Reason)
	require.Contains(t, out.Detail, "occurred_at")
	require.Equal(t, codecs.IsIgnored, decode(t, codecs.FormatAuto, "D-1", []byte(router("null")), headers...).Outcome)

	for _, made := range []string{`"source":"/debezium/mysql/m","type":"t"`, `"source":"/s","type":"io.debezium.x"`, `"source":"/s","type":"t","iodebeziumname":"m"`} {
		value := `{"specversion":"1.0","id":"name:m;lsn:7","time":"2026-03-14T02:01:42Z",` + made + `,"data":{"deliveryId":"D-1","status":"A","occurredAt":1773453702}}`
		out := decode(t, codecs.FormatAuto, "D-1", []byte(value))
		require.Equal(t, codecs.IsEvent, out.Outcome, out.Detail)
		require.Empty(t, out.Event.EventID, made)
	}
}

func TestBinaryCloudEvents(t *testing.T) {
	with := func(headers ...string) []string {
		return append([]string{"ce_specversion", "1.0", "ce_type", "t", "ce_source", "/s", "content-type", "application/json"}, headers...)
	}
	at := "2026-03-14T02:01:42.123456Z"
	out := decode(t, codecs.FormatAuto, "D-1", []byte(fromData), with("ce_id", "e-1", "ce_time", at, "ce_sequence", "7")...)
	require.Equal(t, codecs.Decoded{Event: outboxEvent(nil)}, out)
	out = decode(t, codecs.FormatAuto, "D-1", []byte(payload), with("ce_id", "x", "ce_time", "2020-01-01T00:00:00Z")...)
	require.Equal(t, codecs.Decoded{Event: outboxEvent(nil)}, out, "the data's own")
	out = decode(t, codecs.FormatAuto, "D-1", []byte(fromData), "ce_id", "e-1", "ce_time", at)
	require.Equal(t, codecs.MissingField, out.Reason, "no specversion: no CloudEvent")
	out = decode(t, codecs.FormatAuto, "D-1", []byte(fromData), "ce_specversion", "0.3", "ce_id", "e-1", "ce_time", at)
	require.Equal(t, codecs.MissingField, out.Reason, "another version")
	out = decode(t, codecs.FormatAuto, "D-1", []byte(fromData), with("ce_id", "e-1", "ce_time", "1773453702")...)
	require.Equal(t, codecs.InvalidTime, out.Reason, "time is RFC 3339")
	for _, made := range []string{"ce_iodebeziumop", "ce_iodebeziumname"} {
		out = decode(t, codecs.FormatAuto, "D-1", []byte(fromData), with("ce_id", "e-1", "ce_time", at, made, "c")...)
		require.Equal(t, codecs.MissingField, out.Reason, "processing time")
	}
	out = decode(t, codecs.FormatAuto, "D-1", []byte(fromData), "ce_specversion", "1.0", "ce_source", "/debezium/mysql/m", "ce_id", "e-1", "ce_time", at)
	require.Equal(t, codecs.MissingField, out.Reason, "processing time")
	out = decode(t, codecs.FormatAuto, "D-1", []byte(fromData), "ce_specversion", "1.0", "ce_type", "io.debezium.x", "ce_id", "e-1", "ce_time", at)
	require.Equal(t, codecs.MissingField, out.Reason, "processing time")
}

// The subject is the delivery ID only if the key says so too.
func TestSubjectOfACloudEvent(t *testing.T) {
	value := []byte(cloud(`"subject":"D-1","data":` + bare))
	for _, key := range []string{"D-1", `"D-1"`} {
		out := decode(t, codecs.FormatAuto, key, value)
		require.Equal(t, "D-1", out.Event.DeliveryID, out.Detail)
		out = decode(t, codecs.FormatAuto, key, []byte(bare), "ce_specversion", "1.0", "ce_id", "e-1", "ce_subject", "D-1", "ce_time", "2026-03-14T02:01:42.123456Z")
		require.Equal(t, "D-1", out.Event.DeliveryID, out.Detail)
	}
	for _, key := range []string{"D-2", "", `""`} {
		require.Equal(t, codecs.MissingField, decode(t, codecs.FormatAuto, key, value).Reason, key)
		require.Equal(t, codecs.MissingField, decode(t, codecs.FormatAuto, key, []byte(cloud(`"data":`+bare))).Reason, key)
	}
	require.Equal(t, "D-2", decode(t, codecs.FormatAuto, "D-2", []byte(cloud(`"subject":"D-1","data":{"deliveryId":"D-2","status":"A"}`))).Event.DeliveryID)
}

func TestRefusedAndIgnoredCloudEvents(t *testing.T) {
	for name, value := range map[string]string{
		"null data": cloud(`"data":null`), "no data": cloud(`"subject":"D-1"`), "data is the text null": cloud(`"data":"null"`),
		"data_base64 of null": cloud(`"data_base64":"bnVsbA=="`),
	} {
		require.Equal(t, codecs.Decoded{Outcome: codecs.IsIgnored}, decode(t, codecs.FormatAuto, "D-1", []byte(value)), name)
	}
	for name, c := range map[string]struct {
		value string
		want  codecs.Reason
	}{
		"another version":      {`{"specversion":"0.3","id":"e","source":"/s","type":"t","data":` + payload + `}`, codecs.Unreadable},
		"no base64":            {cloud(`"data_base64":"%%"`), codecs.Unreadable},
		"base64 is a number":   {cloud(`"data_base64":7`), codecs.Unreadable},
		"base64 of no JSON":    {cloud(`"data_base64":"AAEC"`), codecs.Unreadable},
		"empty base64":         {cloud(`"data_base64":""`), codecs.Unreadable},
		"text that is no JSON": {cloud(`"data":"<xml/>"`), codecs.Unreadable},
		"data is a number":     {cloud(`"data":7`), codecs.Unreadable},
		"data is an array":     {cloud(`"data":[` + payload + `]`), codecs.Unreadable},
		"batch":                {`[` + cloud(`"data":`+payload) + `]`, codecs.Unreadable},
		"no status":            {cloud(`"data":{"deliveryId":"D-1"}`), codecs.MissingField},
		"no time":              {`{"specversion":"1.0","id":"e","source":"/s","type":"t","data":` + fromData + `}`, codecs.MissingField},
		"time is a number":     {`{"specversion":"1.0","id":"e","source":"/s","type":"t","time":1773453702,"data":` + fromData + `}`, codecs.MissingField},
		"time without zone":    {`{"specversion":"1.0","id":"e","source":"/s","type":"t","time":"2026-03-14T02:01:42","data":` + fromData + `}`, codecs.InvalidTime},
		"no source":            {`{"specversion":"1.0","id":"e","type":"t","data":` + payload + `}`, codecs.MissingField},
		"another key":          {cloud(`"data":{"deliveryId":"D-2","status":"A"}`), codecs.KeyMismatch},
	} {
		out := decode(t, codecs.FormatAuto, "D-1", []byte(c.value))
		require.Equal(t, codecs.IsRefused, out.Outcome, name)
		require.Equal(t, c.want, out.Reason, "%s: %s", name, out.Detail)
	}
	out := decode(t, codecs.FormatCloudEvents, "D-1", []byte(payload), "id", "e-1")
	require.Equal(t, codecs.Unreadable, out.Reason)
	require.Contains(t, out.Detail, "CloudEvent")
}
