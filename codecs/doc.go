// Package codecs says what bytes mean: the formats in which delivery events
// arrive, and the rows, tallies and counts that the service itself writes.
//
// The types that the whole service speaks of live here: [Event] is one decoded
// record of the input, [Status] and [Lifecycle] are the names a delivery goes
// through, [Row] is the value of one delivery in the table latest-delivery,
// [Tally] is what one source partition tells the second stage, [Counts] is the
// content of the table count-per-status, and [Position] says which part of the
// input an answer reflects.
//
// Events come in as [Record] and leave [Decoder.Decode] as [Decoded]. Each
// input format has a file: native.go is the flat JSON object of the contract,
// envelope.go tells what is wrapped around it, and by what: outbox.go by Debezium's
// outbox EventRouter, change.go by a change event of a table, cloudevent.go by a
// CloudEvent. flat.go is the short way for an event in nothing at all. A [Profile],
// read from YAML, says where the fields of any other object are (mapping.go) and
// which statuses there are; built-in ones are in the folder profiles. check.go
// holds the rules that are the same for every format. Rows, progress rows,
// tallies and counts are protobuf messages with the schema deliverystat.proto,
// written and read by hand since that is several times faster.
//
// Promises. Decoding an event never returns an error for its content: it
// returns an [Outcome] of event, ignored or refused with a [Reason] from a
// closed set, so that no record can stop the stream. Decoding never panics, and
// its cost is linear in the size of the record, whatever that holds. What it
// returns holds on to nothing of the record. All times are Unix nanoseconds; no
// number that is kept passes through a float64. Bytes written by an older
// release still decode (golden bytes in testdata), and so does what a later one
// adds to them; bytes of a version that this release does not know are an
// error, never a guess.
//
// Not promised: that the bytes of rows and tallies stay the same from release
// to release (they are versioned, and not part of the public contract), or that
// an event is plausible for the delivery it names. What an event does to a row
// is decided in package processors.
//
// The package imports no other package of the project.
package codecs
