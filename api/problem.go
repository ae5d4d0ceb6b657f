package api

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// problemType is one type of problem (RFC 9457): what openapi.yaml lists. All
// occurrences of a type have its title and status.
type problemType struct {
	Type   string
	Title  string
	Status int
	// RetryAfter is for how long a client should stay away; 0 = no advice.
	RetryAfter time.Duration
}

// The problem types. Their names are part of the contract; clients must accept
// further ones.
var (
	problemInvalidParameters  = problemType{"/problems/invalid-parameters", "Invalid parameters", http.StatusBadRequest, 0}
	problemInvalidDeliveryID  = problemType{"/problems/invalid-delivery-id", "Invalid delivery ID", http.StatusBadRequest, 0}
	problemUnauthorized       = problemType{"/problems/unauthorized", "Bearer token required", http.StatusUnauthorized, 0}
	problemNotFound           = problemType{"/problems/not-found", "No such path", http.StatusNotFound, 0}
	problemUnknownStatus      = problemType{"/problems/unknown-status", "Unknown status", http.StatusNotFound, 0}
	problemDeliveryNotFound   = problemType{"/problems/delivery-not-found", "Delivery not found", http.StatusNotFound, 0}
	problemMethodNotAllowed   = problemType{"/problems/method-not-allowed", "Method not allowed", http.StatusMethodNotAllowed, 0}
	problemInternal           = problemType{"/problems/internal", "Internal error", http.StatusInternalServerError, 0}
	problemRecovering         = problemType{"/problems/recovering", "Recovering", http.StatusServiceUnavailable, 2 * time.Second}
	problemPositionNotReached = problemType{"/problems/position-not-reached", "Position not reached", http.StatusServiceUnavailable, time.Second}
	problemTooStale           = problemType{"/problems/too-stale", "Answer too stale", http.StatusServiceUnavailable, time.Second}
	problemGroupsUnavailable  = problemType{"/problems/groups-unavailable", "Groups unavailable", http.StatusServiceUnavailable, 10 * time.Second}
	problemOverloaded         = problemType{"/problems/overloaded", "Overloaded", http.StatusServiceUnavailable, time.Second}
)

// fault is one thing that is wrong with a request.
type fault struct {
	Parameter string `json:"parameter"`
	Detail    string `json:"detail"`
}

// problem is the body of an answer with an error status.
type problem struct {
	Type     string          `json:"type"`
	Title    string          `json:"title"`
	Status   int             `json:"status"`
	Detail   string          `json:"detail"`
	Instance string          `json:"instance,omitempty"`
	Errors   []fault         `json:"errors,omitempty"`
	AsOf     json.RawMessage `json:"as_of,omitempty"`
}

// fail answers with a problem of type t. detail is about this occurrence.
func fail(w http.ResponseWriter, r *http.Request, t problemType, detail string, more ...func(*problem)) {
	p := problem{Type: t.Type, Title: t.Title, Status: t.Status, Detail: detail}
	if id := w.Header().Get(headerRequestID); id != "" {
		p.Instance = "urn:deliverystat:request:" + id
	}
	for _, f := range more {
		f(&p)
	}
	body, err := json.Marshal(&p)
	if err != nil { // only strings and numbers
		panic(err)
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(len(body)+1))
	if t.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(t.RetryAfter/time.Second)))
	}
	w.WriteHeader(t.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(append(body, '\n')) // the client went away: nobody to tell
	}
}

// withFaults lists the faults of a request in its problem.
func withFaults(faults []fault) func(*problem) {
	return func(p *problem) { p.Errors = faults }
}

// withAsOf says what a negative answer reflects.
func withAsOf(asOf []byte) func(*problem) {
	return func(p *problem) { p.AsOf = asOf }
}
