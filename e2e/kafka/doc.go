// Package kafka reads and writes topics for tests, with another client library
// than the service uses, so that a fault of the one can not hide in the other.
//
// It names partitions by hand and knows nothing of key hashes: a test says in
// which partition a record goes.
package kafka
