// Package replica runs the deliverystat binary: it builds it once, starts
// `deliverystat serve` processes and reads what they tell by HTTP, and runs the
// commands that end by themselves.
//
// It knows the service by its contract only: commands, flags, HTTP, metrics.
package replica
