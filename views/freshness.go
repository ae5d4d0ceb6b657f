package views

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"deliverystat/codecs"
)

// Log is the input topic as freshness asks about it. [KafkaLog] is one.
type Log interface {
	// Probe asks where the topic ends now.
	Probe(ctx context.Context) (*Probe, error)
	// VisibleEnd returns 1 + the offset of the last committed record in
	// [from, end) of a partition, or from if no reader finds one there.
	VisibleEnd(ctx context.Context, partition int32, from, end int64) (int64, error)
	// Close ends the connections.
	Close() error
}

// FreshnessConfig configures a Freshness.
type FreshnessConfig struct {
	Log Log
	// Positions returns the positions that answers stand at now. Where one
	// stands still below the end of the log, freshness finds out whether
	// anything is missing from it.
	Positions func() []codecs.Position
	Interval  time.Duration // between probes; default 200ms
	// SettleTimeout bounds the look-ups that follow one probe; default 2s.
	SettleTimeout time.Duration
	Logger        *slog.Logger
}

// Freshness knows how current a position is. It asks the brokers a few times a
// second where the input topic ends, remembers the answers, and judges every
// position by what it remembers: judging never waits for a broker. While the
// brokers do not answer, the memory ages, and staleness grows with it.
type Freshness struct {
	cfg      FreshnessConfig
	evidence atomic.Pointer[evidence] // nil before the first probe
	settler  settler
}

// NewFreshness makes a Freshness; Run makes it work.
func NewFreshness(cfg FreshnessConfig) *Freshness {
	if cfg.Interval <= 0 {
		cfg.Interval = 200 * time.Millisecond
	}
	if cfg.SettleTimeout <= 0 {
		cfg.SettleTimeout = 2 * time.Second
	}
	return &Freshness{cfg: cfg}
}

// Run probes until ctx ends, and then closes the log. It returns once the
// request under way has.
func (f *Freshness) Run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, f.cfg.Log.Close()) }()
	ticker := time.NewTicker(f.cfg.Interval)
	defer ticker.Stop()
	failing := false
	for {
		err := f.probe(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if failed := err != nil; failed != failing {
			failing = failed
			if failed {
				f.cfg.Logger.Warn("cannot see the end of the input, staleness grows", "err", err)
			} else {
				f.cfg.Logger.Info("seeing the end of the input again")
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// probe adds one probe, and what follows from positions that stand still.
func (f *Freshness) probe(ctx context.Context) error {
	p, err := f.cfg.Log.Probe(ctx)
	if err != nil {
		return err
	}
	f.evidence.Store(f.evidence.Load().with(p))

	ctx, cancel := context.WithTimeout(ctx, f.cfg.SettleTimeout)
	defer cancel()
	for _, q := range f.settler.questions(f.evidence.Load(), f.cfg.Positions(), time.Now()) {
		visible, err := f.cfg.Log.VisibleEnd(ctx, q.partition, q.from, q.end)
		if err != nil {
			f.settler.failed(q, time.Now())
			f.cfg.Logger.Debug("looking for unread records at the end of the input", "partition", q.partition, "err", err)
			continue
		}
		f.settler.answered(q, visible)
		f.evidence.Store(f.evidence.Load().withGap(q.partition, gap{visible, q.end}))
	}
	return nil
}

// Of returns the lag of p and a proved bound of its age: an answer at p
// reflects all that read-committed readers could see that long ago. Both speak
// of the partitions that p names. Lag is the number of offsets from p to the
// last committed record known, so markers in between count; -1 if not known.
// Known is false if no such time was proved yet. It never blocks.
func (f *Freshness) Of(p codecs.Position) (lag int64, staleness time.Duration, known bool) {
	e := f.evidence.Load()
	if e == nil {
		return -1, 0, false
	}
	for partition := range e.gaps {
		n, _ := e.lag(partition, p)
		lag += n
	}
	reached := e.reached(p)
	if reached == nil {
		return lag, 0, false
	}
	return lag, time.Since(reached.At), true
}

// PartitionEnd is how far the end of one partition of the input is away.
type PartitionEnd struct {
	Lag int64 // committed records not reflected yet, counted in offsets; -1 if not known
	// Open is the number of offsets between the last stable offset and the high
	// watermark: what a producer's open transaction holds back.
	Open int64
}

// Ends returns the end of each partition of the input as seen from p, or nil
// before the first probe.
func (f *Freshness) Ends(p codecs.Position) []PartitionEnd {
	e := f.evidence.Load()
	if e == nil {
		return nil
	}
	ends := make([]PartitionEnd, len(e.gaps))
	newest := e.newest()
	for i := range ends {
		// The watermark was read first, so what was written between the two
		// requests can make the difference too small, and even negative.
		ends[i] = PartitionEnd{Lag: -1, Open: max(0, newest.High[i]-newest.Stable[i])}
		if lag, ok := e.lag(i, p); ok {
			ends[i].Lag = lag
		}
	}
	return ends
}
