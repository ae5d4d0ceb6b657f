// Package demo is the whole service in one process: an embedded broker in
// memory, the service, and something that produces events. Everything listens
// on loopback, and everything it writes to disk is in one temporary directory
// that is gone when [Run] returns.
package demo
