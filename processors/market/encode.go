package market

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"time"

	"deliverystat/codecs"
)

var seoul = time.FixedZone("KST", 9*60*60)

// id is the delivery ID, as in D-20261130-000042.
func (d *delivery) id() string {
	b := make([]byte, 0, 24)
	b = append(b, "D-"...)
	b = append(b, d.date...)
	b = append(b, '-')
	for least := 100_000; least > d.number && least > 1; least /= 10 {
		b = append(b, '0')
	}
	return string(strconv.AppendInt(b, int64(d.number), 10))
}

// event is what s says.
func (s *step) event(d *delivery, seed uint64, l *codecs.Lifecycle) codecs.Event {
	e := codecs.Event{
		DeliveryID: d.id(),
		EventID:    eventID(seed, d.number, int(s.number)),
		Status:     s.reported(),
		OccurredAt: s.at,
		Sequence:   int64(s.number),
		Sequenced:  true,
	}
	switch aliases := l.Info(s.status).Aliases; {
	case s.unknown != 0:
		e.RawStatus = unknownStatuses[s.unknown-1]
	case s.alias && len(aliases) > 0:
		e.RawStatus = aliases[0]
	}
	e.Attributes[codecs.Region] = regions[s.region]
	e.Attributes[codecs.Service] = services[s.service].name
	if s.service == orderSystem {
		e.Attributes[codecs.OrderID] = "O-" + strconv.Itoa(d.number)
		e.Attributes[codecs.StoreID] = "S-" + strconv.Itoa(int(d.store))
	}
	return e
}

// eventID makes a UUID of where the event stands.
func eventID(seed uint64, delivery, step int) string {
	var id [16]byte
	hi := mix(seed ^ mix(uint64(delivery)+1))
	binary.BigEndian.PutUint64(id[:8], hi)
	binary.BigEndian.PutUint64(id[8:], mix(hi^uint64(step)))
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80 // version 4, variant 1
	b := make([]byte, 0, 36)
	for i, from := range []int{0, 4, 6, 8, 10} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, id[from:[]int{4, 6, 8, 10, 16}[i]])
	}
	return string(b)
}

// mix is the finalizer of SplitMix64: a bijection that spreads small numbers.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// spelling is a way to write the same event.
type spelling uint8

const (
	usual   spelling = iota // snake_case, the time as its source has it
	another                 // camelCase, other order, the time in UTC
)

// Encode writes e as a native event in its usual spelling: times in Korean
// time with up to nanoseconds, empty fields left out.
func Encode(e *codecs.Event, l *codecs.Lifecycle) []byte {
	return appendEvent(nil, e, l, usual, false)
}

// appendEvent appends the native event e. With unix, its time is a number of
// milliseconds where that is exact.
func appendEvent(b []byte, e *codecs.Event, l *codecs.Lifecycle, how spelling, unix bool) []byte {
	status := e.RawStatus
	if status == "" {
		status = l.Name(e.Status)
	}
	field := func(snake, camel, value string) {
		if value == "" {
			return
		}
		b = appendName(b, snake, camel, how)
		b = appendString(b, value)
	}
	b = append(b, '{')
	if how == another {
		field("status", "status", status)
	}
	field("event_id", "eventId", e.EventID)
	field("delivery_id", "deliveryId", e.DeliveryID)
	if how != another {
		field("status", "status", status)
	}
	b = appendName(b, "occurred_at", "occurredAt", how)
	switch at := time.Unix(0, e.OccurredAt); {
	case how == another:
		b = at.UTC().AppendFormat(append(b, '"'), time.RFC3339Nano)
		b = append(b, '"')
	case unix && e.OccurredAt%millisecond == 0:
		b = strconv.AppendInt(b, at.UnixMilli(), 10)
	default:
		b = at.In(seoul).AppendFormat(append(b, '"'), time.RFC3339Nano)
		b = append(b, '"')
	}
	if e.Sequenced {
		b = appendName(b, "sequence", "sequence", how)
		b = strconv.AppendInt(b, e.Sequence, 10)
	}
	field("order_id", "orderId", e.Attributes[codecs.OrderID])
	field("region", "region", e.Attributes[codecs.Region])
	field("service", "service", e.Attributes[codecs.Service])
	field("store_id", "storeId", e.Attributes[codecs.StoreID])
	return append(b, '}')
}

func appendName(b []byte, snake, camel string, how spelling) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	name := snake
	if how == another {
		name = camel
	}
	b = append(b, '"')
	b = append(b, name...)
	return append(b, '"', ':')
}

// appendString appends a JSON string. IDs and names have no control characters,
// so that only two characters need an escape.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return append(b, '"')
}
