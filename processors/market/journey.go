package market

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"deliverystat/codecs"
)

// journey is a way that deliveries take, and how often of 100 they do.
type journey struct {
	often int
	path  string
}

var journeys = []journey{
	{60, "CREATED ASSIGNED PICKUP_REQUESTED PICKED_UP DELIVERING DELIVERED"},
	{10, "CREATED ASSIGNED PICKED_UP DELIVERING DELIVERED"},
	{7, "CREATED ASSIGNED ASSIGNED PICKUP_REQUESTED PICKED_UP DELIVERING DELIVERED"},
	{5, "CREATED ASSIGNED PICKUP_REQUESTED ASSIGNED PICKUP_REQUESTED PICKED_UP DELIVERING DELIVERED"},
	{4, "CREATED CANCELLED"},
	{5, "CREATED ASSIGNED CANCELLED"},
	{5, "CREATED ASSIGNED PICKUP_REQUESTED PICKED_UP DELIVERING RETURNING RETURNED"},
	{4, "CREATED ASSIGNED PICKUP_REQUESTED PICKED_UP DELIVERING FAILED"},
}

// unknownStatuses are names that partners send and the lifecycle does not have.
var unknownStatuses = []string{"HUB_SCANNED", "SORTING", "COURIER_NEARBY", "배달지연"}

// regions are listed as often as they occur.
var regions = []string{
	"seoul", "seoul", "seoul", "seoul", "incheon", "incheon", "busan", "busan", "daegu", "daejeon", "gwangju", "jeju",
}

// service is a courier service with its habits.
type service struct {
	name       string
	resolution int64 // of its event times, in nanoseconds
	unix       bool  // sends event times as Unix milliseconds
}

const (
	microsecond = 1_000
	millisecond = 1_000_000
	second      = 1_000_000_000
)

// services are all that send events: the order system, which creates
// deliveries, and the courier services.
var services = []service{
	{"", microsecond, false},
	{"courier-a", microsecond, false},
	{"courier-b", millisecond, true},
	{"courier-c", second, false},
}

// orderSystem is the index of the order system in services.
const orderSystem = 0

// paths resolves the journeys in the statuses of l, each as often as it occurs.
func paths(l *codecs.Lifecycle) ([][]codecs.Status, error) {
	var all [][]codecs.Status
	for _, j := range journeys {
		var path []codecs.Status
		for name := range strings.FieldsSeq(j.path) {
			s, known := l.Lookup(name)
			if !known {
				return nil, fmt.Errorf("simulating status %s: not in the lifecycle", name)
			}
			path = append(path, s)
		}
		for range j.often {
			all = append(all, path)
		}
	}
	return all, nil
}

// delivery is what all events of one delivery have in common.
type delivery struct {
	number int
	date   string // of its ID, yyyymmdd
	region uint8  // index in regions
	store  uint16
}

func newDelivery(r *rand.Rand, number int, date string) delivery {
	return delivery{
		number: number,
		date:   date,
		region: uint8(r.IntN(len(regions))),
		store:  uint16(r.IntN(3000)),
	}
}

// step is one event of a delivery before it is written.
type step struct {
	delivery int32
	number   int32 // its sequence: 1 for the first event
	status   codecs.Status
	unknown  uint8 // 1 + index of the name sent instead of the status; 0: none
	service  uint8 // who sends it
	alias    bool  // sends an alias of the status
	region   uint8
	at       int64 // event time, Unix nanoseconds
	produced int64 // when it happened by a perfect clock
}

// reported is the status that the event of s has.
func (s *step) reported() codecs.Status {
	if s.unknown != 0 {
		return codecs.Unknown
	}
	return s.status
}
