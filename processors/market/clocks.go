package market

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"deliverystat/codecs"
)

// clocks give events their times.
type clocks struct {
	start, room int64   // real times are within room after start
	seconds     bool    // there is room for event times of whole seconds
	skew        []int64 // by service
}

// newClocks draws how much each sender's clock is wrong. Some room is left at
// the end for event times that move on because they would be equal.
func newClocks(r *rand.Rand, o *Options) *clocks {
	margin := min(20*time.Second, o.Span/10)
	c := &clocks{
		start:   o.End.Add(-o.Span + o.ClockSkew).UnixNano(),
		room:    int64(o.Span - 2*o.ClockSkew - margin),
		seconds: o.Span >= 10*time.Minute,
		skew:    make([]int64, len(services)),
	}
	for i := range c.skew {
		if o.ClockSkew > 0 {
			c.skew[i] = r.Int64N(2*int64(o.ClockSkew)+1) - int64(o.ClockSkew)
		}
	}
	return c
}

// stamp gives the events of one delivery their times. By a perfect clock each
// is later than the one before; by clocks without skew its order key is greater.
func (c *clocks) stamp(r *rand.Rand, steps []step, l *codecs.Lifecycle) {
	offsets := make([]float64, len(steps))
	total := 0.0
	for i := range offsets {
		offsets[i] = total
		total += 0.05 + r.ExpFloat64()
	}
	last := offsets[len(offsets)-1]
	duration := min(float64(c.room)*(0.1+0.3*r.ExpFloat64()), float64(c.room)) * last / total
	begin := r.Float64() * (float64(c.room) - duration)
	if !l.Terminal(steps[len(steps)-1].status) { // still under way at the end
		begin = max(0, float64(c.room)-duration-0.1*r.ExpFloat64()*float64(c.room))
	}
	skewed := slices.ContainsFunc(c.skew, func(s int64) bool { return s != 0 })
	for i := range steps {
		s := &steps[i]
		s.produced = c.start + int64(begin+duration*offsets[i]/max(last, math.SmallestNonzeroFloat64))
		if i > 0 {
			s.produced = max(s.produced, steps[i-1].produced+1)
		}
		unit := c.unit(s, len(steps))
		s.at = (s.produced + c.skew[s.service]) / unit * unit
		if skewed || i == 0 {
			continue
		}
		before := &steps[i-1]
		if s.at < before.at || s.at == before.at && s.reported() <= before.reported() {
			s.at = (before.at/unit + 1) * unit
		}
	}
}

// unit is the resolution of the event time of s, one of n events: coarse only
// where there is room for n of them.
func (c *clocks) unit(s *step, n int) int64 {
	unit := services[s.service].resolution
	if unit == second && !(c.seconds && n <= 20) {
		unit = millisecond
	}
	if unit == millisecond && n > 1000 {
		return microsecond
	}
	return unit
}
