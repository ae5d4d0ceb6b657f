//go:build e2e

package exactlyonce

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/e2e/broker"
)

func TestOnKafka(t *testing.T) {
	cluster, err := broker.Start(t.Context(), t.TempDir(), 1)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cluster.Close()) })
	brokers := strings.Split(cluster.Addresses(), ",")
	for _, b := range behaviour {
		t.Run(b.name, func(t *testing.T) { b.test(t, brokers) })
	}
	// The fake broker has no log cleaner, and its markers are not Kafka's.
	t.Run("the visible end equals what readers see", func(t *testing.T) { visibleEndEqualsReaders(t, brokers) })
	t.Run("compaction past a standby", func(t *testing.T) { compactionPassesAStandby(t, brokers) })
	t.Run("the visible end of a compacted tail", func(t *testing.T) { visibleEndOfCompactedTail(t, brokers) })
}
