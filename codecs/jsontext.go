package codecs

import (
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// maxDepth is the deepest nesting of arrays and objects that is read. The JSON
// scanner recurses, so this also bounds its stack.
const maxDepth = 1000

// jsonFault says why text is not JSON that may be read, or "".
func jsonFault(text string) string {
	switch {
	case !utf8.ValidString(text):
		return "value is not valid UTF-8"
	case tooDeep(text):
		return "value is nested deeper than 1000 levels"
	case !gjson.Valid(text):
		return "value is not valid JSON"
	}
	return ""
}

// tooDeep reports whether arrays and objects are nested deeper than maxDepth.
// Nearly every value has fewer brackets than that, which counting shows at the
// speed of memory. For text that is not JSON the answer is right for the part
// before the first fault, which is all that a scanner reads.
func tooDeep(text string) bool {
	if len(text) <= maxDepth || strings.Count(text, "{")+strings.Count(text, "[") <= maxDepth {
		return false
	}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			depth++
			if depth > maxDepth {
				return true
			}
		case '}', ']':
			depth--
		case '"':
			i = endOfString(text, i)
		}
	}
	return false
}

// endOfString returns where the string that begins at start ends: the index of
// its closing quote, or the length of text.
func endOfString(text string, start int) int {
	for i := start + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(text)
}

// field is one value of a JSON object: absent and null are the zero field.
type field struct {
	kind  gjson.Type
	plain bool   // known to be a string of printable ASCII
	text  string // of a string its content, else as written
}

func fieldOf(v gjson.Result) field {
	switch v.Type {
	case gjson.Null:
		return field{}
	case gjson.String:
		return field{kind: gjson.String, text: v.Str}
	default:
		return field{kind: v.Type, text: v.Raw}
	}
}

func (f field) absent() bool { return f.kind == gjson.Null }

// kindName names the type of f for a dead letter.
func (f field) kindName() string {
	switch f.kind {
	case gjson.True, gjson.False:
		return "a boolean"
	case gjson.Number:
		return "a number"
	case gjson.String:
		return "a string"
	case gjson.JSON:
		if strings.HasPrefix(f.text, "[") {
			return "an array"
		}
		return "an object"
	case gjson.Null:
	}
	return "null"
}

// isInteger reports whether f is a number written without fraction or exponent.
func (f field) isInteger() bool {
	return f.kind == gjson.Number && !strings.ContainsAny(f.text, ".eE")
}

func (f field) isObject() bool { return f.kind == gjson.JSON && f.text[0] == '{' }

// integerAsText returns an integer as the text of its digits, and all else as it
// is.
func (f field) integerAsText() field {
	if f.isInteger() {
		return field{kind: gjson.String, text: f.text}
	}
	return f
}
