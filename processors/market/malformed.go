package market

import (
	"bytes"
	"strings"

	"deliverystat/codecs"
)

// fault makes a record that is no event out of the bytes of one that is.
type fault struct {
	reason codecs.Reason // the reason to be refused for
	spoil  func(good []byte) []byte
}

// field returns a spoiler that replaces the value of a field, or the whole
// field if with is "".
func field(name, with string) func([]byte) []byte {
	return func(good []byte) []byte {
		start := bytes.Index(good, []byte(`"`+name+`":`))
		value := start + len(name) + 3
		end := value + bytes.IndexAny(good[value:], ",}")
		if with == "" {
			if good[end] == ',' {
				end++ // the comma goes with the field: status and delivery_id are never last
			}
			return append(good[:start:start], good[end:]...)
		}
		return append(append(good[:value:value], with...), good[end:]...)
	}
}

// faults are what malformed records suffer from. Each is certain to be refused,
// whatever the settings; none is a null value, which would only be ignored.
var faults = []fault{
	{codecs.Unreadable, func(good []byte) []byte { return good[:len(good)/2] }},
	{codecs.Unreadable, func([]byte) []byte { return []byte("delivered, thank you") }},
	{codecs.Unreadable, func(good []byte) []byte { return append(good, good...) }},
	{codecs.WrongType, field("status", "4")},
	{codecs.WrongType, field("delivery_id", "42")},
	{codecs.MissingField, field("status", "")},
	{codecs.MissingField, field("delivery_id", "")},
	{codecs.MissingField, field("occurred_at", "")},
	{codecs.InvalidTime, field("occurred_at", `"yesterday at noon"`)},
	{codecs.InvalidTime, field("occurred_at", `"2026-11-30T10:00:00"`)},
	{codecs.AttributeTooLong, field("region", `"`+strings.Repeat("서울", 60)+`"`)},
	{codecs.KeyMismatch, field("delivery_id", `"D-of-somebody-else"`)},
}
