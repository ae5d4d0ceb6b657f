package exactlyonce

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

// A session is believed to work as long as it heartbeats, and it may do that while
// a callback hangs, or while sarama's consumer of a partition has gone silent.
// The watchdog believes the log instead: a record that can be read, and that was
// not taken for Config.StallAfter, is a stall. Before a partition runs that is a
// record of its table.
//
// Idle partitions have no such record, and neither has one that is held back by
// an open transaction, whose broker does not answer, or whose state is being
// rebuilt. A rebalance is no part of a session.

// looks is how often the watchdog looks within Config.StallAfter.
const looks = 6

// watch ends the attempt when partitions of the session stand still.
func (s *session) watch() {
	a := s.a
	stands := make([]standing, len(s.shards))
	for pause(s.Context(), a.cfg.StallAfter/looks) == nil {
		if topic := s.recreated(); topic != "" {
			_ = a.fail(at("topic", fmt.Errorf("topic %s was created anew: what is at our offset is another record", topic)))
			return
		}
		var stalled []string
		for p, sh := range s.shards {
			if sh == nil || a.cfg.Stateless && !sh.running.Load() {
				continue // there is no table to recover
			}
			if !stands[p].still(sh.place(a.cfg.table()), time.Now()) {
				continue
			}
			if at := stands[p].place; !a.cluster.readable(s.Context(), sh.id, at) {
				stands[p] = standing{} // idle, or nobody knows
			} else if time.Since(stands[p].since) >= a.cfg.StallAfter {
				stalled = append(stalled, fmt.Sprintf("%s/%d at offset %d", at.topic, sh.id, at.offset))
			}
		}
		a.cfg.crash("watched")
		if len(stalled) > 0 {
			_ = a.fail(at("stalled", fmt.Errorf("%s: records can be read there, and for %v none was taken",
				strings.Join(stalled, ", "), a.cfg.StallAfter)))
			return
		}
	}
}

// recreated names an input that is not the one with which the session began,
// "" if there is none or nobody can tell. The brokers serve the offset of the
// former topic from the new one as soon as it is long enough.
func (s *session) recreated() string {
	for topic := range s.Claims() {
		was, err := s.a.cluster.topicID(topic)
		if err != nil {
			continue // the next look tells
		}
		if is, err := s.a.cluster.lookUpTopicID(topic); err == nil && is != was {
			return topic
		}
	}
	return ""
}

// watch ends the following, with its cause, when a partition stands still.
func (f *Follower) watch(ctx context.Context, c *cluster, end context.CancelCauseFunc) {
	stands := make([]standing, len(f.partitions))
	for pause(ctx, f.cfg.StallAfter/looks) == nil {
		for i, p := range f.partitions {
			at := place{f.cfg.Table, p.read.Load() + 1}
			if !stands[i].still(at, time.Now()) {
				continue
			}
			if !c.readable(ctx, p.id, at) {
				stands[i] = standing{}
			} else if time.Since(stands[i].since) >= f.cfg.StallAfter {
				end(fmt.Errorf("partition %d at offset %d: records can be read there, and for %v none was taken", p.id, at.offset, f.cfg.StallAfter))
				return
			}
		}
	}
}

// place is where a partition goes on reading.
type place struct {
	topic  string
	offset int64
}

// place returns where the shard goes on: in its first input, for Status knows no
// other, or before it runs in its table.
func (sh *shard) place(table string) place {
	if sh.running.Load() {
		return place{sh.inputs[0].Topic, sh.next.Load()}
	}
	return place{table, sh.store.offset() + 1}
}

// standing is where a partition was seen to stand, and since when.
type standing struct {
	place
	since time.Time // zero if it was not seen yet
}

// still reports whether the partition stands where it stood before.
func (st *standing) still(at place, now time.Time) bool {
	if !st.since.IsZero() && st.place == at {
		return true
	}
	*st = standing{at, now}
	return false
}

// readable reports whether a committed record can be read at a place or behind it.
func (c *cluster) readable(ctx context.Context, partition int32, at place) bool {
	end, err := c.GetOffset(at.topic, partition, sarama.OffsetNewest)
	if err != nil || end <= at.offset {
		return false
	}
	visible, err := VisibleEnd(ctx, c, at.topic, partition, at.offset, end)
	return err == nil && visible > at.offset
}
