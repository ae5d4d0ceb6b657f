// Package audit counts again, in another way than the service does, and says
// where the two differ. It is pure: who calls it reads the topics.
//
// The service moves its counts by one with each transition. An audit throws
// them all away and counts the rows of the table latest-delivery, or replays
// the events themselves. Differences are then a fault of the service, of its
// storage, or of somebody who wrote to its topics.
//
// # A consistent cut
//
// A comparison says something only if both sides reflect the same input. While
// the service runs, both tables move, so an audit can not just read both. It
// uses that each of them is a log that names its own positions:
//
//   - The table count-per-status holds what each input partition contributes,
//     and its progress row tells the position P of each at which that holds.
//   - Whatever an owner tells of its partition at position P was written in one
//     transaction with the rows that lead to it, and with a progress row of
//     position P behind them. So the log of that table partition contains the
//     very rows that the contribution was counted from: those before the
//     progress row of position P. Others of the same position may follow, in
//     which rows are deleted that had been forgotten before: they change no
//     count.
//
// So an audit reads the contributions first, which fixes a target position for
// each partition, and then reads each table partition from its beginning to the
// last progress row of that position: [Fold]. Nothing needs to stand still, and
// no partition need be at the same position as another one.
//
// The table is compacted, though: a row before the target that was written
// again after it may be gone. Compaction leaves alone what is younger than
// min.compaction.lag.ms, an hour or more, and all that a record so young
// supersedes. So a cut is exact if it is the end of the log, or younger than
// that. If the counts table is further behind its input than that, no audit
// from the table is possible until it has caught up; [Fold.Missed] tells.
//
// The log of the input is not compacted. A [Replay] applies its records from
// offset 0 to the target position, and is exact for any of them.
//
// # One delivery
//
// An [Explanation] replays the input in the same way and puts the decisions about
// one delivery into words. Its row is compared with that of the table at the
// position of the table's progress row.
package audit
