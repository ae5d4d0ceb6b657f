package codecs

import (
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// wireVersion is the version that this release writes as field 1 of every
// message, and the greatest that it reads. deliverystat.proto is the schema.
const wireVersion = 1

// fieldVersion is the number of the version in every message.
const fieldVersion = 1

var errNoVersion = errors.New("no version")

func appendVersion(b []byte) []byte {
	return appendUint(b, fieldVersion, wireVersion)
}

// appendTag appends the tag of a field. Numbers up to 15 take one byte, and the
// schema has no others.
func appendTag(b []byte, field protowire.Number, typ protowire.Type) []byte {
	return append(b, byte(field)<<3|byte(typ))
}

func appendUint(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(appendTag(b, field, protowire.VarintType), v)
}

// appendInt appends a sint64, nothing for 0.
func appendInt(b []byte, field protowire.Number, v int64) []byte {
	if v == 0 {
		return b
	}
	return appendUint(b, field, protowire.EncodeZigZag(v))
}

// appendBool appends a bool, nothing for false.
func appendBool(b []byte, field protowire.Number, v bool) []byte {
	if !v {
		return b
	}
	return appendUint(b, field, 1)
}

// appendTime appends a sfixed64, also if it is 0: such a time is 1970.
func appendTime(b []byte, field protowire.Number, v int64) []byte {
	return protowire.AppendFixed64(appendTag(b, field, protowire.Fixed64Type), uint64(v))
}

// appendOptionalTime appends an optional sfixed64, nothing for None.
func appendOptionalTime(b []byte, field protowire.Number, v int64) []byte {
	if v == None {
		return b
	}
	return appendTime(b, field, v)
}

// appendHash appends a fixed64, nothing for 0.
func appendHash(b []byte, field protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendFixed64(appendTag(b, field, protowire.Fixed64Type), v)
}

// appendText appends a string, nothing for "".
func appendText(b []byte, field protowire.Number, v string) []byte {
	if v == "" {
		return b
	}
	b = appendTag(b, field, protowire.BytesType)
	if len(v) < 0x80 {
		b = append(b, byte(len(v)))
	} else {
		b = protowire.AppendVarint(b, uint64(len(v)))
	}
	return append(b, v...)
}

// beginMessage appends the tag of a message and room for a length of one byte.
// endMessage, given the length of what beginMessage returned, puts the length
// in, moving the message only if it is longer than that room allows.
func beginMessage(b []byte, field protowire.Number) []byte {
	return append(appendTag(b, field, protowire.BytesType), 0)
}

func endMessage(b []byte, start int) []byte {
	n := len(b) - start
	if n < 0x80 {
		b[start-1] = byte(n)
		return b
	}
	more := protowire.SizeVarint(uint64(n)) - 1
	for range more {
		b = append(b, 0)
	}
	copy(b[start+more:], b[start:start+n])
	protowire.AppendVarint(b[:start-1], uint64(n))
	return b
}

// message reads the fields of a message and, between enter and leave, of a
// message in one of its fields. The first error sticks and ends every loop over
// next.
type message struct {
	all   []byte // the whole input: offsets count from its start
	pos   int
	end   int // of the message that is being read
	field protowire.Number
	typ   protowire.Type
	err   error
}

func newMessage(b []byte) message { return message{all: b, end: len(b)} }

// next moves on to the next field.
func (m *message) next() bool {
	if m.pos >= m.end {
		return false
	}
	if c := m.all[m.pos]; c >= 1<<3 && c < 0x80 {
		m.pos++
		m.field, m.typ = protowire.Number(c>>3), protowire.Type(c&7)
		return true
	}
	field, typ, n := protowire.ConsumeTag(m.all[m.pos:m.end])
	m.field, m.typ = field, typ
	return m.advance(n)
}

// fail keeps the first error. Nothing is read after it.
func (m *message) fail(err error) {
	if m.err == nil {
		m.err = err
	}
	m.pos, m.end = 0, 0
}

// is reports whether the field has the wire type that the schema says.
func (m *message) is(typ protowire.Type) bool { return m.typ == typ || m.isNot(typ) }

func (m *message) isNot(typ protowire.Type) bool {
	m.fail(fmt.Errorf("field %d has wire type %d, not %d", m.field, m.typ, typ))
	return false
}

func (m *message) advance(n int) bool {
	if n < 0 {
		m.fail(protowire.ParseError(n))
		return false
	}
	m.pos += n
	return true
}

// skip passes over a field that this release does not know.
func (m *message) skip() {
	m.advance(protowire.ConsumeFieldValue(m.field, m.typ, m.all[m.pos:m.end]))
}

func (m *message) uint() uint64 {
	if !m.is(protowire.VarintType) {
		return 0
	}
	return m.varint()
}

func (m *message) varint() uint64 {
	if m.pos < m.end && m.all[m.pos] < 0x80 {
		m.pos++
		return uint64(m.all[m.pos-1])
	}
	v, n := protowire.ConsumeVarint(m.all[m.pos:m.end])
	m.advance(n)
	return v
}

func (m *message) int() int64   { return protowire.DecodeZigZag(m.uint()) }
func (m *message) bool() bool   { return m.uint() != 0 }
func (m *message) int32() int32 { return int32(m.int()) }

func (m *message) hash() uint64 {
	if !m.is(protowire.Fixed64Type) {
		return 0
	}
	v, n := protowire.ConsumeFixed64(m.all[m.pos:m.end])
	m.advance(n)
	return v
}

func (m *message) time() int64 { return int64(m.hash()) }

// span returns where the content of the field lies in the whole input.
func (m *message) span() (start, end int) {
	if !m.is(protowire.BytesType) {
		return 0, 0
	}
	n := m.varint()
	if n > uint64(m.end-m.pos) {
		m.fail(io.ErrUnexpectedEOF)
		return 0, 0
	}
	start = m.pos
	m.pos += int(n)
	return start, m.pos
}

func (m *message) bytes() []byte {
	start, end := m.span()
	return m.all[start:end]
}

// enter begins to read the message in the field; what it returns is for leave.
func (m *message) enter() (outer int) {
	start, end := m.span()
	outer = m.end
	m.pos, m.end = start, end
	return outer
}

// leave goes on with the message around it, unless there was an error.
func (m *message) leave(outer int) {
	if m.err == nil {
		m.end = outer
	}
}

// version reads field 1 and refuses what a later release wrote.
func (m *message) version() uint64 {
	v := m.uint()
	if v > wireVersion {
		m.fail(fmt.Errorf("version %d, written by a later release", v))
	}
	return v
}

// finish returns the error of reading what, if there is one.
func (m *message) finish(what string, version uint64) error {
	if m.err == nil && version == 0 {
		m.err = errNoVersion
	}
	if m.err != nil {
		return fmt.Errorf("reading %s of %d bytes: %w", what, len(m.all), m.err)
	}
	return nil
}
