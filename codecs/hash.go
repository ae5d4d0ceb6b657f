package codecs

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// HashEvent returns the content hash of e, whose Hash is not looked at. Events
// that say the same have the same hash in whatever format they came, and under
// whatever lifecycle. Rows keep hashes: what is hashed must never change.
func (l *Lifecycle) HashEvent(e *Event) uint64 {
	var room [512]byte
	b := appendHashed(room[:0], e.DeliveryID)
	b = appendHashed(b, e.EventID)
	b = appendHashed(b, l.sentName(e))
	b = binary.LittleEndian.AppendUint64(b, uint64(e.OccurredAt))
	if e.Sequenced {
		b = append(b, 1)
		b = binary.LittleEndian.AppendUint64(b, uint64(e.Sequence))
	} else {
		b = append(b, 0)
	}
	for a, v := range e.Attributes {
		if v != "" {
			b = appendHashed(b, Attribute(a).String())
			b = appendHashed(b, v)
		}
	}
	return xxhash.Sum64(b)
}

// appendHashed appends s so that where it ends can be told.
func appendHashed(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// sentName returns the status name as the producer sent it.
func (l *Lifecycle) sentName(e *Event) string {
	if e.RawStatus != "" {
		return e.RawStatus
	}
	return l.Name(e.Status)
}
