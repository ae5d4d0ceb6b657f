package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"time"

	"deliverystat/cmd/deliverystat/internal/config"
	"deliverystat/cmd/deliverystat/internal/exit"
	"deliverystat/cmd/deliverystat/internal/kafka"
	"deliverystat/cmd/deliverystat/internal/topics"
	"deliverystat/cmd/deliverystat/internal/verification"
)

// verifyCommand counts again and compares.
type verifyCommand struct {
	config.Kafka
	config.Naming
	config.Format
	config.Safety

	URL          string        `name:"url" help:"Compare the answers of this replica instead of the counts table." placeholder:"http://HOST:PORT"`
	APITokenFile string        `name:"api-token-file" help:"File whose first line is the bearer token for --url." placeholder:"FILE"`
	From         string        `help:"What to count again: table (the rows) or events (a replay of the whole input)." default:"table" oneof:"table,events"`
	Timeout      time.Duration `help:"Give up after so long." default:"10m"`
}

// Check implements config.Checker.
func (c *verifyCommand) Check(problems *config.Problems) {
	c.Kafka.Check(problems)
	c.Naming.Check(problems)
	c.Format.Check(problems)
	if u, err := url.Parse(c.URL); c.URL != "" && (err != nil || u.Scheme == "" || u.Host == "") {
		problems.Add("url", "want http://host:port, got %q", c.URL)
	}
	if c.Timeout <= 0 {
		problems.Add("timeout", "want more than 0, got %v", c.Timeout)
	}
}

func (c *verifyCommand) run(ctx context.Context, p *process) (err error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	source := verification.Source{Topics: c.Topics(), Lifecycle: c.Lifecycle(), Logger: slog.New(slog.DiscardHandler)}
	if p.logger.Enabled(ctx, slog.LevelDebug) {
		source.Logger = p.logger
	}
	if source.Client, err = c.Client("deliverystat-verify", c.Hasher()); err != nil {
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
	if err := topics.Require(cluster.Admin, source.Topics.Events, source.Topics.DeliveryTable, source.Topics.CountsTable); err != nil {
		return err
	}
	if source.Dir, err = os.MkdirTemp("", "deliverystat-verify-"); err != nil {
		return fmt.Errorf("making a directory for copies of the tables: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(source.Dir)) }()

	var report *verification.Report
	if c.URL == "" {
		report, err = source.Tables(ctx, cluster.Client, c.From == "events")
	} else {
		api := &verification.API{URL: c.URL}
		if c.APITokenFile != "" {
			if api.Token, err = config.ReadSecret(c.APITokenFile); err != nil {
				return exit.With(exit.Usage, err)
			}
		}
		report, err = source.Replica(ctx, api, cluster.Client, c.From == "events")
	}
	if err != nil {
		return err
	}
	for _, finding := range report.Findings {
		if _, err := fmt.Fprintln(p.stdout, finding); err != nil {
			return fmt.Errorf("printing differences: %w", err)
		}
	}
	if n := len(report.Findings); n > 0 {
		return fmt.Errorf("counts differ in %d places from the %s at position %s", n, report.Recounted, report.Position)
	}
	_, err = fmt.Fprintf(p.stdout, "no difference: %d live and %d closed deliveries, counted from the %s at position %s\n",
		report.Deliveries.Live, report.Deliveries.Closed, report.Recounted, report.Position)
	return err
}
