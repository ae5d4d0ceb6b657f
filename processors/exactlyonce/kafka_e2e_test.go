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
	for _, b := range behaviour {
		t.Run(b.name, func(t *testing.T) {
			b.test(t, strings.Split(cluster.Addresses(), ","))
		})
	}
}
