//go:build e2e

package e2e_test

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/e2e/process"
	"deliverystat/e2e/replica"
)

// lines splits what a command printed into lines that say something.
func lines(output string) []string {
	var said []string
	for line := range strings.Lines(output) {
		if strings.TrimSpace(line) != "" {
			said = append(said, strings.TrimSpace(line))
		}
	}
	return said
}

func command(t *testing.T, args ...string) replica.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	result, err := binary.Run(ctx, nil, args...)
	require.NoError(t, err)
	return result
}

func TestAnUnknownFlagIsOneLine(t *testing.T) {
	got := command(t, "serve", "--kafka-brokers=127.0.0.1:1", "--alowed-lateness=1h")

	require.Equal(t, 2, got.ExitCode)
	require.Len(t, lines(got.Stderr), 1, got.Stderr)
	require.Contains(t, got.Stderr, "--alowed-lateness")
	require.Empty(t, got.Stdout)
}

// Whoever mends the first bad value should not learn of the second one only
// then.
func TestAllBadValuesAreReportedAtOnce(t *testing.T) {
	got := command(t, "serve", "--allowed-lateness=-1h", "--roles=processors,coffee", "--commit-interval=often", "--order-by=luck")

	require.Equal(t, 2, got.ExitCode)
	for _, flag := range []string{"--kafka-brokers", "--allowed-lateness", "--roles", "--commit-interval", "--order-by"} {
		require.Contains(t, got.Stderr, flag)
	}
	require.Len(t, lines(got.Stderr), 5, "one line each:\n%s", got.Stderr)
}

// Commands that end by themselves do not wait for a broker: they say that it
// is not there.
func TestOneShotCommandsWithoutABroker(t *testing.T) {
	ports, err := process.FreePorts(1)
	require.NoError(t, err)
	nobody := "127.0.0.1:" + strconv.Itoa(ports[0])
	for _, args := range [][]string{
		{"topics", "check"},
		{"topics", "create", "--replication-factor=1"},
		{"verify"},
		{"explain", "D-1"},
		{"dead-letters", "list"},
		{"dead-letters", "replay"},
		{"simulate", "--events=1", "--deliveries=1"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			got := command(t, append(args, "--kafka-brokers="+nobody, "--allow-unsafe")...)

			require.Equal(t, 3, got.ExitCode, got.Stderr)
			require.Len(t, lines(got.Stderr), 1, got.Stderr)
			require.Contains(t, got.Stderr, nobody)
		})
	}
}

// The port of the API or of the admin server is taken: serve ends, and names
// the address.
func TestATakenPortIsNamed(t *testing.T) {
	d := install(t)
	for _, flag := range []string{"--http-address", "--admin-address"} {
		t.Run(flag, func(t *testing.T) {
			taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer func() { require.NoError(t, taken.Close()) }()
			free, err := process.FreePorts(1)
			require.NoError(t, err)
			other := map[string]string{"--http-address": "--admin-address", "--admin-address": "--http-address"}[flag]
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()

			got, err := binary.Run(ctx, nil, append(d.args("serve"), "--allow-unsafe", "--state-dir="+t.TempDir(), "--instance-id=one",
				"--log-level=error", flag+"="+taken.Addr().String(), other+"=127.0.0.1:"+strconv.Itoa(free[0]))...)

			require.NoError(t, err)
			require.Equal(t, 2, got.ExitCode, got.Stderr)
			require.Len(t, lines(got.Stderr), 1, got.Stderr)
			require.Contains(t, got.Stderr, taken.Addr().String())
			require.Contains(t, got.Stderr, "in use")
		})
	}
}

func TestVersionNamesTheLibraries(t *testing.T) {
	got := command(t, "version")

	require.Zero(t, got.ExitCode)
	for _, name := range []string{"deliverystat", "go1.", "goka", "sarama"} {
		require.Contains(t, got.Stdout, name)
	}
}

// SIGTERM ends a replica cleanly: exit code 0, and its successor goes on from
// where it stopped.
func TestATerminatedReplicaEndsCleanly(t *testing.T) {
	d := install(t)
	r := d.serve("one")
	waitReady(t, r)
	d.produce(d.record(idIn(1, 0), "CREATED", 0))
	d.requireStatus(r, idIn(1, 0), "CREATED")

	began := time.Now()
	code, err := r.Stop()

	require.NoError(t, err)
	require.Zero(t, code)
	t.Logf("ended within %s", time.Since(began).Round(time.Millisecond))
	d.produce(d.record(idIn(1, 0), "DELIVERED", 1))
	require.NoError(t, r.Start())
	waitReady(t, r)
	d.requireExact(truth{Closed: map[string]int64{"DELIVERED": 1}}, r)
}
