// Package processors says what happens to a delivery event: the decisions as
// pure functions, and the two processors that apply them.
//
//	delivery-events                          N partitions, key = delivery ID
//	      │
//	      ▼
//	latest-delivery ──▶ latest-delivery-table   one row per delivery, decided by event time;
//	      │    │                                one progress row per partition, written last
//	      │    └──────▶ delivery-events-dead-letter   what was refused, with the reason
//	      ▼
//	status-tallies                           one partition: the absolute counts of one source
//	      │                                  partition, once per epoch that consumed anything
//	      ▼
//	count-per-status ─▶ count-per-status-table  contributions per source partition, totals per
//	                                            scope, and the progress row, written last
//
// # The order of decisions
//
// For each record of a partition, in this order and with no other input
// ([Replay] does the same in memory):
//
//  1. The record's timestamp moves the record times, whatever the record is.
//  2. It is decoded and admitted ([Settings.Admit]): a wrong partition, an
//     implausible event time, a missing sequence refuse it. What is refused or
//     ignored here changes nothing else.
//  3. The clock becomes the greater of itself and the event time.
//  4. Every row that falls due is abandoned or forgotten, in order of due time
//     and then of key; a forgotten row raises the horizon.
//  5. [Settings.Observe] finds the event late, or a duplicate, or merges it, or
//     makes it the winner; a late one that carries [HeaderAcceptLate] is taken
//     by [Settings.Accept]. The counts move by −1 and +1.
//  6. The event's own row is checked again, for it may be due already.
//
// # Promises
//
// Rows, counts, clock and horizon are a function of the records read from the
// partition and of [Settings]: not of where epochs end, of crashes, of the wall
// clock, or of who owns the partition. An expiry is decided at its place in the
// log and may be written later; whoever reads a row applies [Settings.Standing]
// with the partition's progress row and comes to the same.
//
// A row is the greatest of its events in a total order, so the order of their
// arrival and repeats do not matter. No event of a forgotten delivery makes a
// new one: what is not newer than everything forgotten is refused as late. The
// one exception is an event that somebody has marked with [HeaderAcceptLate].
//
// Tallies are absolute, so that one read twice does no harm. Numbers are never
// clamped: a negative count is a fault of ours and is logged as one.
//
// # Not promised
//
// A partition that receives nothing expires nothing: its clock stands still. An
// event that is in good order for its delivery, but older than what was
// forgotten meanwhile, is refused if the delivery is unknown. A first load that
// takes longer than the lateness, or record timestamps that are made from event
// times, can make events late that are not.
//
// # Failure
//
// No record can stop a partition: what can not be used is a dead letter in the
// same transaction as everything else. Errors come from reading the table only;
// they end the attempt, and with it the state of the partition, which the next
// attempt rebuilds from committed rows. Where a table can not be meant, because
// its settings differ or it holds no progress row, the error is permanent and
// ends the process.
package processors
