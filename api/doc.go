// Package api serves the counts and deliveries over HTTP: the public API under
// /v1, its description in openapi.yaml, the live board, and the admin paths.
//
// Promises. An answer reflects exactly the prefix of the input that its
// as_of.position names: every accepted event of that prefix once, nothing
// beyond it. All numbers of one answer share one position: a request reads one
// snapshot, so that the sum of counts is live and the sum of groups the total.
// The positions of successive answers of one replica never go back.
// as_of.staleness_seconds is a proved bound of the age of an answer, rounded up.
// Before the first recovery there is no answer: 503 with Retry-After, never a
// number that is only true so far. After it, reads go on whatever happens to
// Kafka, with a truthful as_of.
//
// Not promised: that two replicas give the same answer at one instant
// (min_position makes one wait for what another has shown), or that an answer
// is the newest (see lag_records and staleness_seconds). A 304 says that the
// position did not move, and repeats the staleness in a header.
//
// Failures. Every answer with an error status is an application/problem+json
// body with a type that openapi.yaml lists, unknown paths, wrong methods, load
// shedding and panics included. All faults of a request are named at once. What
// goes wrong inside is logged and not told.
//
// The package knows neither Kafka nor Goka: it reads through the small
// interfaces [Counts], [Deliveries] and [Freshness].
package api
