package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"deliverystat/cmd/deliverystat/internal/config"
	"deliverystat/cmd/deliverystat/internal/demo"
	"deliverystat/cmd/deliverystat/internal/exit"
	"deliverystat/codecs"
)

// demoCommand shows everything in one process.
type demoCommand struct {
	config.Serve
	config.Listen

	Events string  `help:"Produce the events of this file instead of simulated ones: JSON lines, - for stdin." placeholder:"FILE"`
	Rate   float64 `help:"Events a second; 0 for 50 simulated ones, or as fast as possible from a file." default:"0"`
	Seed   int64   `help:"Equal seeds simulate equal markets." default:"1"`
}

// simulatedRate is a pace at which the board moves and memory lasts for days.
const simulatedRate = 50

// Check implements config.Checker.
func (c *demoCommand) Check(problems *config.Problems) {
	c.AllowUnsafe = true // nothing here is meant to last
	if len(c.Dimensions) == 0 {
		c.Dimensions = []string{codecs.Region.String(), codecs.Service.String()} // so that there is something to group by
	}
	c.Serve.Check(problems)
	c.Listen.Check(problems)
	if c.Events == "" {
		c.CheckSimulated(problems)
	}
	if !c.Has(config.RoleAPI) || !c.Has(config.RoleProcessors) {
		problems.Add("roles", "the demo has both")
	}
	if c.Rate < 0 {
		problems.Add("rate", "want 0 or more, got %v", c.Rate)
	}
	if c.Seed < 0 {
		problems.Add("seed", "want 0 or more, got %d", c.Seed)
	}
}

func (c *demoCommand) run(ctx context.Context, p *process) error {
	options := demo.Options{
		Serve: c.Serve, Listen: c.Listen, Rate: c.Rate, Seed: uint64(c.Seed),
		Out: p.stdout, Effective: p.parsed.Effective(), Build: serviceBuild(), Logger: quiet(ctx, p.logger),
	}
	switch c.Events {
	case "":
		if options.Rate == 0 {
			options.Rate = simulatedRate
		}
	case "-":
		options.Events = p.stdin
	default:
		file, err := os.Open(c.Events)
		if err != nil {
			return exit.With(exit.Usage, fmt.Errorf("--events: %w", err))
		}
		defer func() { _ = file.Close() }() // only read from
		options.Events = io.Reader(file)
	}
	return demo.Run(ctx, options)
}

// quiet leaves out what only matters where something goes wrong, unless the
// log is wanted in detail.
func quiet(ctx context.Context, log *slog.Logger) *slog.Logger {
	if log.Enabled(ctx, slog.LevelDebug) {
		return log
	}
	return slog.New(warnings{log.Handler()})
}

// warnings is a handler that drops what is less than a warning.
type warnings struct{ slog.Handler }

// Enabled implements slog.Handler.
func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }
