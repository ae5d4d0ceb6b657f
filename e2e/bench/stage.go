package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"deliverystat/e2e/broker"
	"deliverystat/e2e/kafka"
	"deliverystat/e2e/process"
	"deliverystat/e2e/replica"
)

// partitions is how many partitions the input has.
const partitions = 8

// pollPause is how often a running process is looked at. It is the error of
// the wall times.
const pollPause = 5 * time.Millisecond

// stage is what all runs share: the broker, the binary and a folder.
type stage struct {
	dir     string
	cluster *broker.Cluster
	client  *kafka.Client
	binary  replica.Binary
	runs    int

	profiles string // folder for profiles, "" for none
}

func newStage(ctx context.Context) (*stage, error) {
	dir, err := os.MkdirTemp("", "deliverystat-bench-")
	if err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	s := &stage{dir: dir}
	if s.binary, err = replica.Build(ctx, dir, false); err != nil {
		s.close()
		return nil, err
	}
	if s.cluster, err = broker.Start(ctx, dir, 1); err != nil {
		s.close()
		return nil, err
	}
	if s.client, err = kafka.Connect(s.cluster.Addresses()); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *stage) close() {
	if s.client != nil {
		s.client.Close()
	}
	if s.cluster != nil {
		_ = s.cluster.Close()
	}
	_ = os.RemoveAll(s.dir)
}

// command runs a command of the service that has to succeed.
func (s *stage) command(ctx context.Context, args ...string) error {
	result, err := s.binary.Run(ctx, nil, append(args, "--kafka-brokers="+s.cluster.Addresses())...)
	if err != nil {
		return err
	}
	if result.ExitCode != 0 {
		return fmt.Errorf("running deliverystat %v: exit code %d\n%s%s", args, result.ExitCode, result.Stdout, result.Stderr)
	}
	return nil
}

// truth is what simulate says the counts have to be.
type truth struct {
	Counts map[string]int64 `json:"counts"`
	Closed map[string]int64 `json:"closed"`
}

// simulate produces events into topic and returns the truth about them.
func (s *stage) simulate(ctx context.Context, topic string, flags ...string) (truth, error) {
	path := filepath.Join(s.dir, topic+"-truth.json")
	if err := s.command(ctx, append([]string{"simulate", "--events-topic=" + topic, "--truth=" + path}, flags...)...); err != nil {
		return truth{}, err
	}
	var t truth
	b, err := os.ReadFile(path)
	if err != nil {
		return truth{}, fmt.Errorf("reading the truth: %w", err)
	}
	if err := json.Unmarshal(b, &t); err != nil {
		return truth{}, fmt.Errorf("reading the truth: %w", err)
	}
	return t, nil
}

// install makes the topics of a new installation on the input topic and
// prepares a replica of it.
func (s *stage) install(ctx context.Context, topic string, flags ...string) (*replica.Replica, string, error) {
	s.runs++
	prefix := fmt.Sprintf("r%d-", s.runs)
	err := s.command(ctx, "topics", "create", "--topic-prefix="+prefix, "--events-topic="+topic,
		"--partitions="+strconv.Itoa(partitions), "--replication-factor=1", "--allow-unsafe")
	if err != nil {
		return nil, "", err
	}
	r, err := replica.New(replica.Options{
		Binary: s.binary, Brokers: s.cluster.Addresses(), Prefix: prefix, Name: "one",
		Dir:   filepath.Join(s.dir, prefix),
		Flags: append([]string{"--events-topic=" + topic, "--allow-unsafe", "--session-timeout=6s"}, flags...),
	})
	return r, prefix, err
}

// until looks at a process until done says so.
func until(ctx context.Context, p *process.Process, what string, done func() (bool, error)) error {
	tick := time.NewTicker(pollPause)
	defer tick.Stop()
	timeout := time.NewTimer(5 * time.Minute)
	defer timeout.Stop()
	for {
		ok, err := done()
		if err != nil {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
		if ok {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.Done():
			return fmt.Errorf("waiting for %s: the process has ended with code %d", what, p.ExitCode())
		case <-timeout.C:
			return fmt.Errorf("waiting for %s: not within five minutes", what)
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		}
	}
}
