package chaos_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/e2e/chaos"
)

var noon = time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)

// truth is that each record of the one partition creates a delivery.
func truth(next []int64) (live, closed map[string]int) {
	return map[string]int{"CREATED": int(max(0, next[0]))}, map[string]int{"DELIVERED": 0}
}

func right(replica string, seconds int, next int64) chaos.Answer {
	return chaos.Answer{
		Replica: replica, At: noon.Add(time.Duration(seconds) * time.Second), Next: []int64{next},
		Live: map[string]int64{"CREATED": next, "ASSIGNED": 0}, Closed: map[string]int64{"DELIVERED": 0}, Sum: next, From: "counts",
	}
}

func history() (*chaos.History, []map[int64]string) {
	h := &chaos.History{}
	h.Wrote(
		chaos.Sent{Offset: 0, Value: "a", At: noon},
		chaos.Sent{Offset: 1, Value: "b", At: noon.Add(time.Second)},
		chaos.Sent{Offset: 3, Value: "d", At: noon.Add(2 * time.Second)},
	)
	h.Took(chaos.Sent{Offset: 2, Value: "c"})
	h.Read(right("one", 1, 1))
	h.Read(right("one", 9, 4))
	h.Read(right("two", 7, 2))
	h.Phases = []chaos.Phase{{Name: "calm", From: noon, To: noon.Add(time.Minute)}}
	return h, []map[int64]string{{0: "a", 1: "b", 3: "d"}}
}

func TestARightHistory(t *testing.T) {
	h, log := history()

	r := chaos.Check(h, truth, log)

	require.Empty(t, r.Wrong)
	require.Equal(t, 3, r.Positions)
	require.Equal(t, []chaos.Summary{{Phase: "calm", Duration: time.Minute, Answers: 3, Positions: 3, Sent: 3, Wait: 7 * time.Second}}, r.Phases)
}

// Each of these is one thing that must never be: the check has to see it.
func TestWrongHistories(t *testing.T) {
	for want, spoil := range map[string]func(*chaos.History, []map[int64]string){
		"live map[CREATED:3], want map[CREATED:4]": func(h *chaos.History, _ []map[int64]string) {
			h.Answers[1].Live["CREATED"], h.Answers[1].Sum = 3, 3
		},
		"live map[CREATED:-1]": func(h *chaos.History, _ []map[int64]string) {
			h.Answers[1].Live["CREATED"], h.Answers[1].Sum = -1, -1
		},
		"live map[], want map[CREATED:1]": func(h *chaos.History, _ []map[int64]string) {
			h.Answers[0].Live, h.Answers[0].Sum = map[string]int64{}, 0
		},
		"closed map[DELIVERED:1], want map[]": func(h *chaos.History, _ []map[int64]string) {
			h.Answers[0].Closed["DELIVERED"] = 1
		},
		"says 5 are live, the statuses add up to 4": func(h *chaos.History, _ []map[int64]string) { h.Answers[1].Sum = 5 },
		"replica one went back from [4] to [3]":     func(h *chaos.History, _ []map[int64]string) { h.Read(right("one", 10, 3)) },
		"replica one went back from [4] to [-1]": func(h *chaos.History, _ []map[int64]string) {
			a := right("one", 10, 0)
			a.Next[0] = -1
			h.Read(a)
		},
		`offset 1 was acknowledged as "b" and reads ""`:  func(_ *chaos.History, log []map[int64]string) { delete(log[0], 1) },
		`offset 1 was acknowledged as "b" and reads "x"`: func(_ *chaos.History, log []map[int64]string) { log[0][1] = "x" },
		`partition 0 offset 2 was aborted and reads "c"`: func(_ *chaos.History, log []map[int64]string) { log[0][2] = "c" },
		"strange answer: 500":                            func(h *chaos.History, _ []map[int64]string) { h.Strange("500") },
	} {
		h, log := history()
		spoil(h, log)

		r := chaos.Check(h, truth, log)

		require.Len(t, r.Wrong, 1, want)
		require.Contains(t, r.Wrong[0], want)
	}
}
