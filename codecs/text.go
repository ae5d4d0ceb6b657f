package codecs

import "unicode/utf8"

// maxText is the greatest length in bytes of an ID, a status name or an
// attribute.
const maxText = 256

// ValidID reports whether id can name a delivery: 1–256 bytes of valid UTF-8
// without control characters (U+0000–U+001F, U+007F–U+009F).
func ValidID(id string) bool {
	return id != "" && len(id) <= maxText && printable(id)
}

// printable reports whether s is valid UTF-8 without control characters.
func printable(s string) bool {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c < ' ' || c == 0x7f {
				return false
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || r <= 0x9f {
			return false
		}
		i += n
	}
	return true
}
