package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"deliverystat/cmd/deliverystat/internal/config"
	"deliverystat/cmd/deliverystat/internal/exit"
	"deliverystat/cmd/deliverystat/internal/kafka"
	"deliverystat/cmd/deliverystat/internal/simulation"
	"deliverystat/cmd/deliverystat/internal/topics"
	"deliverystat/processors/exactlyonce"
	"deliverystat/processors/market"
)

// simulateCommand produces the events of a simulated market.
type simulateCommand struct {
	config.Kafka
	config.Naming
	config.Format
	config.Safety

	Events        int           `help:"Records to produce, malformed ones and duplicates included." default:"10000"`
	Deliveries    int           `help:"Deliveries that they are about; 0 for a sixth of the events." default:"0"`
	Rate          float64       `help:"Records a second; 0 for as fast as possible." default:"0"`
	Seed          int64         `help:"Equal seeds give equal deliveries." default:"1"`
	FirstNumber   int           `help:"Number of the first delivery, so that a second run of a day adds others." default:"1"`
	Duplicates    float64       `help:"Share of events that repeat an earlier one." default:"0"`
	OutOfOrder    float64       `help:"Share of events that arrive after a newer one." default:"0"`
	Late          float64       `help:"Share of events that arrive after the end of their delivery." default:"0"`
	Malformed     float64       `help:"Share of records that are no events." default:"0"`
	UnknownStatus float64       `help:"Share of events with a status that nobody knows." default:"0"`
	ClockSkew     time.Duration `help:"How far the clocks of the sources differ." default:"0s"`
	Truth         string        `help:"Write what the counts must be to this file, once all is acknowledged." placeholder:"FILE"`
}

// Check implements config.Checker.
func (c *simulateCommand) Check(problems *config.Problems) {
	c.Kafka.Check(problems)
	c.Naming.Check(problems)
	c.Format.Check(problems)
	c.CheckSimulated(problems)
	if c.Rate < 0 {
		problems.Add("rate", "want 0 or more, got %v", c.Rate)
	}
	if c.Seed < 0 {
		problems.Add("seed", "want 0 or more, got %d", c.Seed)
	}
	if c.Deliveries < 0 {
		problems.Add("deliveries", "want 0 or more, got %d", c.Deliveries)
		return
	}
	if err := c.options(time.Now()).Validate(); err != nil {
		for line := range strings.Lines(err.Error()) {
			flag, text, _ := strings.Cut(strings.TrimSpace(line), " ")
			problems.Add(flag, "%s", text)
		}
	}
}

func (c *simulateCommand) options(end time.Time) market.Options {
	deliveries := c.Deliveries
	if deliveries == 0 {
		deliveries = max(1, c.Events/6)
	}
	return market.Options{
		Events: c.Events, Deliveries: deliveries, Seed: uint64(c.Seed), FirstNumber: c.FirstNumber,
		Duplicates: c.Duplicates, OutOfOrder: c.OutOfOrder, Late: c.Late, Malformed: c.Malformed,
		UnknownStatus: c.UnknownStatus, ClockSkew: c.ClockSkew, End: end,
	}
}

func (c *simulateCommand) run(ctx context.Context, p *process) error {
	client, err := c.Client("deliverystat-simulate", c.Hasher())
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	topic := c.Topics().Events
	if err := c.requireTopic(ctx, client, topic); err != nil {
		return err
	}
	simulated, err := market.New(c.options(time.Now()))
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	producer, err := simulation.NewProducer(client, topic, nil)
	if err != nil {
		return exit.With(exit.Unreachable, err)
	}
	if isTerminal(p.stderr) {
		defer simulation.Progress(p.stderr, c.Events, producer.Sent)()
	}
	err = simulation.Produce(ctx, simulated, producer, c.Rate)
	if err = errors.Join(err, producer.Close()); err != nil {
		return fmt.Errorf("stopped after %d of %d events: %w", producer.Sent(), c.Events, err)
	}
	if c.Truth != "" {
		if err := writeTruth(c.Truth, simulated.Truth()); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(p.stdout, "%d events sent to %s\n", producer.Sent(), topic)
	if err != nil {
		return fmt.Errorf("printing result: %w", err)
	}
	return nil
}

// requireTopic says what to do if the input does not exist.
func (c *simulateCommand) requireTopic(ctx context.Context, client exactlyonce.ClientConfig, topic string) error {
	cluster, err := kafka.Connect(ctx, client)
	if err != nil {
		return err
	}
	defer cluster.Close()
	err = topics.Require(cluster.Admin, topic)
	if exit.Code(err) == exit.Usage {
		err = fmt.Errorf("%w; make it by: %s", err, topics.CreateCommand(c.KafkaBrokers, c.TopicPrefix, c.EventsTopic))
	}
	return err
}

func writeTruth(path string, truth market.Truth) error {
	b, err := json.MarshalIndent(truth, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding truth: %w", err)
	}
	if err := os.WriteFile(path, append(b, '\n'), 0o644); err != nil { //nolint:gosec // G306: numbers for everybody
		return fmt.Errorf("writing truth: %w", err)
	}
	return nil
}
