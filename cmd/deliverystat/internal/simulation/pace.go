package simulation

import (
	"context"
	"time"
)

// Pace spreads records evenly over time, and makes up for pauses of less than a
// second. It is not safe for concurrent use.
type Pace struct {
	interval time.Duration
	next     time.Time
}

// NewPace returns a pace of rate records a second; 0 is without limit.
func NewPace(rate float64) *Pace {
	p := &Pace{}
	if rate > 0 {
		p.interval = time.Duration(float64(time.Second) / rate)
	}
	return p
}

// Wait returns when the next record is due, or with the error of ctx.
func (p *Pace) Wait(ctx context.Context) error {
	if p.interval == 0 {
		return ctx.Err()
	}
	now := time.Now()
	if p.next.Before(now.Add(-time.Second)) {
		p.next = now
	}
	due := p.next
	p.next = p.next.Add(p.interval)
	// Timers are coarse: below a millisecond several records go at once.
	if due.Sub(now) < time.Millisecond {
		return ctx.Err()
	}
	timer := time.NewTimer(due.Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
