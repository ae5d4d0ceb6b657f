package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"deliverystat/e2e/kafka"
	"deliverystat/e2e/replica"
)

// probePause lies between two probes.
const probePause = 50 * time.Millisecond

// steady measures a replica under a steady load: first how long an event takes
// to be in an answer, then how long a killed replica takes to answer at the end
// of the input again. At the end the counts have to be exact.
func (s *stage) steady(ctx context.Context, r *results, probes, restarts int) error {
	const topic = "steady"
	one, prefix, err := s.install(ctx, topic)
	if err != nil {
		return err
	}
	if err := one.Start(); err != nil {
		return err
	}
	defer func() { _ = one.Kill() }()
	if err := until(ctx, one.Process(), "readiness", func() (bool, error) { ok, _ := one.Ready(ctx); return ok, nil }); err != nil {
		return err
	}
	// Long enough for the probes, and ten seconds for each restart.
	seconds := 5 + int(time.Duration(probes)*probePause/time.Second) + 10*restarts
	fmt.Printf("producing %d events a second for %d s\n", r.rate, seconds)
	load := make(chan error, 1)
	go func() {
		_, err := s.simulate(ctx, topic, "--rate="+strconv.Itoa(r.rate), "--events="+strconv.Itoa(r.rate*seconds), "--deliveries=20000",
			"--seed=9", "--duplicates=0.02", "--out-of-order=0.1")
		load <- err
	}()
	// Let the load become steady.
	if err := until(ctx, one.Process(), "the load", func() (bool, error) {
		c, err := one.Counts(ctx, "")
		return err == nil && c.Live+sum(c.Closed) > int64(r.rate/10), nil
	}); err != nil {
		return err
	}
	if r.latencies, err = s.probe(ctx, one, topic, probes); err != nil {
		return err
	}
	for range restarts {
		took, err := s.restart(ctx, one, topic)
		if err != nil {
			return err
		}
		fmt.Printf("killed and at the end of the input again: %.2f s\n", took.Seconds())
		r.restarts = append(r.restarts, took)
	}
	if err := <-load; err != nil {
		return err
	}
	if err := s.answerAtEnd(ctx, one, topic); err != nil {
		return err
	}
	return s.command(ctx, "verify", "--topic-prefix="+prefix, "--events-topic="+topic, "--url=http://"+one.HTTP)
}

// probe produces one event at a time beside the load and asks for an answer
// that reflects it.
func (s *stage) probe(ctx context.Context, r *replica.Replica, topic string, n int) ([]time.Duration, error) {
	var (
		mu        sync.Mutex
		latencies []time.Duration
		failed    error
		probes    sync.WaitGroup
	)
	tick := time.NewTicker(probePause)
	defer tick.Stop()
	for i := range n {
		<-tick.C
		probes.Go(func() {
			took, err := s.probeOnce(ctx, r, topic, i)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = err
				return
			}
			latencies = append(latencies, took)
		})
	}
	probes.Wait()
	return latencies, failed
}

func (s *stage) probeOnce(ctx context.Context, r *replica.Replica, topic string, i int) (time.Duration, error) {
	id := "probe-" + strconv.Itoa(i)
	value, err := json.Marshal(map[string]string{
		"delivery_id": id, "status": "CREATED", "occurred_at": time.Now().Add(-time.Minute).UTC().Format(time.RFC3339Nano),
	})
	if err != nil {
		return 0, fmt.Errorf("encoding a probe: %w", err)
	}
	partition := kafka.JavaPartition([]byte(id), partitions)
	began := time.Now()
	offsets, err := s.client.Produce(ctx, kafka.Record{Topic: topic, Partition: partition, Key: []byte(id), Value: value})
	if err != nil {
		return 0, err
	}
	a, err := r.Get(ctx, fmt.Sprintf("/v1/counts?min_position=%d:%d&wait=10s", partition, offsets[0]+1))
	if err != nil {
		return 0, err
	}
	if a.Status != http.StatusOK {
		return 0, fmt.Errorf("asking for a probe: %d %s", a.Status, a.Body)
	}
	return time.Since(began), nil
}

// restart kills r and starts it on the same disk, and returns the time from the
// start to the first answer that reflects the input as it was at the start.
func (s *stage) restart(ctx context.Context, r *replica.Replica, topic string) (time.Duration, error) {
	if err := r.Kill(); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := r.Start(); err != nil {
		return 0, err
	}
	if err := s.answerAtEnd(ctx, r, topic); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}

// answerAtEnd waits for an answer that reflects the input as it is now.
func (s *stage) answerAtEnd(ctx context.Context, r *replica.Replica, topic string) error {
	ends, err := s.client.Ends(ctx, topic, kafka.Committed)
	if err != nil {
		return err
	}
	position := make([]string, len(ends))
	for p, end := range ends {
		position[p] = fmt.Sprintf("%d:%d", p, end)
	}
	return until(ctx, r.Process(), "the end of the input", func() (bool, error) {
		_, err := r.Counts(ctx, "wait=1s&min_position="+strings.Join(position, ","))
		return err == nil, nil
	})
}

func sum(counts map[string]int64) (total int64) {
	for _, n := range counts {
		total += n
	}
	return total
}
