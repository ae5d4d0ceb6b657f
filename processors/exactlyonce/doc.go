// Package exactlyonce runs a Goka processor on Kafka transactions.
//
// Goka brings the group graph, the co-partitioned consumer group, the recovery
// of tables from their changelogs, and views. It has no transactions: it
// commits offsets as soon as single records are finished, and it writes the
// local store before Kafka has acknowledged the row. This package replaces,
// through Goka's own builder hooks, what stands in the way:
//
//	                  callbacks (one goroutine per partition)
//	                      │ change the partition's State in RAM
//	                      ▼
//	running epoch ──cut──▶ committing epoch ──▶ one Kafka transaction
//	(State)                (Epoch.Write)          table rows, in order
//	                                              emitted records
//	                                              offsets + group metadata
//	                                                   │ surely committed
//	                                                   ▼
//	                                            local store (LevelDB)
//
// The life of a [Runtime]:
//
//	attempt:  InitProducerID ─▶ JoinGroup ─▶ session* ─▶ (fault) ─▶ next attempt
//	session:  OffsetFetch (stable) ─▶ recovery to the visible end ─▶ State.Recover
//	          ─▶ epochs ─▶ last epoch ─▶ give up the partitions
//
// Promises.
//   - Each input record takes effect in the table, and in the emitted records,
//     exactly once, whatever process, broker or connection dies.
//   - A [State] sees the records of its partition in order, and a table of
//     committed rows only.
//   - The local store equals a prefix of the committed changelog at every
//     moment. It may be deleted at any time.
//   - A zombie cannot commit: each transaction carries an offset for every
//     partition whose rows or records it holds, and the generation with it.
//   - A fault is survived in the process: the attempt ends, nothing of an epoch
//     in doubt is kept, and another begins. Only a twin with the same
//     instance ID, and what a State marks [Permanent], end [Runtime.Run].
//   - With [Config.Standby] a process also keeps the stores of partitions that
//     others own, for a short takeover. That work gives way to recovery.
//   - A [Follower] shows a table as of the end of an epoch.
//
// Not promised: exactly once for anything outside Kafka; progress while an
// upstream transaction is open (it hides the input behind it); two processes
// with one instance ID.
//
// Failure contract: a panic in a callback, an error of Recover or Write, a
// record above [MaxRecordBytes] and any error of a transaction end the attempt.
// A State must therefore never fail for the content of a record: it would fail
// at the same offset for ever.
//
// The package knows nothing of what the records mean.
package exactlyonce
