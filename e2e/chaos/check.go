package chaos

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Truth says what the counts are when next[p] is the next offset of each
// partition p. Statuses that count nothing may be missing.
type Truth func(next []int64) (live, closed map[string]int)

// Summary says how much was answered while a fault was at work.
type Summary struct {
	Phase     string
	Duration  time.Duration
	Answers   int
	Behind    int           // of them with records left to reflect
	Positions int           // different ones
	Sent      int           // records acknowledged
	Wait      time.Duration // the longest that one of these was not reflected by any replica
}

// Report is what [Check] finds.
type Report struct {
	Wrong     []string // each a wrong answer, or a record that was lost or made up; at most 20
	Phases    []Summary
	Answers   int
	Gauges    int // answers that were read from gauges
	Positions int
}

const mostWrong = 20

func (r *Report) wrong(format string, args ...any) {
	if len(r.Wrong) < mostWrong {
		r.Wrong = append(r.Wrong, fmt.Sprintf(format, args...))
	}
}

// Check judges a history. log holds the values of the input by partition and
// offset, as read_committed readers see them.
func Check(h *History, truth Truth, log []map[int64]string) *Report {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := &Report{}
	for _, odd := range h.Odd {
		r.wrong("strange answer: %s", odd)
	}
	r.checkInput(h, log)
	answers := slices.Clone(h.Answers)
	slices.SortStableFunc(answers, func(a, b Answer) int { return a.At.Compare(b.At) })
	r.checkAnswers(answers, truth)
	r.checkMonotony(answers)
	r.summarize(h, answers)
	return r
}

// checkInput demands that brokers kept what they acknowledged, and that nobody
// sees what was aborted.
func (r *Report) checkInput(h *History, log []map[int64]string) {
	for _, s := range h.Sent {
		if got, ok := log[s.Partition][s.Offset]; !ok || got != s.Value {
			r.wrong("partition %d offset %d was acknowledged as %.80q and reads %.80q", s.Partition, s.Offset, s.Value, got)
		}
	}
	for _, s := range h.Aborted {
		if got, ok := log[s.Partition][s.Offset]; ok {
			r.wrong("partition %d offset %d was aborted and reads %.80q", s.Partition, s.Offset, got)
		}
	}
}

func (r *Report) checkAnswers(answers []Answer, truth Truth) {
	seen := map[string]bool{}
	for _, a := range answers {
		r.Answers++
		if a.From == fromGauges {
			r.Gauges++
		}
		seen[fmt.Sprint(a.Next)] = true
		live, closed := truth(a.Next)
		if want := wide(live); !maps.Equal(want, nonZero(a.Live)) {
			r.wrong("%s of replica %s at %v: live %v, want %v", a.From, a.Replica, a.Next, nonZero(a.Live), want)
		}
		if want := wide(closed); !maps.Equal(want, nonZero(a.Closed)) {
			r.wrong("%s of replica %s at %v: closed %v, want %v", a.From, a.Replica, a.Next, nonZero(a.Closed), want)
		}
		var sum int64
		for _, n := range a.Live {
			sum += n
		}
		if a.Sum != sum {
			r.wrong("%s of replica %s at %v: says %d are live, the statuses add up to %d", a.From, a.Replica, a.Next, a.Sum, sum)
		}
	}
	r.Positions = len(seen)
}

// checkMonotony demands that a replica never goes back, not even when it is
// started again on an empty disk.
func (r *Report) checkMonotony(answers []Answer) {
	last := map[string][]int64{}
	for _, a := range answers {
		before := last[a.Replica]
		for p := range before {
			if a.Next[p] < before[p] {
				r.wrong("replica %s went back from %v to %v", a.Replica, before, a.Next)
				break
			}
		}
		last[a.Replica] = a.Next
	}
}

func (r *Report) summarize(h *History, answers []Answer) {
	waits := waits(h.Sent, answers)
	for _, phase := range h.Phases {
		s := Summary{Phase: phase.Name, Duration: phase.To.Sub(phase.From)}
		within := func(at time.Time) bool { return !at.Before(phase.From) && at.Before(phase.To) }
		positions := map[string]bool{}
		for _, a := range answers {
			if !within(a.At) {
				continue
			}
			s.Answers++
			positions[fmt.Sprint(a.Next)] = true
			if a.Lag > 0 {
				s.Behind++
			}
		}
		s.Positions = len(positions)
		for i, sent := range h.Sent {
			if within(sent.At) {
				s.Sent++
				s.Wait = max(s.Wait, waits[i])
			}
		}
		r.Phases = append(r.Phases, s)
	}
}

// waits returns for each record how long it took from its acknowledgement to
// the first answer of any replica that reflects it.
func waits(sent []Sent, answers []Answer) []time.Duration {
	byPartition := map[int32][]int{}
	for i, s := range sent {
		byPartition[s.Partition] = append(byPartition[s.Partition], i)
	}
	out := make([]time.Duration, len(sent))
	for p, indices := range byPartition {
		slices.SortFunc(indices, func(a, b int) int { return cmp.Compare(sent[a].Offset, sent[b].Offset) })
		next := 0 // the first of indices that no answer has reflected yet
		for _, a := range answers {
			for ; next < len(indices) && sent[indices[next]].Offset < a.Next[p]; next++ {
				out[indices[next]] = max(0, a.At.Sub(sent[indices[next]].At))
			}
		}
	}
	return out
}

func wide(counts map[string]int) map[string]int64 {
	out := map[string]int64{}
	for status, n := range counts {
		if n != 0 {
			out[status] = int64(n)
		}
	}
	return out
}

func nonZero(counts map[string]int64) map[string]int64 {
	out := maps.Clone(counts)
	maps.DeleteFunc(out, func(_ string, n int64) bool { return n == 0 })
	return out
}

// Where answers are read.
const (
	fromCounts = "counts"
	fromGauges = "gauges"
)
