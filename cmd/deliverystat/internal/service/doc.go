// Package service is the service as one value: it wires the processors, the
// views, the API and the admin server, and decides in which order they start
// and stop. The commands serve and demo run it.
//
//	New  ──▶ listening on both addresses
//	Run  ──▶ admin and API answer (not ready, 503)
//	     ──▶ a broker answers
//	     ──▶ the topics are right, and the keys lie where --key-partitioner says
//	     ──▶ views and processors run                      ──▶ ready once recovered
//	stop ──▶ not ready ──▶ drain delay ──▶ API ──▶ processors (last commit) ──▶ views ──▶ admin
//
// Failure. A fault of Kafka never ends Run: whoever waits for Kafka goes on
// waiting, and says so. Run returns an error, with its exit code, for topics or
// settings that can not be worked with, for a twin with the same instance ID,
// and if stopping takes too long.
package service
