package process_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/e2e/process"
)

func TestKillEndsTheWholeGroup(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	p, err := process.Start(log, nil, "sh", "-c", "sleep 1000 & echo child $!; wait")
	require.NoError(t, err)
	child := 0
	require.Eventually(t, func() bool {
		b, err := os.ReadFile(log)
		return err == nil && scan(string(b), &child)
	}, 10*time.Second, time.Millisecond, "the child never told its process ID")
	require.NoError(t, syscall.Kill(child, 0), "the child does not run")

	require.NoError(t, p.Kill())

	require.False(t, p.Running())
	require.Equal(t, -1, p.ExitCode())
	require.Eventually(t, func() bool { return gone(child) }, 10*time.Second, time.Millisecond, "the child outlived its group")
}

func TestStopWaitsForACleanEnd(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	p, err := process.Start(log, []string{"CODE=7"}, "sh", "-c", "trap 'exit $CODE' TERM; echo ready; while :; do sleep 0.01; done")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		b, err := os.ReadFile(log)
		return err == nil && string(b) == "ready\n"
	}, 10*time.Second, time.Millisecond)

	require.NoError(t, p.Stop(t.Context()))

	require.Equal(t, 7, p.ExitCode())
	require.NoError(t, p.Kill(), "killing an ended process is no error")
}

func TestStopKillsWhatDoesNotEnd(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	p, err := process.Start(log, nil, "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.01; done")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		b, err := os.ReadFile(log)
		return err == nil && string(b) == "ready\n"
	}, 10*time.Second, time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	require.ErrorIs(t, p.Stop(ctx), context.Canceled)

	require.False(t, p.Running())
}

func TestFreePortsAreDistinct(t *testing.T) {
	ports, err := process.FreePorts(20)
	require.NoError(t, err)
	seen := map[int]bool{}
	for _, port := range ports {
		seen[port] = true
		require.GreaterOrEqual(t, port, 20000)
		require.Less(t, port, 30000)
	}
	require.Len(t, seen, 20)
}
