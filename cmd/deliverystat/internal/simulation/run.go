package simulation

import (
	"context"
	"fmt"
	"io"
	"time"

	"deliverystat/processors/market"
)

// Produce sends all records of a market at a pace.
func Produce(ctx context.Context, m *market.Market, to *Producer, rate float64) error {
	pace := NewPace(rate)
	for {
		if err := pace.Wait(ctx); err != nil {
			return err
		}
		r, ok := m.Next()
		if !ok {
			return nil
		}
		if err := to.Send(ctx, Record{Key: []byte(r.Key), Value: r.Value}); err != nil {
			return err
		}
	}
}

// ProduceLive sends the records of a market without end, at a pace, until ctx
// ends.
func ProduceLive(ctx context.Context, m *market.Live, to *Producer, rate float64) error {
	pace := NewPace(rate)
	for ctx.Err() == nil {
		err := pace.Wait(ctx)
		if err == nil {
			r := m.Next(time.Now())
			err = to.Send(ctx, Record{Key: []byte(r.Key), Value: r.Value})
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// Progress shows on one line of a terminal how many of total records are sent,
// until stop is called.
func Progress(w io.Writer, total int, sent func() int64) (stop func()) {
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		start := time.Now()
		show := func(end string) {
			n := sent()
			rate := float64(n) / max(time.Since(start).Seconds(), 0.001)
			_, _ = fmt.Fprintf(w, "\r%d of %d events sent, %.0f a second%s", n, total, rate, end)
		}
		for {
			select {
			case <-ticker.C:
				show("   ")
			case <-done:
				show("   \n")
				return
			}
		}
	}()
	return func() { close(done); <-stopped }
}
