package market

import (
	"math/rand/v2"

	"deliverystat/codecs"
)

// trip is a journey as far as it went.
type trip struct {
	path    []codecs.Status
	reached int // events of the path that happened
	repeats int // further events that repeat a status
}

// inProgress is the share of deliveries that are not completed at the end.
const inProgress = 0.25

func newTrip(r *rand.Rand, path []codecs.Status) trip {
	t := trip{path: path, reached: len(path)}
	if r.Float64() < inProgress {
		t.reached = 1 + r.IntN(len(path)-1)
	}
	return t
}

// fit makes trips have n events together, at least one each: by ending some
// earlier, or by repeating statuses.
func fit(r *rand.Rand, trips []trip, n int) {
	total := 0
	for _, t := range trips {
		total += t.reached
	}
	order := r.Perm(len(trips))
	for total > n {
		for _, i := range order {
			if t := &trips[i]; t.reached > 1 && total > n {
				cut := min(1+r.IntN(t.reached-1), total-n)
				t.reached -= cut
				total -= cut
			}
		}
	}
	for ; total < n; total++ {
		trips[r.IntN(len(trips))].repeats++
	}
}

// appendSteps appends the events of t, without times.
func (t *trip) appendSteps(r *rand.Rand, steps []step, delivery int32, region uint8, assigned codecs.Status) []step {
	repeats := make([]int, t.reached)
	last := t.reached - 1 // a completion is not repeated
	if t.reached == len(t.path) {
		last--
	}
	for range t.repeats {
		repeats[r.IntN(last+1)]++
	}
	sender, number := uint8(orderSystem), int32(0)
	for i, status := range t.path[:t.reached] {
		if status == assigned {
			sender = uint8(1 + r.IntN(len(services)-1)) // perhaps anew
		}
		if r.IntN(200) == 0 {
			region = uint8(r.IntN(len(regions))) // a new address
		}
		for range 1 + repeats[i] {
			number++
			steps = append(steps, step{
				delivery: delivery, number: number, status: status,
				service: sender, alias: r.IntN(10) == 0, region: region,
			})
		}
	}
	return steps
}
