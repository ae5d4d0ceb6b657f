package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
)

func rowOf(id string) codecs.Delivery {
	lifecycle := codecs.BuiltinLifecycle()
	created, _ := lifecycle.Lookup("CREATED")
	picked, _ := lifecycle.Lookup("PICKED_UP")
	d := codecs.Delivery{
		ID: id, Status: picked, RawStatus: "픽업", OccurredAt: eventTime, Since: eventTime - int64(time.Minute),
		Timeline: []codecs.StatusTimes{
			{Status: created, First: eventTime - int64(time.Hour), Last: eventTime - int64(time.Hour)},
			{Status: picked, First: eventTime - int64(time.Minute), Last: eventTime},
		},
		ClosedAt: codecs.None,
	}
	d.Attributes[codecs.OrderID] = "O-77"
	d.Attributes[codecs.Region] = "seoul"
	return d
}

func TestDelivery(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deliveries.set(at(-1, -1, 17), rowOf("D-1"))
	a := get(t, w.api(t), "/v1/deliveries/D-1")
	require.Equal(t, http.StatusOK, a.StatusCode)
	//nolint:testifylint // the bytes: times keep their digits, members their order
	require.Equal(t, `{"delivery_id":"D-1","status":"PICKED_UP","raw_status":"픽업","occurred_at":"2026-11-30T01:00:00.123456Z",`+
		`"since":"2026-11-30T00:59:00.123456Z","timeline":[`+
		`{"status":"CREATED","first":"2026-11-30T00:00:00.123456Z","last":"2026-11-30T00:00:00.123456Z"},`+
		`{"status":"PICKED_UP","first":"2026-11-30T00:59:00.123456Z","last":"2026-11-30T01:00:00.123456Z"}],`+
		`"order_id":"O-77","store_id":"","dimensions":{"region":"seoul","service":""},"closed":false,"closed_at":null,`+
		`"as_of":{"position":"2:17","event_time":"2026-11-30T01:00:01.123456Z","lag_records":0,"staleness_seconds":0.04,"stale":false,"replica":"deliverystat-0"}}`+"\n",
		string(a.body))
	require.Equal(t, "0.04", a.Header.Get("Deliverystat-Staleness-Seconds"))
}

func TestClosedDelivery(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := rowOf("D-1")
	d.Status, d.Closed, d.ClosedAt = codecs.BuiltinLifecycle().Abandoned(), true, eventTime+int64(168*time.Hour)
	w.deliveries.set(at(-1, -1, 17), d)
	object := get(t, w.api(t), "/v1/deliveries/D-1").object(t)
	require.Equal(t, "ABANDONED", object["status"])
	require.Equal(t, true, object["closed"])
	require.Equal(t, "2026-12-07T01:00:00.123456Z", object["closed_at"])
}

func TestDeliveryNotFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deliveries.set(at(3, 4, 17))
	a := get(t, w.api(t), "/v1/deliveries/D-1")
	object := requireProblem(t, a, "delivery-not-found")
	require.Equal(t, "not live, and not closed within the window of 24h0m0s", object["detail"])
	require.Equal(t, "0:3,1:4,2:17", object["as_of"].(map[string]any)["position"])
	require.Equal(t, "2026-11-30T01:00:01.123456Z", object["as_of"].(map[string]any)["event_time"])
	require.Equal(t, "0.04", a.Header.Get("Deliverystat-Staleness-Seconds"))
}

// A path is decoded once, whatever escapes the client chose.
func TestDeliveryIDsAreDecodedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{"a/b", "100%", "100%25", "a b", "배달 1", "a+b", "a?b#c", ".", "..", "a%2Fb", strings.Repeat("x", 256), `"<>&\`} {
		w.deliveries.set(at(-1, -1, 17), rowOf(id))
		object := get(t, w.api(t), "/v1/deliveries/"+url.PathEscape(id)).object(t)
		require.Equal(t, id, object["delivery_id"])
		// Every byte escaped, as some clients do.
		var all strings.Builder
		for i := range len(id) {
			const hex = "0123456789abcdef"
			all.WriteString("%" + string(hex[id[i]>>4]) + string(hex[id[i]&15]))
		}
		object = get(t, w.api(t), "/v1/deliveries/"+all.String()).object(t)
		require.Equal(t, id, object["delivery_id"])
	}
}

func TestInvalidDeliveryIDs(t *testing.T) {
	t.Parallel()
	a := newWorld(t).api(t)
	for _, path := range []string{"a%00b", "a%0Ab", "%7F", "%C2%80", "%FF", strings.Repeat("x", 257)} {
		requireProblem(t, get(t, a, "/v1/deliveries/"+path), "invalid-delivery-id")
	}
}
