package api

import (
	"context"
	"net/http"
	"time"

	"deliverystat/codecs"
)

const pathList = "/v1/deliveries"

// listDeliveries answers GET /v1/deliveries.
func (a *API) listDeliveries(w http.ResponseWriter, r *http.Request) {
	partitions := 0
	if snapshot := a.complete(); snapshot != nil {
		partitions = len(snapshot.Position.Next)
	}
	q, faults := parseQuery(r.URL.RawQuery, partitions, accepts{
		dimensions: a.options.Dimensions, params: append(listing(), consistency()...), lifecycle: a.options.Lifecycle,
	})
	after, err := q.readCursor()
	if err != nil {
		faults = append(faults, fault{paramCursor, err.Error()})
		sortFaults(faults)
	}
	if len(faults) > 0 {
		fail(w, r, problemInvalidParameters, summary(faults), withFaults(faults))
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
	}
	page, ready := a.options.Deliveries.List(r.Context(), q.live(time.Now(), after))
	if !ready {
		failRecovering(w, r)
		return
	}
	f := a.freshnessOf(page.At.Position)
	setStaleness(w, f)
	if failStale(w, r, q, f) {
		return
	}
	head := members(a.showPage(&q, &page))
	position := page.At.String()
	etag := etagOf(page.At.TopicID, position, string(head))
	body := append([]byte{'{'}, head...)
	body = append(body, `,"as_of":`...)
	body = asOfHead(body, position, page.At.EventTime)
	body = append(a.asOfTail(body, f), "}\n"...)
	respond(w, r, typeJSON, etag, body)
}

// deliveryList is a page as the API shows it.
type deliveryList struct {
	Deliveries []delivery `json:"deliveries"`
	Total      *int64     `json:"total,omitempty"`
	NextCursor *string    `json:"next_cursor"`
}

func (a *API) showPage(q *query, page *codecs.LivePage) *deliveryList {
	out := &deliveryList{Deliveries: make([]delivery, 0, len(page.Deliveries))}
	for i := range page.Deliveries {
		out.Deliveries = append(out.Deliveries, show(a.options.Lifecycle, &page.Deliveries[i]))
	}
	if q.cursor == "" {
		out.Total = &page.Total
	}
	if page.Next != nil {
		next := q.nextCursor(page.Next)
		out.NextCursor = &next
	}
	return out
}
