// Package broker runs a real Apache Kafka cluster of KRaft nodes on loopback,
// for tests and benchmarks.
//
// The jars come from Maven: [Jars] fetches them once into e2e/.cache. A
// [Cluster] keeps its data, configuration and logs in the folder it is given
// and listens on free ports. Its nodes can be killed, stopped and started
// again one by one; they never outlive the program that started them.
//
// It is no model of a production cluster: nothing is fsynced, topics are
// replicated only as far as there are nodes, and heaps are small.
package broker
