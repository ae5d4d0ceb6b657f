package chaos

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Fault is something that happens to a deployment, and heals.
type Fault string

// The faults of a mixed schedule.
const (
	KillReplica   Fault = "kill -9 of a replica, same disk"
	KillAndWipe   Fault = "kill -9 of a replica, empty disk"
	KillAtFrame   Fault = "kill -9 of a replica in the midst of a transaction"
	WipeTwo       Fault = "kill -9 of two replicas, empty disks, connections cut while they recover"
	LeaveForGood  Fault = "a replica stays away for longer than its session"
	FreezeReplica Fault = "a replica stands still for longer than its session"
	FreezeLonger  Fault = "a replica stands still for longer than its transactions may last"
	Scale         Fault = "two of three replicas stop, and start again"
	Twin          Fault = "a second process uses the name of a replica"
	RestartAll    Fault = "the replicas are restarted one by one"
	KillBroker    Fault = "kill -9 of a broker"
	SlowBroker    Fault = "a broker answers 200 ms later"
	CutAll        Fault = "all connections are cut again and again"
	LoseOutcomes  Fault = "the answers to commits are lost"
)

// Faults are all of a mixed schedule.
var Faults = []Fault{
	KillReplica, KillAndWipe, KillAtFrame, WipeTwo, LeaveForGood, FreezeReplica, FreezeLonger, Scale, Twin, RestartAll,
	KillBroker, SlowBroker, CutAll, LoseOutcomes,
}

// Step is one fault of a schedule.
type Step struct {
	Fault  Fault
	Target int           // which replica or broker, from 0
	Lasts  time.Duration // where the fault has a duration
	Frame  int           // which of the requests of a transaction, for KillAtFrame
	Calm   time.Duration // how long nothing happens afterwards
}

// String implements fmt.Stringer.
func (s Step) String() string {
	return fmt.Sprintf("%s (target %d, frame %d, lasts %v, then calm for %v)", s.Fault, s.Target, s.Frame, s.Lasts, s.Calm)
}

// Plan returns n steps that depend on seed only. Each fault comes up as often as
// any other, in an order of its own.
func Plan(seed uint64, n int) []Step {
	random := rand.New(rand.NewPCG(seed, 0))
	var steps []Step
	var left []Fault
	for len(steps) < n {
		if len(left) == 0 {
			left = append(left, Faults...)
			random.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
		}
		steps = append(steps, Step{
			Fault: left[0], Target: random.IntN(3), Frame: random.IntN(len(Frames)),
			Lasts: 2*time.Second + time.Duration(random.IntN(4000))*time.Millisecond,
			Calm:  time.Duration(random.IntN(3000)) * time.Millisecond,
		})
		left = left[1:]
	}
	return steps
}
