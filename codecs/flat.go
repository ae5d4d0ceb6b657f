package codecs

import (
	"math/bits"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// scanFlat notes the known fields of text in one pass if text is what nearly
// every event is: one JSON object without escapes in its strings and without
// arrays or objects in it. It checks as it reads, so that what it takes is valid
// JSON. For all other text, right or wrong, it reports false, and f must not be
// used.
func (f *fields) scanFlat(text string) bool {
	i := skipSpace(text, 0)
	if i == len(text) || text[i] != '{' {
		return false
	}
	i = skipSpace(text, i+1)
	if i < len(text) && text[i] == '}' {
		return skipSpace(text, i+1) == len(text)
	}
	ascii := true
	for {
		key, end, plain := flatString(text, i)
		if end < 0 {
			return false
		}
		ascii = ascii && plain
		i = skipSpace(text, end)
		if i == len(text) || text[i] != ':' {
			return false
		}
		var value field
		value, i = flatValue(text, skipSpace(text, i+1))
		if i < 0 {
			return false
		}
		ascii = ascii && (value.plain || value.kind != gjson.String)
		if to := f.named(key); to != nil {
			*to = value
		}
		i = skipSpace(text, i)
		switch {
		case i == len(text):
			return false
		case text[i] == ',':
			i = skipSpace(text, i+1)
		case text[i] == '}':
			return skipSpace(text, i+1) == len(text) && (ascii || utf8.ValidString(text))
		default:
			return false
		}
	}
}

// flatValue reads the value that begins at start: a string without escapes, a
// number, true, false or null. end is where it ends, -1 if it is none of these.
func flatValue(text string, start int) (v field, end int) {
	if start == len(text) {
		return field{}, -1
	}
	switch c := text[start]; {
	case c == '"':
		s, end, plain := flatString(text, start)
		return field{kind: gjson.String, text: s, plain: plain}, end
	case c == '-' || isDigit(c):
		end := flatNumber(text, start)
		if end < 0 {
			return field{}, -1
		}
		return field{kind: gjson.Number, text: text[start:end]}, end
	case c == 't' && literal(text, start, "true"):
		return field{kind: gjson.True, text: "true"}, start + len("true")
	case c == 'f' && literal(text, start, "false"):
		return field{kind: gjson.False, text: "false"}, start + len("false")
	case c == 'n' && literal(text, start, "null"):
		return field{}, start + len("null")
	}
	return field{}, -1
}

func literal(text string, start int, word string) bool {
	return len(text)-start >= len(word) && text[start:start+len(word)] == word
}

// flatString reads the string without escapes whose opening quote is at start.
// end is where it ends, -1 if there is none; plain says that all of it is
// printable ASCII.
func flatString(text string, start int) (s string, end int, plain bool) {
	if start >= len(text) || text[start] != '"' {
		return "", -1, false
	}
	plain = true
	for i := start + 1; i < len(text); i++ {
		for i+8 <= len(text) {
			n := plainBytes(text[i : i+8])
			i += n
			if n < 8 {
				break
			}
		}
		if i == len(text) {
			break
		}
		switch c := text[i]; {
		case c == '"':
			return text[start+1 : i], i + 1, plain
		case c == '\\' || c < ' ':
			return "", -1, false
		case c >= 0x7f:
			plain = false
		}
	}
	return "", -1, false
}

// plainBytes returns how many of the 8 bytes of s come before the first that may
// be a quote, a backslash or no printable ASCII. It looks at all of them at once: in each byte of odd the
// highest bit is set for such a byte, and what a borrow sets besides comes after
// one of them.
func plainBytes(s string) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	_ = s[7]
	x := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	quote, escape := x^'"'*ones, x^'\\'*ones
	odd := (x | (x - ' '*ones) | (x + ones) | (quote - ones) | (escape - ones)) & highs
	return bits.TrailingZeros64(odd) / 8
}

// flatNumber returns where the number that begins at start ends, or -1 if it is
// not one as RFC 8259 writes them.
func flatNumber(text string, start int) int {
	i := start
	if text[i] == '-' {
		i++
	}
	digits := skipDigits(text, i)
	if digits == i || text[i] == '0' && digits > i+1 {
		return -1
	}
	i = digits
	if i < len(text) && text[i] == '.' {
		if digits = skipDigits(text, i+1); digits == i+1 {
			return -1
		}
		i = digits
	}
	if i < len(text) && (text[i] == 'e' || text[i] == 'E') {
		i++
		if i < len(text) && (text[i] == '+' || text[i] == '-') {
			i++
		}
		if digits = skipDigits(text, i); digits == i {
			return -1
		}
		i = digits
	}
	return i
}

func skipDigits(text string, i int) int {
	for i < len(text) && isDigit(text[i]) {
		i++
	}
	return i
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func skipSpace(text string, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r') {
		i++
	}
	return i
}
