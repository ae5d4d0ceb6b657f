package api

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/go-chi/chi/v5"

	"deliverystat/codecs"
)

const typeJSON = "application/json"

// detailGroups says why there are no groups. A partition with other settings may
// not count a dimension at all, so that one value is as wrong as all of them.
const detailGroups = "the partitions were counted with different settings: only totals are exact until all have the same"

// getCounts answers GET /v1/counts.
func (a *API) getCounts(w http.ResponseWriter, r *http.Request) {
	snapshot, q, ok := a.readCounts(w, r, append([]string{paramBy}, consistency()...))
	if !ok {
		return
	}
	a.answerCounts(w, r, snapshot, q, q.countsKey())
}

// getCount answers GET /v1/counts/{status}.
func (a *API) getCount(w http.ResponseWriter, r *http.Request) {
	name, err := url.PathUnescape(chi.URLParam(r, "status"))
	status, known := a.options.Lifecycle.Lookup(name)
	if err != nil || !known {
		fail(w, r, problemUnknownStatus, fmt.Sprintf("%q is no status of the lifecycle: see /v1/statuses", clip(name)))
		return
	}
	snapshot, q, ok := a.readCounts(w, r, consistency())
	if !ok {
		return
	}
	a.answerCounts(w, r, snapshot, q, bodyKey{kind: bodyOfStatus, name: q.scope(), status: status})
}

// complete returns the newest counts, nil before the first recovery.
func (a *API) complete() *codecs.Counts {
	if snapshot := a.options.Counts.Snapshot(); snapshot != nil && snapshot.Complete {
		return snapshot
	}
	return nil
}

// readCounts finds the snapshot that answers a request that may have these
// parameters beside dimensions, or answers why there is none.
func (a *API) readCounts(w http.ResponseWriter, r *http.Request, params []string) (*codecs.Counts, query, bool) {
	snapshot := a.complete()
	partitions := 0
	if snapshot != nil {
		partitions = len(snapshot.Position.Next)
	}
	q, faults := parseQuery(r.URL.RawQuery, partitions, accepts{dimensions: a.options.Dimensions, params: params})
	if len(faults) > 0 {
		fail(w, r, problemInvalidParameters, summary(faults), withFaults(faults))
		return nil, q, false
	}
	if snapshot == nil {
		failRecovering(w, r)
		return nil, q, false
	}
	if q.hasPosition && !snapshot.Position.Reaches(q.position) {
		err := a.await(r.Context(), q.wait, func(ctx context.Context) (err error) {
			snapshot, err = a.options.Counts.Wait(ctx, q.position)
			return err
		})
		if err != nil {
			failNotReached(w, r, q)
			return nil, q, false
		}
	}
	if q.grouped() && !snapshot.Uniform {
		fail(w, r, problemGroupsUnavailable, detailGroups)
		return nil, q, false
	}
	return snapshot, q, true
}

// answerCounts sends a body of snapshot.
func (a *API) answerCounts(w http.ResponseWriter, r *http.Request, snapshot *codecs.Counts, q query, key bodyKey) {
	f := a.freshnessOf(snapshot.Position)
	setStaleness(w, f)
	if failStale(w, r, q, f) {
		return
	}
	all := a.bodiesOf(snapshot)
	b := all.get(a, key)
	out := buffers.Get().(*bytes.Buffer)
	defer putBuffer(out)
	out.Write(b.head)
	out.WriteString(`,"as_of":`)
	out.Write(all.asOf)
	out.Write(a.asOfTail(out.AvailableBuffer(), f))
	out.WriteString("}\n")
	respond(w, r, typeJSON, b.etag, out.Bytes())
}

// await calls wait with a context that ends after limit, when the client goes
// away, or when the API drains.
func (a *API) await(ctx context.Context, limit time.Duration, wait func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer context.AfterFunc(a.draining, cancel)()
	return wait(ctx)
}

func failRecovering(w http.ResponseWriter, r *http.Request) {
	fail(w, r, problemRecovering, "this replica has not read its tables to the end yet")
}

func failNotReached(w http.ResponseWriter, r *http.Request, q query) {
	fail(w, r, problemPositionNotReached, fmt.Sprintf("position %s was not reached within %s", q.position, q.wait))
}

// failStale refuses an answer that is older than the client wants.
func failStale(w http.ResponseWriter, r *http.Request, q query, f freshness) bool {
	switch {
	case q.maxStaleness < 0 || f.known && f.staleness <= q.maxStaleness:
		return false
	case f.known:
		fail(w, r, problemTooStale, fmt.Sprintf("the answer may be %ss old, more than %s", f.appendSeconds(nil), q.maxStaleness))
	default:
		fail(w, r, problemTooStale, "how old the answer is has not been proved yet")
	}
	return true
}

// summary says in one sentence what the faults say one by one.
func summary(faults []fault) string {
	if len(faults) == 1 {
		if faults[0].Parameter == "" {
			return faults[0].Detail
		}
		return faults[0].Parameter + ": " + faults[0].Detail
	}
	return fmt.Sprintf("%d faults in the request: see errors", len(faults))
}
