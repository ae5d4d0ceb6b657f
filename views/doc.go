// Package views is what a reader sees of the tables: [Counts] is the content of
// count-per-status, [Deliveries] that of latest-delivery, [Freshness] says how
// current they are, and [Collector] shows all of it to Prometheus. Each replica
// that serves has its own views over its own copies of the tables.
//
// Promised. Counts are exact at their position: one immutable snapshot holds
// all scopes as of one progress row, so that the sum over statuses is the number
// of live deliveries, and the sum over the values of a dimension the total. A
// delivery is read together with the progress of its partition, as of one epoch.
// Before the first recovery there is no answer, never a zero. After it reads go
// on through rebalances and broker loss; they get older, and say so.
//
// Monotonic means: on one replica, and within one life of the input topic (one
// topic ID), no partition of a position ever goes back, whatever is recovered
// anew. A topic that is created anew begins a new life, and a former life never
// returns.
//
// Staleness s proves: the answer reflects everything that read-committed readers
// could see s ago. It is measured from the moment at which the request for the
// ends was sent, so it is a bound and no estimate, and no clock but this
// process's takes part. Transaction markers and aborted records are nothing that
// a reader could see, so they do not make an answer stale. While the brokers do
// not answer, staleness grows with time.
//
// Not promised: that a position is the end of the input (see the lag), that two
// replicas, or counts and deliveries of one, stand at the same position at one
// instant, or that a bound is tight. What hangs in an open transaction of a
// producer is not part of what readers could see; its size is a metric of its
// own.
package views
