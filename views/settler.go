package views

import (
	"time"

	"deliverystat/codecs"
)

// settleRetry is how long a look-up that failed is not repeated.
const settleRetry = 10 * time.Second

// spot is an offset of one partition.
type spot struct {
	partition int32
	offset    int64
}

// question asks whether [from, end) of a partition holds a committed record.
type question struct {
	partition int32
	from, end int64
}

// settler decides which ranges of the log are worth a look: those between the
// end and a position that has not moved since the probe before. A moving
// position needs none, for it will pass the ends of older probes by itself. It
// is used by one goroutine.
type settler struct {
	stood   map[spot]struct{}  // where the positions were at the last probe
	unread  map[spot]struct{}  // a committed record is known to follow
	retryAt map[spot]time.Time // of look-ups that failed
}

// questions returns what to look up now, and remembers the positions.
func (s *settler) questions(e *evidence, positions []codecs.Position, now time.Time) []question {
	var out []question
	stood := map[spot]struct{}{}
	unread := map[spot]struct{}{}
	retryAt := map[spot]time.Time{}
	asked := map[spot]struct{}{}
	for _, p := range positions {
		if p.TopicID != e.topicID {
			continue
		}
		for i, next := range p.Next[:min(len(p.Next), len(e.gaps))] {
			if next < 0 {
				continue
			}
			stood[spot{int32(i), next}] = struct{}{}
			from := spot{int32(i), e.raise(i, next)}
			// What is known of this spot stays known while a position needs it.
			if _, ok := s.unread[from]; ok {
				unread[from] = struct{}{}
			}
			if at, ok := s.retryAt[from]; ok {
				retryAt[from] = at
			}
			end := e.newest().Stable[i]
			_, still := s.stood[spot{int32(i), next}]
			_, known := unread[from]
			_, twice := asked[from]
			if !still || known || twice || from.offset >= end || now.Before(retryAt[from]) {
				continue
			}
			asked[from] = struct{}{}
			out = append(out, question{int32(i), from.offset, end})
		}
	}
	s.stood, s.unread, s.retryAt = stood, unread, retryAt
	return out
}

// answered notes that the committed records of q end at visible.
func (s *settler) answered(q question, visible int64) {
	if visible > q.from {
		s.unread[spot{q.partition, q.from}] = struct{}{}
	}
}

// failed notes that q has no answer.
func (s *settler) failed(q question, now time.Time) {
	s.retryAt[spot{q.partition, q.from}] = now.Add(settleRetry)
}
