package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"

	"deliverystat/codecs"
)

// instant is a time in Unix nanoseconds that is shown as RFC 3339 in UTC, or as
// null for codecs.None.
type instant int64

// MarshalJSON implements json.Marshaler.
func (t instant) MarshalJSON() ([]byte, error) { return appendTime(nil, int64(t)), nil }

// delivery is a row as the API shows it.
type delivery struct {
	ID         string            `json:"delivery_id"`
	Status     string            `json:"status"`
	RawStatus  string            `json:"raw_status"`
	OccurredAt instant           `json:"occurred_at"`
	Since      instant           `json:"since"`
	Timeline   []statusTimes     `json:"timeline"`
	OrderID    string            `json:"order_id"`
	StoreID    string            `json:"store_id"`
	Dimensions map[string]string `json:"dimensions"`
	Closed     bool              `json:"closed"`
	ClosedAt   instant           `json:"closed_at"`
}

type statusTimes struct {
	Status string  `json:"status"`
	First  instant `json:"first"`
	Last   instant `json:"last"`
}

// show makes d what the API shows.
func show(lifecycle *codecs.Lifecycle, d *codecs.Delivery) delivery {
	out := delivery{
		ID:         d.ID,
		Status:     lifecycle.Name(d.Status),
		RawStatus:  d.RawStatus,
		OccurredAt: instant(d.OccurredAt),
		Since:      instant(d.Since),
		Timeline:   make([]statusTimes, 0, len(d.Timeline)),
		OrderID:    d.Attributes[codecs.OrderID],
		StoreID:    d.Attributes[codecs.StoreID],
		Dimensions: map[string]string{},
		Closed:     d.Closed,
		ClosedAt:   instant(d.ClosedAt),
	}
	for _, t := range d.Timeline {
		out.Timeline = append(out.Timeline, statusTimes{lifecycle.Name(t.Status), instant(t.First), instant(t.Last)})
	}
	for _, dimension := range []codecs.Attribute{codecs.Region, codecs.Service} {
		out.Dimensions[dimension.String()] = d.Attributes[dimension]
	}
	return out
}

// getDelivery answers GET /v1/deliveries/{id}.
func (a *API) getDelivery(w http.ResponseWriter, r *http.Request) {
	id, err := url.PathUnescape(chi.URLParam(r, "id"))
	if err != nil || !codecs.ValidID(id) {
		fail(w, r, problemInvalidDeliveryID, "a delivery ID is 1 to 256 bytes of UTF-8 without control characters, percent-encoded once")
		return
	}
	d, at, found, ready := a.options.Deliveries.Get(id)
	partitions := 0
	if ready {
		partitions = len(at.Next)
	}
	q, faults := parseQuery(r.URL.RawQuery, partitions, accepts{params: consistency()})
	if len(faults) > 0 {
		fail(w, r, problemInvalidParameters, summary(faults), withFaults(faults))
		return
	}
	if !ready {
		failRecovering(w, r)
		return
	}
	if q.hasPosition {
		err := a.await(r.Context(), q.wait, func(ctx context.Context) error {
			return a.options.Deliveries.Wait(ctx, q.position)
		})
		if err != nil {
			failNotReached(w, r, q)
			return
		}
		// What was read above may be older than the position.
		d, at, found, _ = a.options.Deliveries.Get(id)
	}
	f := a.freshnessOf(at.Position)
	setStaleness(w, f)
	if failStale(w, r, q, f) {
		return
	}
	position := at.String()
	if !found {
		asOf := a.asOfTail(asOfHead(nil, position, at.EventTime), f)
		fail(w, r, problemDeliveryNotFound, "not live, and not closed within the window of "+a.window, withAsOf(asOf))
		return
	}
	row, err := json.Marshal(show(a.options.Lifecycle, &d))
	if err != nil { // strings, numbers and times always have an encoding
		panic(err)
	}
	etag := etagOf(at.TopicID, position, string(row))
	body := append(row[:len(row)-1], `,"as_of":`...)
	body = asOfHead(body, position, at.EventTime)
	body = append(a.asOfTail(body, f), "}\n"...)
	respond(w, r, typeJSON, etag, body)
}
