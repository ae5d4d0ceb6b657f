package verification

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"deliverystat/codecs"
	"deliverystat/processors"
	"deliverystat/processors/audit"
	"deliverystat/processors/exactlyonce"
)

// Source says where the tables and the input are.
type Source struct {
	Client    exactlyonce.ClientConfig
	Topics    processors.Topics
	Lifecycle *codecs.Lifecycle
	Decoder   *codecs.Decoder
	Dir       string // for copies of tables
	Logger    *slog.Logger

	passes int
}

// poll is how often a pass looks whether it is done.
const poll = 10 * time.Millisecond

// follow copies a table until done returns true, or an error, or ctx ends. done
// and row are not called at the same time.
func (s *Source) follow(ctx context.Context, table string, reset func(partition int32),
	row func(partition int32, c exactlyonce.Change) error, done func(recovered bool) (bool, error),
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	var failed error
	s.passes++
	follower, err := exactlyonce.NewFollower(exactlyonce.FollowerConfig{
		Client:   s.Client,
		Table:    table,
		StateDir: filepath.Join(s.Dir, fmt.Sprintf("pass-%d", s.passes)),
		Boundary: codecs.ProgressKey,
		Logger:   s.Logger,
		Reset: func(partition int32) {
			mu.Lock()
			defer mu.Unlock()
			reset(partition)
		},
		Applied: func(partition int32, batch []exactlyonce.Change) {
			mu.Lock()
			defer mu.Unlock()
			for _, c := range batch {
				if err := row(partition, c); err != nil && failed == nil {
					failed = fmt.Errorf("partition %d of %s: %w", partition, table, err)
				}
			}
		},
	})
	if err != nil {
		return fmt.Errorf("preparing to read %s: %w", table, err)
	}
	stopped := make(chan error, 1) // one value, sent whether or not it is received
	go func() { stopped <- follower.Run(ctx) }()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for err == nil {
		recovered := follower.Recovered()
		mu.Lock()
		var ok bool
		if ok, err = done(recovered); err == nil {
			err = failed
		}
		mu.Unlock()
		if ok || err != nil {
			break
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			err = fmt.Errorf("reading %s: %w", table, ctx.Err())
		}
	}
	cancel()
	return errors.Join(err, <-stopped)
}

// Told reads the table count-per-status, waiting until every partition of the
// input has told all its counts.
func (s *Source) Told(ctx context.Context) (*audit.Told, error) {
	fold := audit.NewCountsFold()
	var told *audit.Told
	incomplete := errors.New("not recovered yet")
	err := s.follow(ctx, s.Topics.CountsTable,
		func(int32) { fold = audit.NewCountsFold() },
		func(_ int32, c exactlyonce.Change) error { return fold.Row(c.Key, c.Value) },
		func(recovered bool) (bool, error) {
			if !recovered {
				return false, nil
			}
			var err error
			if told, err = fold.Told(); err != nil {
				return false, err
			}
			incomplete = told.Complete()
			return incomplete == nil, nil
		})
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("waiting for the counts: %w", incomplete)
	}
	return told, err
}

// errMissed says that a table partition can not be read as of a position.
var errMissed = errors.New("the table has moved on and was compacted")

// Recount is a recount of all partitions.
type Recount struct {
	Parts    []audit.Counts // by partition of the input
	Settings *processors.Settings
}

// Total returns the sum over all partitions.
func (r *Recount) Total() audit.Counts {
	total := audit.Counts{}
	for _, part := range r.Parts {
		total.AddAll(part)
	}
	return total
}

// Rows recounts the table latest-delivery as of a position of each partition.
// It returns an error wrapping errMissed if a position is no longer in the log.
func (s *Source) Rows(ctx context.Context, targets []int64) (*Recount, error) {
	folds := make([]*audit.Fold, len(targets))
	start := func(p int32) { folds[p] = audit.NewFold(targets[p]) }
	for p := range folds {
		start(int32(p))
	}
	known := func(p int32) error {
		if int(p) >= len(folds) {
			return fmt.Errorf("the counts know only %d partitions", len(folds))
		}
		return nil
	}
	err := s.follow(ctx, s.Topics.DeliveryTable,
		func(p int32) {
			if known(p) == nil {
				start(p)
			}
		},
		func(p int32, c exactlyonce.Change) error {
			if err := known(p); err != nil {
				return err
			}
			return folds[p].Row(c.Key, c.Value)
		},
		func(recovered bool) (bool, error) {
			done, err := allDone(folds)
			return done && recovered, err
		})
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("waiting for the rows: %w", unreached(folds, targets))
	}
	if err != nil {
		return nil, err
	}
	return s.recount(folds)
}

func allDone(folds []*audit.Fold) (bool, error) {
	done := true
	for p, f := range folds {
		if f.Missed() {
			return false, fmt.Errorf("partition %d of the table: %w", p, errMissed)
		}
		done = done && f.Done()
	}
	return done, nil
}

func unreached(folds []*audit.Fold, targets []int64) error {
	for p, f := range folds {
		if f.Done() {
			continue
		}
		at := int64(-1)
		if progress := f.Progress(); progress != nil {
			at = progress.Position
		}
		return fmt.Errorf("partition %d of the table reflects position %d, the counts say %d", p, at, targets[p])
	}
	return context.DeadlineExceeded
}

func (s *Source) recount(folds []*audit.Fold) (*Recount, error) {
	r := &Recount{}
	for p, f := range folds {
		settings, err := audit.ParseSettings(f.Progress().Settings, s.Lifecycle)
		if err != nil {
			return nil, fmt.Errorf("partition %d: %w", p, err)
		}
		if r.Settings == nil {
			r.Settings = settings
		}
		if settings.Hash() != r.Settings.Hash() {
			return nil, fmt.Errorf("partition %d was written with other settings than partition 0", p)
		}
		counts, err := f.Recount(settings)
		if err != nil {
			return nil, fmt.Errorf("partition %d: %w", p, err)
		}
		r.Parts = append(r.Parts, counts)
	}
	return r, nil
}
