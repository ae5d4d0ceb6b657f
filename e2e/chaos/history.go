package chaos

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Sent is a record of the input as its writer knows it.
type Sent struct {
	Partition int32
	Offset    int64
	Value     string
	At        time.Time // when it was acknowledged, or its transaction committed
}

// Answer is what one reader was told.
type Answer struct {
	Replica      string
	At           time.Time
	Next         []int64 // the position that it names; -1 where it names none
	Live, Closed map[string]int64
	Sum          int64 // what the answer says is the sum of Live
	Lag          int64
	From         string // where it was read: counts, gauges
}

// Phase is a stretch of time in which one fault was at work.
type Phase struct {
	Name     string
	From, To time.Time
}

// History is what writers and readers saw. Its methods may be called by many.
type History struct {
	mu       sync.Mutex
	Sent     []Sent
	Aborted  []Sent // in transactions that were; must never be seen
	Answers  []Answer
	Refusals int      // answers that there is none yet
	Odd      []string // answers that are neither
	Phases   []Phase
}

// Wrote notes records that were acknowledged.
func (h *History) Wrote(sent ...Sent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Sent = append(h.Sent, sent...)
}

// Took notes records whose transaction was aborted.
func (h *History) Took(back ...Sent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Aborted = append(h.Aborted, back...)
}

// Read notes an answer.
func (h *History) Read(a Answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Answers = append(h.Answers, a)
}

// Refused notes that a replica said that it cannot answer yet.
func (h *History) Refused() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Refusals++
}

// Strange notes an answer that no client can make sense of.
func (h *History) Strange(answer string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Odd = append(h.Odd, answer)
}

// Positions returns how many different positions were answered since from.
func (h *History) Positions(from time.Time) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := map[string]bool{}
	for _, a := range slices.Backward(h.Answers) {
		if a.At.Before(from) {
			break
		}
		seen[fmt.Sprint(a.Next)] = true
	}
	return len(seen)
}

// During runs f as a phase.
func (h *History) During(name string, f func()) {
	phase := Phase{Name: name, From: time.Now()}
	f()
	phase.To = time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Phases = append(h.Phases, phase)
}
