package views

import (
	"context"
	"fmt"
	"time"

	"deliverystat/codecs"
	"deliverystat/processors/exactlyonce"
)

// Table is the local, read-only copy of a table topic that a view is made of.
// [exactlyonce.Follower] is one.
type Table interface {
	// Run follows the table until ctx ends.
	Run(ctx context.Context) error
	// Recovered reports whether every partition has reached the visible end. It
	// may be called from within the calls to a Sink.
	Recovered() bool
	// View calls read while the partition stands still at a progress row.
	View(partition int32, read func(get func(key string) ([]byte, error)) error) error
	// Partitions returns the number of partitions of the table, 0 if unknown.
	Partitions() int32
	// Remaining returns how many offsets of the changelog the partition has left
	// to read before it has recovered.
	Remaining(partition int32) int64
}

// remaining returns what each partition of t has left to read.
func remaining(t Table) []int64 {
	out := make([]int64, t.Partitions())
	for p := range out {
		out[p] = t.Remaining(int32(p))
	}
	return out
}

// Sink takes what a table tells of its content.
type Sink interface {
	// Reset says that the partition's copy starts empty.
	Reset(partition int32)
	// Applied hands over the next committed rows in log order, up to and with a
	// progress row, just before the table shows them. What was on disk at the
	// start comes first, in batches of which the last has the progress row.
	// Calls for one partition come one at a time.
	Applied(partition int32, rows []exactlyonce.Change)
}

// Follow makes the table of a view. All that the table tells must go to sink.
type Follow func(sink Sink) (Table, error)

// FollowTopic follows a table topic of Kafka. The boundary and the callbacks of
// cfg are set by the view.
func FollowTopic(cfg exactlyonce.FollowerConfig) Follow {
	return func(sink Sink) (Table, error) {
		cfg.Boundary = codecs.ProgressKey
		cfg.Reset = sink.Reset
		cfg.Applied = sink.Applied
		follower, err := exactlyonce.NewFollower(cfg)
		if err != nil {
			return nil, fmt.Errorf("following table %s: %w", cfg.Table, err)
		}
		return follower, nil
	}
}

// recoveryPoll is how often a view that has not recovered looks whether its
// table has.
const recoveryPoll = 20 * time.Millisecond

// await returns true once condition holds, or false when ctx ends before.
func await(ctx context.Context, interval time.Duration, condition func() bool) bool {
	if condition() {
		return true
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
			if condition() {
				return true
			}
		}
	}
}
