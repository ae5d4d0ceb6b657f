// Package process starts operating system processes that never outlive the
// program that started them, and sends them the signals that tests need.
//
// Every process leads a process group of its own. Kill and Stop reach the
// whole group, and on Linux the kernel kills the process when its starter dies
// in whatever way, so that an interrupted test leaves nothing behind.
package process
