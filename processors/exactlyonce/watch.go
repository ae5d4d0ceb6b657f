package exactlyonce

import (
	"fmt"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

// A session is believed to run as long as it heartbeats, and it may do that while
// a callback hangs, or while sarama's consumer of a partition has gone silent.
// The watchdog believes the log instead: a record that can be read, and that was
// not taken for Config.StallAfter, is a stall.
//
// Idle partitions have no such record, and neither has one that is held back by
// an open transaction or whose broker does not answer. A recovery or a rebalance
// is not looked at: it is no part of a session that runs.

// looks is how often the watchdog looks within Config.StallAfter.
const looks = 6

// watch ends the attempt when partitions of the session stand still.
func (s *session) watch() {
	a := s.a
	stands := make([]standing, len(s.shards))
	for pause(s.Context(), a.cfg.StallAfter/looks) == nil {
		var stalled []string
		for p, sh := range s.shards {
			if sh == nil || !stands[p].still(sh.next.Load(), time.Now()) {
				continue
			}
			// Only the first input is watched: Status knows no other.
			topic := sh.inputs[0].Topic
			if !s.readable(topic, sh.id, stands[p].next) {
				stands[p] = standing{} // idle, or nobody knows
			} else if time.Since(stands[p].since) >= a.cfg.StallAfter {
				stalled = append(stalled, fmt.Sprintf("%s/%d at offset %d", topic, sh.id, stands[p].next))
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

// standing is where a partition was seen to stand, and since when.
type standing struct {
	next  int64
	since time.Time // zero if it was not seen yet
}

// still reports whether next is where the partition stood before.
func (st *standing) still(next int64, now time.Time) bool {
	if !st.since.IsZero() && st.next == next {
		return true
	}
	*st = standing{next, now}
	return false
}

// readable reports whether a committed record can be read at or behind offset.
func (s *session) readable(topic string, partition int32, offset int64) bool {
	c := s.a.cluster
	end, err := c.GetOffset(topic, partition, sarama.OffsetNewest)
	if err != nil || end <= offset {
		return false
	}
	visible, err := VisibleEnd(s.Context(), c, topic, partition, offset, end)
	return err == nil && visible > offset
}
