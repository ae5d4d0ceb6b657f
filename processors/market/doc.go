// Package market simulates a delivery market and says what the truth about it
// is.
//
// [Market] produces a fixed number of delivery events that is a pure function
// of its [Options]: deliveries that are created, assigned, picked up and closed
// in several regions by several courier services, and on top of that what real
// inputs do: duplicates, events out of order, events after the completion,
// unknown statuses, clocks that disagree, and records that are no events at
// all. [Live] does the same without end, at the pace of its caller, for demos.
//
// [Model] is the reference of what the events of one partition mean. It keeps
// every event it ever merged and works each answer out from scratch, so that it
// can be checked by reading it. [FastModel] answers for counts only, at a
// constant cost per event, and [World] keeps its answers for every prefix of a
// recorded log of several partitions.
//
// The package shares no code with the processors it judges: it imports package
// codecs for the types of an event and the names of the lifecycle, and repeats
// the rules in its own words. It does no I/O, reads no clock, and none of its
// types may be used by two goroutines at the same time.
package market
