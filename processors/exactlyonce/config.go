package exactlyonce

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
)

// memberWait is how long a broker may keep a fetch of a member waiting.
const memberWait = 250 * time.Millisecond

// ClientConfig says how to reach Kafka.
type ClientConfig struct {
	Brokers  []string
	ClientID string
	// Hasher places emitted records by their key; default Murmur2.
	Hasher Hasher
	// Tune has the last word on the configuration of every client, for TLS and
	// SASL. It may be nil.
	Tune func(*sarama.Config)
}

// Sarama returns a fresh configuration for a plain client: read committed, no
// topic creation, patient with elections. Sarama and goka both write to the
// configuration they are given, so none is ever shared.
func (c ClientConfig) Sarama() *sarama.Config {
	s := sarama.NewConfig()
	s.Version = sarama.V3_6_0_0 // the upper bound; each request uses what the broker offers
	s.ClientID = c.ClientID
	s.Metadata.AllowAutoTopicCreation = false
	s.Metadata.RefreshFrequency = time.Minute
	s.Metadata.Retry.Max = 16
	s.Metadata.Retry.BackoffFunc = backoff(50*time.Millisecond, 500*time.Millisecond)
	s.Net.DialTimeout = 10 * time.Second
	s.Net.ReadTimeout = 15 * time.Second
	s.Net.WriteTimeout = 15 * time.Second
	// Read committed also makes OffsetFetch wait for pending transactional
	// offsets (RequireStable).
	s.Consumer.IsolationLevel = sarama.ReadCommitted
	s.Consumer.Return.Errors = true
	s.Consumer.Fetch.Default = 256 << 10
	s.Consumer.MaxWaitTime = memberWait
	s.ChannelBufferSize = 256
	if c.Tune != nil {
		c.Tune(s)
	}
	return s
}

// until returns a configuration whose clients make haste once ctx has ended:
// sarama knows no contexts, and would look for a broker that is gone for longer
// than a process has to stop. What is under way can still be finished.
func (c ClientConfig) until(ctx context.Context) ClientConfig {
	tune := c.Tune
	c.Tune = func(s *sarama.Config) {
		if tune != nil {
			tune(s)
		}
		patient := s.Metadata.Retry.BackoffFunc
		s.Metadata.Retry.BackoffFunc = func(retries, maxRetries int) time.Duration {
			d := patient(retries, maxRetries)
			if ctx.Err() != nil {
				d = min(d, 20*time.Millisecond)
			}
			return d
		}
	}
	return c
}

// Observer is told what happens, for metrics. Its methods must not block.
type Observer interface {
	// Rebalanced is called at each new session of the group.
	Rebalanced(group string)
	// AttemptEnded is called when a fault ended an attempt; reason is one of
	// Reasons.
	AttemptEnded(group, reason string)
	// Transaction is called after each transaction; result is "committed" or
	// "failed".
	Transaction(group, result string, took time.Duration)
}

// Config describes one exactly-once processor in one process.
type Config struct {
	Client ClientConfig
	Group  string // consumer group; the table topic is Group + "-table"
	// Stateless says that the group has no table: its epochs write records only.
	Stateless bool
	// Instance names this process. It must be stable over restarts and unique
	// among live processes: it is the group instance ID and, with the group, the
	// transactional ID.
	Instance string
	StateDir string // parent of the local stores
	// Standby keeps the local stores of the partitions that other members own up
	// to date too, so that a takeover reads the last records only. It costs the
	// disk of the whole table, and reading all of its changelog.
	Standby bool

	SessionTimeout   time.Duration // default 30s
	RebalanceTimeout time.Duration // default 20s
	CommitInterval   time.Duration // default 50ms
	CommitTimeout    time.Duration // after it a commit's outcome counts as unknown; default 10s
	// FenceAfter is the age at which an open transaction of a member that is
	// gone is aborted, where it is in our way; default 2s.
	FenceAfter time.Duration
	// StallAfter is how long a partition may leave alone a record that it could
	// read; then the attempt ends; default 30s, three times what a commit may take.
	StallAfter time.Duration
	// InputWriters are the groups, with runtimes like this one, that write our
	// inputs. A transaction of theirs that stands open for FenceAfter is aborted,
	// because it holds back all that was written behind it.
	InputWriters []string
	// MaxEpochEvents is per partition: an epoch is cut early at this size, and
	// twice as many block the partition; default 10,000.
	MaxEpochEvents int
	// FlushInterval is how often committed rows go to the local store; default
	// 10s. What is not flushed is read again from the changelog.
	FlushInterval time.Duration

	Observer Observer // may be nil
	Logger   *slog.Logger

	// NewState makes the state of a partition for one assignment.
	NewState func(partition int32) State

	// crash is called at the named points of an epoch, for tests of what a
	// kill leaves behind.
	crash func(point string)
}

const defaultCommitTimeout = 10 * time.Second

func setDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

func (c *Config) complete() error {
	var errs []error
	require := func(ok bool, name string) {
		if !ok {
			errs = append(errs, fmt.Errorf("exactlyonce: Config.%s is required", name))
		}
	}
	require(len(c.Client.Brokers) > 0, "Client.Brokers")
	require(c.Group != "", "Group")
	require(c.Instance != "", "Instance")
	require(c.StateDir != "", "StateDir")
	require(c.Logger != nil, "Logger")
	require(c.NewState != nil, "NewState")
	setDefault(&c.Client.Hasher, Murmur2)
	setDefault(&c.Client.ClientID, c.Instance)
	setDefault(&c.SessionTimeout, 30*time.Second)
	setDefault(&c.RebalanceTimeout, 20*time.Second)
	setDefault(&c.CommitInterval, 50*time.Millisecond)
	setDefault(&c.CommitTimeout, defaultCommitTimeout)
	setDefault(&c.FenceAfter, 2*time.Second)
	setDefault(&c.StallAfter, 30*time.Second)
	setDefault(&c.MaxEpochEvents, 10_000)
	setDefault(&c.FlushInterval, 10*time.Second)
	if c.Observer == nil {
		c.Observer = unobserved{}
	}
	if c.crash == nil {
		c.crash = func(string) {}
	}
	return errors.Join(errs...)
}

type unobserved struct{}

func (unobserved) Rebalanced(string)                         {}
func (unobserved) AttemptEnded(string, string)               {}
func (unobserved) Transaction(string, string, time.Duration) {}

func (c *Config) table() string { return string(goka.GroupTable(goka.Group(c.Group))) }

func (c *Config) transactionalID() string { return transactionalID(c.Group, c.Instance) }

// transactionalID is unambiguous: an instance ID has no slash.
func transactionalID(group, instance string) string { return group + "/" + instance }

// backoff doubles from first to most. Sarama counts retries from 0.
func backoff(first, most time.Duration) func(retries, maxRetries int) time.Duration {
	return func(retries, _ int) time.Duration {
		if retries < 0 || retries > 20 {
			return most
		}
		return min(first<<retries, most)
	}
}

// recovery configures the consumer that reads the changelog.
func (c *Config) recovery() *sarama.Config {
	s := c.Client.Sarama()
	s.Consumer.Fetch.Default = 4 << 20
	return s
}

// member configures the consumer group.
func (c *Config) member() *sarama.Config {
	s := c.Client.Sarama()
	// JoinGroup is answered when all members have rejoined, which may take the
	// whole rebalance timeout.
	s.Net.ReadTimeout = c.RebalanceTimeout + 10*time.Second
	// A short budget, so that ErrUnstableOffsetCommit reaches Consume soon.
	s.Metadata.Retry.Max = 4
	s.Metadata.Retry.BackoffFunc = nil
	s.Metadata.Retry.Backoff = 250 * time.Millisecond
	s.Consumer.Offsets.Initial = sarama.OffsetOldest
	s.Consumer.Offsets.AutoCommit.Enable = false // offsets travel in the transaction only
	s.Consumer.Group.ResetInvalidOffsets = false // resolved, and counted, at assignment
	s.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{goka.CopartitioningStrategy}
	s.Consumer.Group.Rebalance.Timeout = c.RebalanceTimeout
	s.Consumer.Group.Session.Timeout = c.SessionTimeout
	// A member learns of a rebalance by its next heartbeat, and all wait for it.
	s.Consumer.Group.Heartbeat.Interval = min(c.SessionTimeout/5, time.Second)
	s.Consumer.Group.InstanceId = c.Instance
	return s
}

// transactional configures the producer.
func (c *Config) transactional() *sarama.Config {
	s := c.Client.Sarama()
	s.Net.MaxOpenRequests = 1
	p := &s.Producer
	p.Idempotent = true
	p.RequiredAcks = sarama.WaitForAll
	p.Compression = sarama.CompressionLZ4
	p.MaxMessageBytes = MaxRecordBytes + 4096
	p.Partitioner = c.Client.Hasher.Partitioner()
	p.Return.Successes = true // brings the changelog offset kept in the local store
	p.Return.Errors = true
	p.Retry.Max = 20
	p.Retry.BackoffFunc = backoff(50*time.Millisecond, time.Second)
	p.Flush.Frequency = time.Millisecond
	p.Flush.Bytes = 1 << 19
	p.Transaction.ID = c.transactionalID()
	p.Transaction.Timeout = c.CommitTimeout
	p.Transaction.Retry.Max = 60
	p.Transaction.Retry.BackoffFunc = backoff(2*time.Millisecond, 500*time.Millisecond)
	return s
}

// MaxRecordBytes bounds key + value + headers of a row or record. It leaves
// room below the default of max.message.bytes (1,048,588) for the batch around
// it. A State must not write more: the attempt would fail, at the same offset,
// for ever.
const MaxRecordBytes = 1_000_000
