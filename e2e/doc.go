// Package e2e tests the deliverystat binary as a black box on a real Apache
// Kafka: what a user does with it, and what faults do to it.
//
// Each test reads as a specification of one promise: it makes an input, starts
// replicas, does something to them, and states the exact numbers that every
// reader must see afterwards. The tests know the service only by its commands,
// its HTTP answers, its metrics and its topics.
//
// They need Java 17 and Maven, which fetches the broker's jars once, and run
// only with the build tag e2e:
//
//	go test -tags e2e ./e2e/...
//
// The packages below e2e are the tools for that: process runs one operating
// system process, broker a Kafka cluster, replica a deliverystat serve, kafka
// talks to topics with a client that is not the service's own.
//
// What is not promised: speed (see e2e/bench), and anything that only shows on
// several machines.
package e2e
