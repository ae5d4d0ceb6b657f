package harness

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/e2e/replica"
)

// Crash implements [processorstest.Harness]. It kills a replica that owns
// partitions: one that was killed before has come back by then. It does not
// wait until this one has.
func (d *Deployment) Crash(t testing.TB, i int, wipe bool) {
	t.Helper()
	r := d.replicas[i]
	d.waitWorks(t, r)
	require.NoError(t, r.Kill())
	if wipe {
		require.NoError(t, r.WipeDisk())
	}
	require.NoError(t, r.Start())
}

// Rebalance implements [processorstest.Harness]. By turns, one more replica
// comes, is killed, comes back on its disk and ends in good order; each time
// it waits until partitions have moved.
func (d *Deployment) Rebalance(t testing.TB) {
	t.Helper()
	d.moves++
	switch d.moves % 4 {
	case 1, 3:
		require.NoError(t, d.passenger.Start())
		d.waitWorks(t, d.passenger)
		return
	case 2:
		require.NoError(t, d.passenger.Kill())
	case 0:
		code, err := d.passenger.Stop()
		require.NoError(t, err)
		require.Zero(t, code, "exit code of replica %s", d.passenger.Name)
	}
	eventually(t, "the other replicas own all partitions", nil, func() (string, bool) {
		total := 0
		for _, r := range d.replicas {
			n, err := d.owned(t, r)
			if err != nil {
				return err.Error(), false
			}
			total += n
		}
		return fmt.Sprintf("%d of %d", total, d.config.Partitions), total == d.config.Partitions
	})
}

// RestartBroker implements [processorstest.Harness].
func (d *Deployment) RestartBroker(t testing.TB) {
	t.Helper()
	d.config.RestartBroker(t)
}

// waitWorks waits until r owns partitions of the input.
func (d *Deployment) waitWorks(t testing.TB, r *replica.Replica) {
	t.Helper()
	eventually(t, "replica "+r.Name+" owns partitions", r, func() (string, bool) {
		n, err := d.owned(t, r)
		if err != nil {
			return err.Error(), false
		}
		return fmt.Sprintf("%d", n), n > 0
	})
}

func (d *Deployment) owned(t testing.TB, r *replica.Replica) (int, error) {
	t.Helper()
	return r.Owned(t.Context(), d.topic("latest-delivery"))
}
