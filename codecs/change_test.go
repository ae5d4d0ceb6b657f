package codecs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
)

// change returns a change event as MySQL's connector writes it.
func change(op, before, after string) string {
	return `{"before":` + before + `,"after":` + after + `,"source":{"version":"3.6.1.Final","connector":"mysql","ts_ms":1796073884000,"sequence":null},` +
		`"transaction":null,"op":"` + op + `","ts_ms":1796073884791}`
}

const (
	outboxColumns = `"id":"e-1","aggregatetype":"delivery","aggregateid":"D-1","type":"DeliveryAssigned"`
	deliveryRow   = `{"id":42,"delivery_id":"D-1","status":"ASSIGNED","order_id":"O-7","occurred_at":1773453702123456,"updated_at":1796073884000000,"payload":"{}"}`
)

func outboxRow(payload string) string { return `{` + outboxColumns + `,"payload":` + payload + `}` }

// cloudOfDebezium is what Debezium's CloudEvents converter makes of data.
func cloudOfDebezium(op, data string) string {
	return `{"id":"name:my-h;lsn:99275","source":"/debezium/postgresql/pg-h","specversion":"1.0","type":"io.debezium.connector.postgresql.DataChangeEvent",` +
		`"time":"2026-11-30T21:24:51.000Z","datacontenttype":"application/json","iodebeziumop":"` + op + `","iodebeziumsequence":null,"data":` + data + `}`
}

// Each shape of a change event that holds the event payload.
func TestChangeEventsOfAnOutbox(t *testing.T) {
	noID := `{"deliveryId":"D-1","orderId":"O-7","status":"ASSIGNED","occurredAt":"2026-03-14T02:01:42.123456Z"}`
	columns := `{` + outboxColumns + `,"occurred_at":1773453702123456,"orderId":"O-7","payload":`
	for name, value := range map[string]string{
		"escaped":                       change("c", "null", outboxRow(quoteJSON(payload))),
		"expanded":                      change("c", "null", outboxRow(payload)),
		"snapshot":                      change("r", "null", outboxRow(quoteJSON(payload))),
		"with schema":                   withSchema(change("c", "null", outboxRow(quoteJSON(payload)))),
		"escaped twice":                 change("c", "null", outboxRow(quoteJSON(quoteJSON(payload)))),
		"as a string":                   quoteJSON(change("c", "null", outboxRow(quoteJSON(payload)))),
		"event ID in the row":           change("c", "null", outboxRow(quoteJSON(noID))),
		"all but the status in the row": change("c", "null", columns+quoteJSON(bare)+`}`),
		"time in the column timestamp":  change("c", "null", `{`+outboxColumns+`,"orderId":"O-7","timestamp":1773453702123456,"payload":`+quoteJSON(bare)+`}`),
		"timestamp with zone":           change("c", "null", `{`+outboxColumns+`,"orderId":"O-7","timestamp":"2026-03-14T02:01:42.123456Z","payload":`+quoteJSON(bare)+`}`),
		"occurred_at before timestamp":  change("c", "null", `{`+outboxColumns+`,"orderId":"O-7","occurred_at":1773453702123456,"timestamp":1,"payload":`+quoteJSON(bare)+`}`),
		"a status of the row":           change("c", "null", `{"delivery_id":"D-1","status":"SENT","occurred_at":1,`+outboxColumns+`,"payload":`+quoteJSON(payload)+`}`),
		"other spelling":                change("c", "null", `{"id":"e-1","aggregate_id":"D-1","payload":`+quoteJSON(payload)+`}`),
		"in a CloudEvent":               cloudOfDebezium("c", `{"before":null,"after":`+outboxRow(quoteJSON(payload))+`}`),
		"in a CloudEvent with schema":   cloudOfDebezium("r", withSchema(`{"before":null,"after":`+outboxRow(quoteJSON(payload))+`}`)),
	} {
		out := decode(t, codecs.FormatAuto, "D-1", []byte(value))
		require.Equal(t, codecs.Decoded{Event: outboxEvent(nil)}, out, name)
	}
}

func TestIntegerColumnsOfAnOutboxAreIDs(t *testing.T) {
	row := `{"id":9007199254740993,"aggregateid":9223372036854775808,"payload":` + quoteJSON(`{"status":"ASSIGNED","occurredAt":1773453702}`) + `}`
	out := decode(t, codecs.FormatChange, "9223372036854775808", []byte(change("c", "null", row)))
	require.Equal(t, codecs.IsEvent, out.Outcome, out.Detail)
	require.Equal(t, "9007199254740993", out.Event.EventID)
	require.Equal(t, "9223372036854775808", out.Event.DeliveryID)
}

func TestChangeEventsOfATableOfDeliveries(t *testing.T) {
	want := outboxEvent(func(e *codecs.Event) { e.EventID = "" })
	for name, value := range map[string]string{
		"created":            change("c", "null", deliveryRow),
		"snapshot":           change("r", "null", deliveryRow),
		"updated":            change("u", `{"delivery_id":"D-1","status":"CREATED"}`, deliveryRow),
		"updated, no before": change("u", "null", deliveryRow),
		"with schema":        withSchema(change("u", "null", deliveryRow)),
		"updated_at alone":   change("u", "null", `{"deliveryId":"D-1","status":"ASSIGNED","orderId":"O-7","updated_at":1773453702123456}`),
		"with zone":          change("u", "null", `{"deliveryId":"D-1","status":"ASSIGNED","orderId":"O-7","occurred_at":null,"updatedAt":"2026-03-14T02:01:42.123456Z"}`),
		"in a CloudEvent":    cloudOfDebezium("u", `{"before":null,"after":`+deliveryRow+`}`),
	} {
		out := decode(t, codecs.FormatAuto, "D-1", []byte(value))
		require.Equal(t, codecs.Decoded{Event: want}, out, name)
	}
}

func TestWhatAChangeEventSaysNothingBy(t *testing.T) {
	row := outboxRow(quoteJSON(payload))
	// The row that PostgreSQL deleted: its key, and empty values for the rest.
	deleted := `{"id":"e-1","aggregatetype":"","aggregateid":"","type":"","payload":"","occurred_at":0}`
	for name, value := range map[string]string{
		"updated outbox row":             change("u", row, row),
		"updated outbox row, no before":  change("u", "null", row),
		"deleted outbox row":             change("d", row, "null"),
		"deleted outbox row, PostgreSQL": change("d", deleted, "null"),
		"deleted delivery":               change("d", deliveryRow, "null"),
		"deleted delivery, schema":       withSchema(change("d", deliveryRow, "null")),
		"truncated":                      change("t", "null", "null"),
		"truncated, no rows":             `{"source":{"connector":"postgresql"},"op":"t","ts_ms":1796073884791}`,
		"message":                        `{"op":"m","ts_ms":1796073884791,"source":{"connector":"postgresql"},"message":{"prefix":"p","content":"eA=="}}`,
		"no payload":                     change("c", "null", outboxRow("null")),
		"payload is the text null":       change("c", "null", outboxRow(`"null"`)),
		"deleted in a CloudEvent":        cloudOfDebezium("d", `{"before":`+row+`,"after":null}`),
		"updated in a CloudEvent":        cloudOfDebezium("u", `{"before":null,"after":`+row+`}`),
		"schema around nothing":          withSchema("null"),
	} {
		require.Equal(t, codecs.Decoded{Outcome: codecs.IsIgnored}, decode(t, codecs.FormatAuto, `{"id":"e-1"}`, []byte(value)), name)
	}
	require.Equal(t, codecs.Decoded{Outcome: codecs.IsIgnored}, decode(t, codecs.FormatChange, `{"id":"e-1"}`, nil), "tombstone")
}

func TestRefusedChangeEvents(t *testing.T) {
	for name, c := range map[string]struct {
		value string
		want  codecs.Reason
	}{
		"unknown op":             {change("x", "null", deliveryRow), codecs.Unreadable},
		"no row":                 {change("c", "null", "null"), codecs.Unreadable},
		"row is no object":       {change("u", "{}", `["D-1"]`), codecs.Unreadable},
		"payload cut off":        {change("c", "null", outboxRow(quoteJSON(payload[:40]))), codecs.Unreadable},
		"payload is a number":    {change("c", "null", outboxRow("7")), codecs.Unreadable},
		"payload of base64":      {change("c", "null", outboxRow(`"eyJzdGF0dXMiOiJBIn0="`)), codecs.Unreadable},
		"no event time":          {change("c", "null", outboxRow(quoteJSON(`{"deliveryId":"D-1","status":"CREATED"}`))), codecs.MissingField},
		"no event time in a row": {change("u", "null", `{"delivery_id":"D-1","status":"CREATED"}`), codecs.MissingField},
		"no time in CloudEvents": {cloudOfDebezium("u", `{"before":null,"after":{"delivery_id":"D-1","status":"CREATED"}}`), codecs.MissingField},
		"integer delivery ID":    {change("u", "null", `{"delivery_id":1,"status":"CREATED","occurred_at":1773453702}`), codecs.WrongType},
		"no delivery ID":         {change("u", "null", `{"id":1,"status":"CREATED","occurred_at":1773453702}`), codecs.MissingField},
		"empty row":              {change("c", "null", `{}`), codecs.MissingField},
		"a status of the row":    {change("c", "null", `{"status":"SENT","occurred_at":1773453702,`+outboxColumns+`,"payload":{}}`), codecs.MissingField},
		"no status":              {change("c", "null", outboxRow(`"{}"`)), codecs.MissingField},
		"schema change":          {`{"source":{"connector":"mysql"},"ts_ms":1,"databaseName":"orders","ddl":"CREATE TABLE t (a INT)","tableChanges":[]}`, codecs.MissingField},
		"heartbeat":              {`{"ts_ms":1796073884791}`, codecs.MissingField},
	} {
		out := decode(t, codecs.FormatAuto, "D-1", []byte(c.value))
		require.Equal(t, codecs.IsRefused, out.Outcome, name)
		require.Equal(t, c.want, out.Reason, "%s: %s", name, out.Detail)
	}
}

// The key of a change event is that of its row, so it never tells a delivery ID.
func TestKeyOfAChangeEvent(t *testing.T) {
	row := []byte(change("c", "null", deliveryRow))
	for _, key := range []string{
		"D-1", `"D-1"`, `{"delivery_id":"D-1"}`, `{"id":"D-1"}`, `{"schema":{},"payload":"D-1"}`,
		`{"schema":{"type":"struct"},"payload":{"aggregateid":"D-1"}}`,
	} {
		require.Equal(t, codecs.IsEvent, decode(t, codecs.FormatAuto, key, row).Outcome, key)
	}
	for _, key := range []string{
		"", `{"id":"e-1"}`, `{"id":"D-1","region":"seoul"}`, `{"region":"seoul","id":"D-1"}`, `{}`, `{"id":{"id":"D-1"}}`, `{"id":["D-1"]}`, `{"id":"D-1"`, `["D-1"]`,
		`{"schema":{},"payload":{}}`, `{"id":null}`,
	} {
		require.Equal(t, codecs.KeyMismatch, decode(t, codecs.FormatAuto, key, row).Reason, key)
	}
	noID := []byte(change("c", "null", `{"status":"CREATED","occurred_at":1773453702}`))
	out := decode(t, codecs.FormatAuto, `{"id":"e-1"}`, noID, "__debezium.context.taskId", "0", "id", "e-1")
	require.Equal(t, codecs.MissingField, out.Reason, out.Detail)
	require.Equal(t, codecs.KeyMismatch, decode(t, codecs.FormatAuto, `{"id":"D-1"}`, minimal("", "")).Reason, "only for change events")
}

// An event may have members that are named as those of a wrapper.
func TestEventsThatLookLikeChangeEvents(t *testing.T) {
	for _, extra := range []string{
		`"op":"d","before":{},"after":null,"source":{}`, `"op":"u","after":{"payload":"{}"},"source":"app"`, `"op":7`,
		`"specversion":"1.0","id":"x","source":"/s","type":"t","data":{"status":"DELIVERED"}`,
	} {
		value := payload[:len(payload)-1] + "," + extra + "}"
		require.Equal(t, codecs.Decoded{Event: outboxEvent(nil)}, decode(t, codecs.FormatAuto, "D-1", []byte(value)), extra)
	}
}

func TestForcedChangeEvents(t *testing.T) {
	for _, value := range []string{payload, nativeEvent, `{}`, `{"payload":` + payload + `}`, quoteJSON(payload), cloudOfDebezium("c", `{"before":null,"after":`+deliveryRow+`}`)} {
		out := decode(t, codecs.FormatChange, "D-1", []byte(value), "id", "e-1")
		require.Equal(t, codecs.Unreadable, out.Reason, value)
		require.Contains(t, out.Detail, "change event")
	}
	for _, format := range []string{codecs.FormatNative, codecs.FormatOutbox} {
		out := decode(t, format, "D-1", []byte(change("c", "null", deliveryRow)))
		require.Equal(t, codecs.MissingField, out.Reason, format)
	}
}
