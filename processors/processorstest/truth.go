package processorstest

import (
	"encoding/binary"
	"slices"

	"deliverystat/codecs"
	"deliverystat/processors/market"
)

// LogRecord is one record of the input as the broker has it.
type LogRecord struct {
	Record
	Offset  int64
	Headers func() []codecs.Header // may be nil
}

// Entry is r as the model reads it. misplaced says that its key belongs to
// another partition.
func Entry(d *codecs.Decoder, r *LogRecord, misplaced bool) market.Entry {
	timestamp := r.Timestamp.UnixNano()
	var decoded codecs.Decoded
	d.Decode(&codecs.Record{Key: r.Key, Value: r.Value, Headers: r.Headers, Timestamp: timestamp}, &decoded)
	entry := market.Entry{Timestamp: timestamp, Reason: decoded.Reason}
	switch {
	case decoded.Outcome != codecs.IsEvent:
	case misplaced:
		entry.Reason = codecs.WrongPartition
	default:
		entry.Event = &decoded.Event
		entry.AcceptLate = acceptsLate(r)
	}
	return entry
}

// acceptsLate reports whether r is marked to be applied even if it is late.
func acceptsLate(r *LogRecord) bool {
	return r.Headers != nil && slices.ContainsFunc(r.Headers(), func(h codecs.Header) bool {
		return h.Key == "deliverystat.accept_late" && string(h.Value) == "true"
	})
}

// Entries are records as the model of a single partition reads them.
func Entries(d *codecs.Decoder, records []Record) []market.Entry {
	entries := make([]market.Entry, len(records))
	for i, r := range records {
		entries[i] = Entry(d, &LogRecord{Record: r}, false)
	}
	return entries
}

// Truth is the truth about a recorded input, by partition.
func Truth(rules market.Rules, d *codecs.Decoder, log [][]LogRecord) *market.World {
	w := market.NewWorld(rules, len(log))
	for p, records := range log {
		for _, r := range records {
			misplaced := Partition([]byte(r.Key), int32(len(log))) != int32(p)
			w.Append(int32(p), r.Offset, Entry(d, &r, misplaced))
		}
	}
	return w
}

// Partition is the partition among n where Kafka's Java clients put key: the
// low 31 bits of its murmur2 hash, modulo n. It is written apart from the one of
// the service, which it checks.
func Partition(key []byte, n int32) int32 {
	const m = 0x5bd1e995
	h := uint32(0x9747b28c) ^ uint32(len(key))
	for ; len(key) >= 4; key = key[4:] {
		k := binary.LittleEndian.Uint32(key) * m
		h = h*m ^ (k^k>>24)*m
	}
	for i, b := range key {
		h ^= uint32(b) << (8 * i)
	}
	if len(key) > 0 {
		h *= m
	}
	h = (h ^ h>>13) * m
	h ^= h >> 15
	return int32(h&0x7fffffff) % n
}
