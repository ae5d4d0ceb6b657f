package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"deliverystat/cmd/deliverystat/internal/config"
	"deliverystat/cmd/deliverystat/internal/exit"
	"deliverystat/cmd/deliverystat/internal/kafka"
	"deliverystat/cmd/deliverystat/internal/topics"
	"deliverystat/cmd/deliverystat/internal/verification"
)

// explainCommand tells what became of one delivery.
type explainCommand struct {
	config.Kafka
	config.Naming
	config.Format
	config.Safety

	ID        string        `arg:"" help:"Delivery ID." name:"id"`
	Partition int32         `help:"Partition of the input to read; -1 for the one where the delivery's row is, or its ID belongs." default:"-1"`
	Timeout   time.Duration `help:"Give up after so long." default:"10m"`
}

// Check implements config.Checker.
func (c *explainCommand) Check(problems *config.Problems) {
	c.Kafka.Check(problems)
	c.Naming.Check(problems)
	c.Format.Check(problems)
	if c.Partition < -1 {
		problems.Add("partition", "want 0 or more, or -1, got %d", c.Partition)
	}
	if c.Timeout <= 0 {
		problems.Add("timeout", "want more than 0, got %v", c.Timeout)
	}
}

func (c *explainCommand) run(ctx context.Context, p *process) (err error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	source := verification.Source{Topics: c.Topics(), Lifecycle: c.Lifecycle(), Logger: slog.New(slog.DiscardHandler)}
	if p.logger.Enabled(ctx, slog.LevelDebug) {
		source.Logger = p.logger
	}
	if source.Client, err = c.Client("deliverystat-explain", c.Hasher()); err != nil {
		return exit.With(exit.Usage, err)
	}
	if source.Decoder, err = c.Decoder(); err != nil {
		return exit.With(exit.Usage, err)
	}
	cluster, err := kafka.Connect(ctx, source.Client)
	if err != nil {
		return err
	}
	defer cluster.Close()
	if err := topics.Require(cluster.Admin, source.Topics.Events, source.Topics.DeliveryTable); err != nil {
		return err
	}
	if source.Dir, err = os.MkdirTemp("", "deliverystat-explain-"); err != nil {
		return fmt.Errorf("making a directory for a copy of the table: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(source.Dir)) }()

	x, err := source.Explain(ctx, cluster.Client, c.ID, c.Partition)
	if err != nil {
		return err
	}
	if err := x.Print(p.stdout); err != nil {
		return err
	}
	if x.Difference != "" {
		return fmt.Errorf("the table differs from the events of %s at position %d", c.ID, x.Position)
	}
	return nil
}
