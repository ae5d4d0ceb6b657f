package codecs

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/tidwall/gjson"
)

// ReopenedName is the outcome of a summary that takes back the one before it.
const ReopenedName = "REOPENED"

// AppendSummary appends the record of delivery-summaries about the delivery id
// with row: closed as it says, or re-opened if closing is none. The JSON schema
// is delivery-summary.schema.json. It holds nothing but what the row says, so
// that the last summary of a delivery does not depend on how its events came.
func (l *Lifecycle) AppendSummary(b []byte, id string, row *Row, closing Closing) []byte {
	closed := closing != (Closing{})
	outcome := ReopenedName
	if closed {
		outcome = l.Name(closing.Status)
	}
	b = append(b, '{')
	b = appendMember(b, "delivery_id", id)
	b = appendMember(b, "outcome", outcome)
	b = appendMember(b, "status", l.Name(row.Winner.Status))
	if row.RawStatus != "" {
		b = appendMember(b, "raw_status", row.RawStatus)
	}
	for a := range row.Attributes {
		if v := row.Attributes[a].Value; v != "" {
			b = appendMember(b, Attribute(a).String(), v)
		}
	}
	timeline := slices.Clone(row.Timeline)
	slices.SortFunc(timeline, func(a, b StatusTimes) int {
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Status, b.Status))
	})
	opened := timeline[0].First
	b = appendTimeMember(b, "opened_at", opened)
	if closed {
		b = appendTimeMember(b, "closed_at", closing.ClosedAt)
		b = append(b, `"duration_seconds":`...)
		b = append(appendSeconds(b, closing.ClosedAt-opened), ',')
	}
	b = append(b, `"timeline":[`...)
	for i, t := range timeline {
		b = append(b, '{')
		b = appendMember(b, "status", l.Name(t.Status))
		b = appendTimeMember(b, "first", t.First)
		b = appendTimeMember(b, "last", t.Last)
		switch {
		case i+1 < len(timeline):
			b = append(b, `"seconds":`...)
			b = append(appendSeconds(b, timeline[i+1].First-t.First), ',')
		case closed:
			b = append(b, `"seconds":`...)
			b = append(appendSeconds(b, max(0, closing.ClosedAt-t.First)), ',')
		}
		b[len(b)-1] = '}' // in place of the last comma
		b = append(b, ',')
	}
	b[len(b)-1] = ']'
	return append(b, '}')
}

func appendTimeMember(b []byte, name string, nanos int64) []byte {
	b = append(append(append(b, '"'), name...), `":"`...)
	b = time.Unix(0, nanos).UTC().AppendFormat(b, time.RFC3339Nano)
	return append(b, `",`...)
}

// appendSeconds appends nanoseconds as seconds, exactly.
func appendSeconds(b []byte, nanos int64) []byte {
	if nanos < 0 {
		b = append(b, '-')
	}
	const second = int64(time.Second)
	b = strconv.AppendInt(b, abs(nanos/second), 10)
	if part := abs(nanos % second); part != 0 {
		digits := strconv.FormatInt(second+part, 10) // a 1 and nine digits
		for digits[len(digits)-1] == '0' {
			digits = digits[:len(digits)-1]
		}
		b = append(append(b, '.'), digits[1:]...)
	}
	return b
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}

func appendMember(b []byte, name, value string) []byte {
	b = append(b, '"')
	b = append(b, name...)
	b = append(b, `":`...)
	b = gjson.AppendJSONString(b, value)
	return append(b, ',')
}
