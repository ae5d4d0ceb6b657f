//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deliverystat/e2e/broker"
	"deliverystat/e2e/kafka"
	"deliverystat/e2e/replica"
)

// What most tests share: one broker, told apart by topic prefixes, and one
// build of the binary.
var (
	shared *broker.Cluster
	binary replica.Binary
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "deliverystat-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	// E2E_BINARY tests a binary that was built before, a release for example;
	// E2E_RACE builds one that watches for data races.
	if binary = replica.Binary(os.Getenv("E2E_BINARY")); binary == "" {
		binary, err = replica.Build(ctx, dir, os.Getenv("E2E_RACE") != "")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if shared, err = broker.Start(ctx, dir, 1); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = shared.Close() }()
	code := m.Run()
	if code != 0 {
		keepLog(os.Stderr, "shared-broker", shared.LogFile(1))
	}
	return code
}

// keepLog copies a log to where it outlives the test, and says where.
func keepLog(to interface{ Write([]byte) (int, error) }, name, log string) {
	cache, err := broker.CacheDir()
	if err != nil {
		_, _ = fmt.Fprintln(to, err)
		return
	}
	b, err := os.ReadFile(log)
	if err != nil {
		_, _ = fmt.Fprintln(to, err)
		return
	}
	kept := filepath.Join(cache, "failed", strings.ReplaceAll(name, "/", "-")+".log")
	if err := os.MkdirAll(filepath.Dir(kept), 0o750); err != nil {
		_, _ = fmt.Fprintln(to, err)
		return
	}
	if err := os.WriteFile(kept, b, 0o600); err != nil {
		_, _ = fmt.Fprintln(to, err)
		return
	}
	_, _ = fmt.Fprintln(to, "log kept:", kept)
}

// connect returns a client of cluster that ends with the test.
func connect(t *testing.T, cluster *broker.Cluster) *kafka.Client {
	t.Helper()
	client, err := kafka.Connect(cluster.Addresses())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}
