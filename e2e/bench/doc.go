// Command bench compares the service with the least that any Go consumer of
// the same topic has to do, on a real Kafka on this machine, and writes a
// report in Markdown.
//
// The floor is a bare sarama consumer that decodes the JSON of each event with
// encoding/json and does nothing else; it runs as a process of its own (`bench
// floor`). Floor, service without API and service with API take turns on one
// preloaded topic, so that what else the machine does hits all alike; each pair
// of neighbours gives one ratio. CPU seconds are user and system time of the
// process from its start, out of /proc; wall time is from its start until
// everything is consumed and, for the service, until the counts are exact.
//
// Then it measures, with a steady load, the time from producing an event to an
// answer of /v1/counts that reflects it, and the time from starting a replica
// that was killed to its first answer at the end of the input.
//
// On request it measures how long a replica takes to stand in for another that
// is killed and taken out at once, on a table of many rows, without and with
// --standby, and what the latter costs.
//
//	go run ./e2e/bench            # takes some minutes
//	go run ./e2e/bench -events=100000 -rounds=1
//	go run ./e2e/bench -rounds=0 -probes=0 -takeovers=2
package main
