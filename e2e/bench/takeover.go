package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"deliverystat/e2e/kafka"
	"deliverystat/e2e/process"
	"deliverystat/e2e/replica"
)

// takeover is what it took a replica to stand in for another.
type takeover struct {
	Wall  time.Duration // from the kill until every partition has moved on
	Usage process.Usage // of the replica that stands in, up to the kill
	Disk  int64         // bytes of its state directory at the kill
}

// rowEvents is how many events make a row: what a delivery has in its life.
const rowEvents = 6

// takeovers kills one of two replicas that share a table of many rows, without a
// standby and with one.
func (s *stage) takeovers(ctx context.Context, r *results, rounds int) error {
	const topic = "takeover"
	if err := s.command(ctx, "topics", "create", "--events-topic="+topic, "--topic-prefix=none-",
		"--partitions="+strconv.Itoa(partitions), "--replication-factor=1", "--allow-unsafe"); err != nil {
		return err
	}
	fmt.Printf("producing %d events of %d deliveries\n", rowEvents*r.rows, r.rows)
	if _, err := s.simulate(ctx, topic, "--events="+strconv.Itoa(rowEvents*r.rows), "--deliveries="+strconv.Itoa(r.rows), "--seed=11"); err != nil {
		return err
	}
	for i := range rounds {
		for _, contestant := range []struct {
			into    *[]takeover
			standby bool
		}{{&r.cold, false}, {&r.warm, true}} {
			took, err := s.takeover(ctx, topic, contestant.standby)
			if err != nil {
				return fmt.Errorf("takeover %d, standby %v: %w", i+1, contestant.standby, err)
			}
			*contestant.into = append(*contestant.into, took)
			fmt.Printf("takeover %d, standby %-5v: %.2f s; the other had used %.2f s CPU, %d MiB, %d MiB on disk\n", i+1, contestant.standby,
				took.Wall.Seconds(), took.Usage.CPU.Seconds(), took.Usage.PeakRSS>>20, took.Disk>>20)
		}
	}
	return nil
}

func (s *stage) takeover(ctx context.Context, topic string, standby bool) (t takeover, err error) {
	flags := []string{"--roles=processors", "--standby=" + strconv.FormatBool(standby)}
	one, prefix, err := s.install(ctx, topic, flags...)
	if err != nil {
		return t, err
	}
	two, err := replica.New(replica.Options{
		Binary: s.binary, Brokers: s.cluster.Addresses(), Prefix: prefix, Name: "two",
		Dir: filepath.Join(s.dir, prefix), Flags: append([]string{"--events-topic=" + topic, "--allow-unsafe", "--session-timeout=60s"}, flags...),
	})
	if err != nil {
		return t, err
	}
	// The first reads everything, so that the second has only what it is given.
	if err := one.Start(); err != nil {
		return t, err
	}
	defer func() { _ = one.Kill() }()
	if err := s.awaitCommitted(ctx, one, prefix, topic); err != nil {
		return t, err
	}
	if err := two.Start(); err != nil {
		return t, err
	}
	defer func() { _ = two.Kill() }()
	if err := until(ctx, two.Process(), "half of the partitions", func() (bool, error) {
		n, err := two.Owned(ctx, prefix+"latest-delivery")
		return err == nil && n == partitions/2, nil
	}); err != nil {
		return t, err
	}
	if standby {
		if err := s.awaitWarm(ctx, two, prefix); err != nil {
			return t, err
		}
	}
	if t.Usage, err = two.Process().Usage(); err != nil {
		return t, err
	}
	if t.Disk, err = two.DiskBytes(); err != nil {
		return t, err
	}

	began := time.Now()
	if err := one.Kill(); err != nil {
		return t, err
	}
	if err := s.command(ctx, "leave", "--topic-prefix="+prefix, "--events-topic="+topic, "--instance-id=one"); err != nil {
		return t, err
	}
	if err := s.produceEverywhere(ctx, topic); err != nil {
		return t, err
	}
	if err := s.awaitCommitted(ctx, two, prefix, topic); err != nil {
		return t, err
	}
	t.Wall = time.Since(began)
	return t, s.command(ctx, "verify", "--topic-prefix="+prefix, "--events-topic="+topic)
}

// awaitWarm waits until r has read all that it keeps for others.
func (s *stage) awaitWarm(ctx context.Context, r *replica.Replica, prefix string) error {
	return until(ctx, r.Process(), "a warm standby", func() (bool, error) {
		n, err := r.Standing(ctx, prefix+"latest-delivery")
		return err == nil && n == partitions/2, nil
	})
}

// awaitCommitted waits until the first stage has committed the whole input.
func (s *stage) awaitCommitted(ctx context.Context, r *replica.Replica, prefix, topic string) error {
	ends, err := s.client.Ends(ctx, topic, kafka.Committed)
	if err != nil {
		return err
	}
	return until(ctx, r.Process(), "the end of the input", func() (bool, error) {
		offsets, err := s.client.Offsets(ctx, prefix+"latest-delivery", topic, partitions)
		if err != nil {
			return false, nil //nolint:nilerr // a transaction is under way
		}
		for p, end := range ends {
			if offsets[p] < end {
				return false, nil
			}
		}
		return true, nil
	})
}

// produceEverywhere writes one event to each partition.
func (s *stage) produceEverywhere(ctx context.Context, topic string) error {
	var records []kafka.Record
	for missing, i := partitions, 0; missing > 0; i++ {
		id := "takeover-" + strconv.Itoa(i)
		p := kafka.JavaPartition([]byte(id), partitions)
		if int(p) != partitions-missing {
			continue
		}
		missing--
		value, err := json.Marshal(map[string]string{
			"delivery_id": id, "status": "CREATED", "occurred_at": time.Now().Add(-time.Minute).UTC().Format(time.RFC3339Nano),
		})
		if err != nil {
			return fmt.Errorf("encoding an event: %w", err)
		}
		records = append(records, kafka.Record{Topic: topic, Partition: p, Key: []byte(id), Value: value})
	}
	_, err := s.client.Produce(ctx, records...)
	return err
}
