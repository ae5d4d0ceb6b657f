package api

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

	"deliverystat/codecs"
)

// freshness is how current an answer is.
type freshness struct {
	lag       int64 // records between the answer and the end; negative if unknown
	staleness time.Duration
	known     bool // staleness is proved
	stale     bool // beyond Options.StaleAfter, or nothing is proved
}

// freshnessOf asks how current p is.
func (a *API) freshnessOf(p codecs.Position) freshness {
	lag, staleness, known := a.options.Freshness.Of(p)
	return freshness{lag: lag, staleness: staleness, known: known, stale: !known || staleness > a.options.StaleAfter}
}

// appendSeconds appends the staleness in seconds, rounded up to microseconds: it
// is a bound.
func (f freshness) appendSeconds(b []byte) []byte {
	us := math.Ceil(float64(f.staleness) / float64(time.Microsecond))
	return strconv.AppendFloat(b, us/1e6, 'f', -1, 64)
}

// asOfHead appends the part of an as_of object that belongs to a position: its
// beginning.
func asOfHead(b []byte, position string, eventTime int64) []byte {
	b = append(b, `{"position":"`...)
	b = append(b, position...) // digits, colons and commas
	b = append(b, `","event_time":`...)
	b = appendTime(b, eventTime)
	return append(b, `,"lag_records":`...)
}

// asOfTail appends the part of an as_of object that is new for each answer.
func (a *API) asOfTail(b []byte, f freshness) []byte {
	if f.lag < 0 {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(b, f.lag, 10)
	}
	b = append(b, `,"staleness_seconds":`...)
	if f.known {
		b = f.appendSeconds(b)
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"stale":`...)
	b = strconv.AppendBool(b, f.stale)
	b = append(b, `,"replica":`...)
	b = append(b, a.replicaJSON...)
	return append(b, '}')
}

// appendTime appends a time in Unix nanoseconds as JSON: RFC 3339 in UTC, or
// null for codecs.None.
func appendTime(b []byte, ns int64) []byte {
	if ns == codecs.None {
		return append(b, "null"...)
	}
	b = append(b, '"')
	b = time.Unix(0, ns).UTC().AppendFormat(b, time.RFC3339Nano)
	return append(b, '"')
}

// jsonString returns s as a JSON string.
func jsonString(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil { // a string always has an encoding
		panic(err)
	}
	return b
}
