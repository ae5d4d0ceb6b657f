package views

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"deliverystat/codecs"
	"deliverystat/processors"
	"deliverystat/processors/exactlyonce"
)

// Config says which tables a replica views.
type Config struct {
	Client   exactlyonce.ClientConfig
	Topics   processors.Topics
	Settings *processors.Settings
	StateDir string // the copies of the tables go to its folder "views"
	Logger   *slog.Logger
}

// Replica is the views of one process.
type Replica struct {
	Counts     *Counts
	Deliveries *Deliveries
	Freshness  *Freshness

	ready atomic.Bool
}

// New prepares the views of tables on Kafka; Run makes them work.
func New(cfg Config) (*Replica, error) {
	table := func(topic string) Follow {
		return FollowTopic(exactlyonce.FollowerConfig{
			Client:   cfg.Client,
			Table:    topic,
			StateDir: filepath.Join(cfg.StateDir, "views"),
			Logger:   cfg.Logger,
		})
	}
	counts, err := NewCounts(table(cfg.Topics.CountsTable), cfg.Logger)
	if err != nil {
		return nil, err
	}
	deliveries, err := NewDeliveries(DeliveriesConfig{
		Settings: cfg.Settings,
		Hasher:   cfg.Client.Hasher,
		Logger:   cfg.Logger,
	}, table(cfg.Topics.DeliveryTable))
	if err != nil {
		return nil, err
	}
	return NewReplica(counts, deliveries, FreshnessConfig{
		Log:    NewKafkaLog(cfg.Client, cfg.Topics.Events),
		Logger: cfg.Logger,
	}), nil
}

// NewReplica joins two views. The freshness that judges them settles their
// positions, whatever freshness.Positions says.
func NewReplica(counts *Counts, deliveries *Deliveries, freshness FreshnessConfig) *Replica {
	r := &Replica{Counts: counts, Deliveries: deliveries}
	freshness.Positions = r.positions
	r.Freshness = NewFreshness(freshness)
	return r
}

// positions returns where answers stand now.
func (r *Replica) positions() []codecs.Position {
	var out []codecs.Position
	if counts := r.Counts.Snapshot(); counts != nil {
		out = append(out, counts.Position)
	}
	if at, ok := r.Deliveries.Position(); ok {
		out = append(out, at)
	}
	return out
}

// Run follows the tables and the end of the input until ctx ends, and returns
// when all of it has stopped.
func (r *Replica) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return r.Counts.Run(ctx) })
	group.Go(func() error { return r.Deliveries.Run(ctx) })
	group.Go(func() error { return r.Freshness.Run(ctx) })
	return group.Wait()
}

// Ready reports whether both views have recovered and the age of the counts is
// known, or else the reasons why not. Once it was ready a replica stays so: a
// fault that all replicas share must not leave a service without any, and every
// answer says by itself how old it is.
func (r *Replica) Ready() (ready bool, reasons []string) {
	if r.ready.Load() {
		return true, nil
	}
	if counts := r.Counts.Snapshot(); counts == nil {
		reasons = append(reasons, "the counts are not recovered, or some input partition has not told all yet")
	} else if _, _, known := r.Freshness.Of(counts.Position); !known {
		reasons = append(reasons, "it is not known yet how current the counts are")
	}
	if _, ok := r.Deliveries.Position(); !ok {
		reasons = append(reasons, "the deliveries are not recovered, or some input partition has not been processed yet")
	}
	if len(reasons) > 0 {
		return false, reasons
	}
	r.ready.Store(true)
	return true, nil
}
