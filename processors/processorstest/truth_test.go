package processorstest_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/processors/processorstest"
)

// The vectors are those of Kafka's own UtilsTest.testMurmur2.
func TestPartitionIsTheOneOfJava(t *testing.T) {
	t.Parallel()
	for key, hash := range map[string]int32{
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		require.Equal(t, hash&math.MaxInt32, processorstest.Partition([]byte(key), math.MaxInt32), key)
		require.Equal(t, (hash&math.MaxInt32)%12, processorstest.Partition([]byte(key), 12), key)
	}
}

// Markets must have what the suite expects of them.
func TestMarketsAreDeterministicAndDisjoint(t *testing.T) {
	t.Parallel()
	records := processorstest.Market(t, 1, 600)
	require.Equal(t, records, processorstest.Market(t, 1, 600))
	keys := map[string]bool{}
	for _, r := range records {
		keys[r.Key] = true
	}
	require.Len(t, keys, 100)
	for _, r := range processorstest.Market(t, 2, 600) {
		require.NotContains(t, keys, r.Key)
	}
}
