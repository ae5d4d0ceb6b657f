package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"deliverystat/codecs"
	"deliverystat/e2e/kafka"
	"deliverystat/e2e/process"
	"deliverystat/e2e/replica"
)

// measurement is what one process took.
type measurement struct {
	Wall    time.Duration
	CPU     time.Duration
	PeakRSS int64 // bytes, 0 where it was not read
}

// throughput consumes one preloaded topic with each contestant in turn.
func (s *stage) throughput(ctx context.Context, r *results, rounds int) error {
	const topic = "throughput"
	if err := s.command(ctx, "topics", "create", "--events-topic="+topic, "--topic-prefix=none-",
		"--partitions="+strconv.Itoa(partitions), "--replication-factor=1", "--allow-unsafe"); err != nil {
		return err
	}
	fmt.Printf("producing %d events\n", r.events)
	want, err := s.simulate(ctx, topic, "--events="+strconv.Itoa(r.events), "--deliveries="+strconv.Itoa(r.deliveries),
		"--seed=7", "--duplicates=0.02", "--out-of-order=0.1")
	if err != nil {
		return err
	}
	for i := range rounds {
		for _, contestant := range []struct {
			into *[]measurement
			name string
			do   func(context.Context, string, truth) (measurement, error)
		}{
			{&r.floor, "floor", s.floor},
			{&r.processors, "processors", s.processors},
			{&r.both, "both roles", s.both},
		} {
			measured, err := contestant.do(ctx, topic, want)
			if err != nil {
				return fmt.Errorf("round %d: %s: %w", i+1, contestant.name, err)
			}
			*contestant.into = append(*contestant.into, measured)
			fmt.Printf("round %d: %-10s %6.2f s wall, %6.2f s CPU, %7.0f events/s, %7.0f events per CPU-second\n", i+1, contestant.name,
				measured.Wall.Seconds(), measured.CPU.Seconds(), float64(r.events)/measured.Wall.Seconds(), float64(r.events)/measured.CPU.Seconds())
		}
	}
	return nil
}

func (s *stage) floor(ctx context.Context, topic string, _ truth) (measurement, error) {
	self, err := os.Executable()
	if err != nil {
		return measurement{}, fmt.Errorf("finding this program: %w", err)
	}
	log := filepath.Join(s.dir, "floor.log")
	began := time.Now()
	p, err := process.Start(log, nil, self, "floor", "-brokers="+s.cluster.Addresses(), "-topic="+topic)
	if err != nil {
		return measurement{}, err
	}
	defer func() { _ = p.Kill() }()
	select {
	case <-p.Done():
	case <-ctx.Done():
		return measurement{}, fmt.Errorf("waiting for the floor: %w", ctx.Err())
	}
	if p.ExitCode() != 0 {
		b, _ := os.ReadFile(log)
		return measurement{}, fmt.Errorf("running the floor: exit code %d\n%s", p.ExitCode(), b)
	}
	return measurement{Wall: time.Since(began), CPU: p.CPU(), PeakRSS: p.PeakRSS()}, nil
}

// processors runs the service without its API. That it is done shows in its
// table of counts only.
func (s *stage) processors(ctx context.Context, topic string, want truth) (measurement, error) {
	r, prefix, err := s.install(ctx, topic, "--roles=processors")
	if err != nil {
		return measurement{}, err
	}
	table, err := s.client.Follow(prefix + "count-per-status-table")
	if err != nil {
		return measurement{}, err
	}
	defer table.Close()
	return s.serve(ctx, r, func() (bool, error) { return tableIs(table, want) })
}

// both runs the service with both roles.
func (s *stage) both(ctx context.Context, topic string, want truth) (measurement, error) {
	r, _, err := s.install(ctx, topic)
	if err != nil {
		return measurement{}, err
	}
	return s.serve(ctx, r, func() (bool, error) { return answerIs(ctx, r, want), nil })
}

// serve runs a replica until its counts are exact.
func (s *stage) serve(ctx context.Context, r *replica.Replica, exact func() (bool, error)) (measurement, error) {
	began := time.Now()
	if err := r.Start(); err != nil {
		return measurement{}, err
	}
	defer func() { _ = r.Kill() }()
	finish := s.startProfile(ctx, r)
	if err := until(ctx, r.Process(), "exact counts", exact); err != nil {
		return measurement{}, err
	}
	wall := time.Since(began)
	u, err := r.Process().Usage()
	if err != nil {
		return measurement{}, err
	}
	if err := finish(); err != nil {
		return measurement{}, err
	}
	_, err = r.Stop()
	return measurement{Wall: wall, CPU: u.CPU, PeakRSS: u.PeakRSS}, err
}

func answerIs(ctx context.Context, r *replica.Replica, want truth) bool {
	got, err := r.Counts(ctx, "")
	return err == nil && maps.Equal(nonZero(got.Counts), nonZero(want.Counts)) && maps.Equal(nonZero(got.Closed), nonZero(want.Closed))
}

func tableIs(table *kafka.Table, want truth) (bool, error) {
	value, err := table.Get(codecs.TotalKey(""))
	if err != nil || value == nil {
		return false, err
	}
	counts, err := codecs.ReadCounts(value)
	if err != nil {
		return false, fmt.Errorf("reading the total: %w", err)
	}
	live, closed := map[string]int64{}, map[string]int64{}
	for _, c := range counts {
		live[c.Status], closed[c.Status] = c.Live, c.Closed
	}
	return maps.Equal(nonZero(live), nonZero(want.Counts)) && maps.Equal(nonZero(closed), nonZero(want.Closed)), nil
}

func nonZero(counts map[string]int64) map[string]int64 {
	out := maps.Clone(counts)
	maps.DeleteFunc(out, func(_ string, n int64) bool { return n == 0 })
	return out
}
