package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	goleak.VerifyTestMain(m,
		// sarama counts with go-metrics, whose one ticker is never stopped.
		goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"),
		// A closed LevelDB drains its buffers for a second more.
		goleak.IgnoreTopFunction("github.com/syndtr/goleveldb/leveldb.(*DB).mpoolDrain"))
}

// outcome is what an invocation left.
type outcome struct {
	code           int
	stdout, stderr string
}

// lines are what was printed to stderr.
func (o outcome) lines() []string {
	if o.stderr == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(o.stderr, "\n"), "\n")
}

// invoke runs a command to its end.
func invoke(t *testing.T, args ...string) outcome {
	t.Helper()
	return invokeWith(t, nil, args...)
}

func invokeWith(t *testing.T, env []string, args ...string) outcome {
	t.Helper()
	var stdout, stderr buffer
	code := run(t.Context(), process{args: args, env: env, stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr})
	return outcome{code, stdout.String(), stderr.String()}
}

// background runs a command until stop is called, which returns what it left.
func background(t *testing.T, args ...string) (out *buffer, stop func() outcome) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr buffer
	done := make(chan int, 1) // the command may end before anybody waits
	go func() {
		done <- run(ctx, process{args: args, stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr})
	}()
	stop = sync.OnceValue(func() outcome {
		cancel()
		return outcome{<-done, stdout.String(), stderr.String()}
	})
	t.Cleanup(func() { stop() })
	return &stdout, stop
}

// buffer is a bytes.Buffer that may be read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// startBroker returns the address of a broker that lives as long as the test.
func startBroker(t *testing.T) string {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	return cluster.ListenAddrs()[0]
}

func write(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}
