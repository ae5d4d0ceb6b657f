//go:build chaos

package chaos_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/e2e/chaos"
	"deliverystat/e2e/proxy"
)

// Each fault by itself, one after the other, on a service that never rests. That
// every broker is killed means the leader of every partition of the input, the
// tables and the tallies, and both coordinators.
func TestNoFaultMakesANumberWrong(t *testing.T) {
	r := deploy(t)
	r.load(1, 15*time.Minute)
	r.During("nothing", func() { r.calm(5 * time.Second) })
	for i, fault := range chaos.Faults {
		step := chaos.Step{Fault: fault, Target: i % 3, Lasts: 3 * time.Second}
		switch fault {
		case chaos.KillAtFrame:
			for step.Frame = range chaos.Frames {
				step.Target = step.Frame % 3
				r.strike(step)
			}
		case chaos.KillBroker:
			for step.Target = range r.replicas {
				r.strike(step)
			}
		default:
			r.strike(step)
		}
	}

	report := r.judge()

	r.tell(report)
	for _, phase := range report.Phases {
		require.GreaterOrEqual(t, phase.Positions, leastPositions, "positions while: %s", phase.Phase)
	}
	require.GreaterOrEqual(t, report.Gauges, 30)
}

// A mixed schedule: SEED repeats one, DURATION makes it longer.
func TestAMixedSchedule(t *testing.T) {
	seed, length := rand.Uint64(), 45*time.Second
	if s := os.Getenv("SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		seed = n
	}
	if d := os.Getenv("DURATION"); d != "" {
		n, err := time.ParseDuration(d)
		require.NoError(t, err)
		length = n
	}
	t.Logf("SEED=%d DURATION=%s", seed, length)
	r := deploy(t)
	r.load(seed, length+10*time.Minute)
	began := time.Now()
	for _, step := range chaos.Plan(seed, int(length/time.Second)) {
		if r.strike(step); time.Since(began) > length {
			break
		}
	}

	report := r.judge()

	r.tell(report)
	require.GreaterOrEqual(t, report.Positions, int(length.Seconds()), "different positions")
}

// tell logs what the checks were made of, and how long each fault held answers
// back.
func (r *rig) tell(report *chaos.Report) {
	r.t.Helper()
	var transactions int64
	for _, p := range r.brokers.Proxies {
		transactions += p.Requests(proxy.EndTxn)
	}
	require.Positive(r.t, r.audits.Load(), "scrapes that told of audits")
	r.t.Logf("%d records, %d answers (%d by gauges) at %d positions, %d refusals, %d transactions: none wrong",
		len(r.Sent), report.Answers, report.Gauges, report.Positions, r.Refusals, transactions)
	for _, s := range report.Phases {
		r.t.Logf("%-55s took %5.1fs; the last record was seen after %5.1fs; %d answers, %d behind, %d positions",
			s.Phase, s.Duration.Seconds(), s.Wait.Seconds(), s.Answers, s.Behind, s.Positions)
	}
}
