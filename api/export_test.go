package api

import "github.com/go-chi/chi/v5"

// Routes lets tests walk the routes.
func (a *API) Routes() chi.Routes { return a.router }

// ProblemType is what tests see of a problem type.
type ProblemType struct {
	Type, Title string
	Status      int
	RetryAfter  bool
}

// ProblemTypes lists the problem types of the code.
func ProblemTypes() []ProblemType {
	var out []ProblemType
	for _, t := range []problemType{
		problemInvalidParameters, problemInvalidDeliveryID, problemUnauthorized, problemNotFound, problemUnknownStatus,
		problemDeliveryNotFound, problemMethodNotAllowed, problemInternal, problemRecovering, problemPositionNotReached,
		problemTooStale, problemGroupsUnavailable, problemOverloaded,
	} {
		out = append(out, ProblemType{t.Type, t.Title, t.Status, t.RetryAfter > 0})
	}
	return out
}

// AllowPanics adds a route that panics before or, with late, after it has begun
// to answer.
func (a *API) AllowPanics() {
	a.router.Get("/panic", handlePanic(false))
	a.router.Get("/panic/late", handlePanic(true))
}
