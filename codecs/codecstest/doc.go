// Package codecstest gives tests real input records: what Debezium's outbox
// EventRouter wrote to Kafka, in every configuration whose record key is the
// delivery ID, with the statuses that a correct reader ends with.
//
// The records are embedded. Reading them panics if they are damaged, for then
// no test that uses them means anything.
package codecstest
