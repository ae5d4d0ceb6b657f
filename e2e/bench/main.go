package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if len(os.Args) > 1 && os.Args[1] == "floor" {
		err = floor(ctx, os.Args[2:])
	} else {
		err = compare(ctx, os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

func compare(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	events := flags.Int("events", 1_000_000, "events of the throughput runs")
	deliveries := flags.Int("deliveries", 167_000, "deliveries of the throughput runs")
	rounds := flags.Int("rounds", 3, "rounds of the throughput runs; 0 leaves them out")
	rate := flags.Int("rate", 5000, "events a second of the latency run")
	probes := flags.Int("probes", 500, "probes of the latency run; 0 leaves it and the restart out")
	restarts := flags.Int("restarts", 3, "kills and restarts")
	rows := flags.Int("rows", 1_000_000, "rows of the table of the takeovers")
	takeovers := flags.Int("takeovers", 0, "takeovers without a standby, and as many with one")
	profile := flags.String("profile", "", "folder for CPU and heap profiles of the service in the throughput runs, which they slow a little")
	report := flags.String("report", "", "file for the report, besides the output")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("reading flags: %w", err)
	}
	began := time.Now()
	s, err := newStage(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	s.profiles = *profile
	r := &results{events: *events, deliveries: *deliveries, rate: *rate, rows: *rows}
	if *rounds > 0 {
		if err := s.throughput(ctx, r, *rounds); err != nil {
			return err
		}
	}
	if *probes > 0 {
		if err := s.steady(ctx, r, *probes, *restarts); err != nil {
			return err
		}
	}
	if *takeovers > 0 {
		if err := s.takeovers(ctx, r, *takeovers); err != nil {
			return err
		}
	}
	r.took = time.Since(began)
	text := r.markdown()
	fmt.Print("\n" + text)
	if *report != "" {
		if err := os.WriteFile(*report, []byte(text), 0o600); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
	}
	return nil
}
