// Package codecstest gives tests real input records: what Debezium wrote to Kafka
// of an outbox, through its EventRouter and without, with the statuses that a
// correct reader ends with.
//
// The records are embedded. Reading them panics if they are damaged, for then
// no test that uses them means anything.
package codecstest
