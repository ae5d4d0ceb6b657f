//go:build e2e

package e2e_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/e2e/replica"
)

// One of three replicas is killed in the midst of the load and will not come
// back. Its session would last longer than this test waits for anything; leave
// ends it, and its partitions move at once, to replicas that have kept copies of
// them. It comes back all the same, and is one of three again; and so is one that
// lives when leave is called.
func TestPartitionsOfALeaverMoveAtOnce(t *testing.T) {
	d := install(t)
	flags := []string{"--session-timeout=" + (2 * patience).String(), "--standby"}
	one, two, three := d.serve("one", flags...), d.serve("two", flags...), d.serve("three", flags...)
	waitReady(t, one, two, three)
	d.waitShared(one, two, three)
	d.waitStanding(one, two, three)
	nobody := d.run([]string{"leave"}, "--instance-id=nobody")
	require.Equal(t, 1, nobody.ExitCode, nobody.Stderr)
	require.Contains(t, nobody.Stderr, "their members are one, three, two")
	simulation := d.simulate("--events=75000", "--deliveries=10000", "--rate=3000", "--seed=19", "--duplicates=0.1", "--out-of-order=0.1")
	d.waitProduced(10000)

	require.NoError(t, one.Kill())
	began := time.Now()
	d.mustRun([]string{"leave"}, "--instance-id=one")
	d.waitShared(two, three)
	t.Logf("the others owned all partitions %v after leave was called", time.Since(began).Round(time.Millisecond))
	d.waitProduced(40000)
	require.NoError(t, one.Start())
	waitReady(t, one)
	d.waitShared(one, two, three)
	d.mustRun([]string{"leave"}, "--instance-id=two")
	d.waitShared(one, two, three)

	d.requireExact(simulation.wait(t), one, two, three)
}

// waitShared waits until the replicas own some partitions each, and all of them
// together.
func (d *deployment) waitShared(replicas ...*replica.Replica) {
	d.t.Helper()
	eventually(d.t, "all partitions are owned", func() (string, bool) {
		total, idle, state := 0, false, ""
		for _, r := range replicas {
			n, err := r.Owned(d.t.Context(), d.topic("latest-delivery"))
			if err != nil {
				return err.Error(), false
			}
			total, idle = total+n, idle || n == 0
			state += r.Name + " owns " + strconv.Itoa(n) + "; "
		}
		return state, total == partitions && !idle
	})
}

// waitStanding waits until each replica keeps up-to-date copies of the partitions
// that it does not own.
func (d *deployment) waitStanding(replicas ...*replica.Replica) {
	d.t.Helper()
	group := d.topic("latest-delivery")
	for _, r := range replicas {
		eventually(d.t, "replica "+r.Name+" stands by for the others", func() (string, bool) {
			owned, err := r.Owned(d.t.Context(), group)
			if err != nil {
				return err.Error(), false
			}
			standing, err := r.Standing(d.t.Context(), group)
			if err != nil {
				return err.Error(), false
			}
			return fmt.Sprintf("owns %d, keeps %d", owned, standing), owned+standing == partitions && standing > 0
		})
		m, err := r.Metrics(d.t.Context())
		require.NoError(d.t, err)
		owned, kept := 0, 0
		for p := range partitions {
			labels := fmt.Sprintf(`{group="%s",partition="%d"}`, group, p)
			if _, ok := m["deliverystat_recovery_remaining_records"+labels]; ok {
				owned++
			}
			if remaining, ok := m["deliverystat_standby_remaining_records"+labels]; ok {
				require.Zero(d.t, remaining, labels)
				kept++
			}
		}
		require.Equal(d.t, partitions, owned+kept, "replica %s owns %d and keeps %d", r.Name, owned, kept)
	}
}
