// Package simulation produces records: those of a simulated market, or those
// of a file.
//
// Its producer is idempotent, waits for all in-sync replicas, and places
// records by the same key hash as the Java client, unless told otherwise. A
// record counts as sent once it is acknowledged, so that a truth that is
// written after [Producer.Close] is one about what is in the topic.
package simulation
