// Package processorstest has what tests of the processors share: generators of
// inputs for property tests ([Rules], [Records]), the truth about a recorded
// input ([Truth]), and a suite of behaviours ([Run]) that is the same on an
// embedded broker and on a real one.
//
// Inputs are small and crowded on purpose: few deliveries, few seconds, many
// equal times, so that ties, repeats, closings, abandonment and forgetting occur
// in every run and failures shrink to a handful of records.
//
// The package knows the service only by what it shows to the outside, through
// [Harness]. It must not be imported but by tests.
package processorstest
