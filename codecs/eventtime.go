package codecs

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/tidwall/gjson"
)

// MinEventTime is the earliest event time that is believed, 2015-01-01 UTC, in
// Unix nanoseconds: what claims to be older has a broken clock or unit.
const MinEventTime = 1_420_070_400 * int64(time.Second)

// checkTime reads the event time: RFC 3339 with a zone, or an integer.
func (f *fields) checkTime(out *Decoded) (int64, bool) {
	v := f.occurredAt
	if v.absent() {
		out.refuse(MissingField, "occurred_at is missing")
		return 0, false
	}
	var nanos int64
	var ok bool
	switch {
	case v.kind == gjson.String && f.timeAsText && isDigits(v.text), v.isInteger():
		nanos, ok = parseUnix(v.text)
	case v.kind == gjson.String:
		nanos, ok = f.parseTime(v.text)
	case v.kind == gjson.Number:
		out.refuse(WrongType, "occurred_at is a number, but not an integer")
		return 0, false
	default:
		out.refuse(WrongType, "occurred_at is "+v.kindName()+", not a string or integer")
		return 0, false
	}
	switch {
	case !ok:
		out.refuse(InvalidTime, fmt.Sprintf("occurred_at %.64q is not a time with zone (RFC 3339) or integer Unix time", v.text))
	case nanos < MinEventTime:
		out.refuse(InvalidTime, fmt.Sprintf("occurred_at %.64q is before 2015", v.text))
	default:
		return nanos, true
	}
	return 0, false
}

// parseTime reads a time with zone. Where a profile names the zone of its source,
// times without one are taken too, also with a space before the hour.
func (f *fields) parseTime(s string) (int64, bool) {
	nanos, ok := parseRFC3339(s)
	if ok || f.mapping == nil || f.mapping.zone == "" || len(s) < len("2006-01-02 15:04:05") || s[10] != ' ' && s[10] != 'T' {
		return nanos, ok
	}
	s = s[:10] + "T" + s[11:]
	if nanos, ok = parseRFC3339(s); ok {
		return nanos, ok
	}
	return parseRFC3339(s + f.mapping.zone)
}

// parseUnix reads an integer as seconds, milliseconds, microseconds or
// nanoseconds since 1970. Its magnitude tells: as seconds and as milliseconds
// 10^11 is 5138 and 1973, and so on for the smaller units.
func parseUnix(s string) (int64, bool) {
	n, ok := parseInteger(s)
	if !ok {
		return 0, false
	}
	unit := int64(1)
	switch {
	case n > -1e11 && n < 1e11:
		unit = int64(time.Second)
	case n > -1e14 && n < 1e14:
		unit = int64(time.Millisecond)
	case n > -1e17 && n < 1e17:
		unit = int64(time.Microsecond)
	}
	if n > math.MaxInt64/unit || n < math.MinInt64/unit {
		return 0, false
	}
	return n * unit, true
}

func parseInteger(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// isDigits reports whether s is an integer as a header has it.
func isDigits(s string) bool {
	for i := range len(s) {
		if (s[i] < '0' || s[i] > '9') && (i > 0 || s[0] != '-') {
			return false
		}
	}
	return s != ""
}
