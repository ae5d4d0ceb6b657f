package api

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// headerRequestID carries the name of a request, from the client if it is sane.
const headerRequestID = "X-Request-ID"

// saneRequestID reports whether a client's request ID may go into logs, answers
// and problems as it is.
func saneRequestID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for i := range len(id) {
		c := id[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("._-", c) >= 0) {
			return false
		}
	}
	return true
}

// setHeaders names the request and sets the headers that every answer has.
func setHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(headerRequestID)
		if !saneRequestID(id) {
			id = rand.Text()
		}
		h := w.Header()
		h.Set(headerRequestID, id)
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

// routeEscaped makes chi route by the path as it was sent, so that an ID may
// contain %2F, and so that parameters are always decoded once by their handler:
// chi would route by the decoded path unless the path needs escapes that Go would
// not have chosen.
func routeEscaped(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		chi.RouteContext(r.Context()).RoutePath = r.URL.EscapedPath()
		next.ServeHTTP(w, r)
	})
}

// recoverPanics answers a panic with a problem that tells nothing of it.
func (a *API) recoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(v)
			}
			a.options.Logger.ErrorContext(r.Context(), "request panicked",
				"request_id", w.Header().Get(headerRequestID), "err", fmt.Sprint(v), "stack", string(debug.Stack()))
			if wrapped, ok := w.(middleware.WrapResponseWriter); ok && wrapped.Status() != 0 {
				// Part of an answer is out: cut the connection, or the client
				// takes it for the whole.
				panic(http.ErrAbortHandler)
			}
			fail(w, r, problemInternal, "the request could not be answered; the log of the replica says why")
		}()
		next.ServeHTTP(w, r)
	})
}

// shed answers 503 at once when too many requests are in flight. Streams, and
// requests that may wait, for a position or for their turn to list, have places of
// their own, so that they cannot keep out the quick ones. (chi's Throttle answers
// in plain text.)
func (a *API) shed(next http.Handler) http.Handler {
	quick := make(chan struct{}, a.options.MaxInFlight)
	waiting := make(chan struct{}, a.options.MaxInFlight)
	streaming := make(chan struct{}, a.options.MaxStreams)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		places := quick
		switch {
		case r.URL.Path == pathStream:
			places = streaming
		case r.URL.Path == pathList, strings.Contains(r.URL.RawQuery, paramWait+"="):
			places = waiting
		}
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			next.ServeHTTP(w, r)
		default:
			fail(w, r, problemOverloaded, "too many requests are in flight on this replica")
		}
	})
}

// notFound answers for a path that does not exist.
func notFound(w http.ResponseWriter, r *http.Request) {
	fail(w, r, problemNotFound, "there is nothing at this path: see /openapi.yaml")
}

// methodNotAllowed answers for a method that a path does not have. chi gives a
// handler of our own no list of those that it has.
func (a *API) methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	allowed := allowedMethods(a.router, r.URL.EscapedPath())
	if len(allowed) == 0 { // chi asks for unknown methods before it looks at the path
		notFound(w, r)
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	fail(w, r, problemMethodNotAllowed, "this path takes "+strings.Join(allowed, ", "))
}

// allowedMethods returns the methods of a path; HEAD wherever GET is.
func allowedMethods(routes chi.Routes, path string) []string {
	var allowed []string
	for _, method := range []string{
		http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	} {
		if routes.Match(chi.NewRouteContext(), method, path) {
			allowed = append(allowed, method)
			if method == http.MethodGet {
				allowed = append(allowed, http.MethodHead)
			}
		}
	}
	return allowed
}

// newDrain returns the context that ends when the API drains.
func newDrain() (context.Context, context.CancelFunc) {
	return context.WithCancel(context.Background())
}
