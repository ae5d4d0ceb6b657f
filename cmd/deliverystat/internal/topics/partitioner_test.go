package topics_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/cmd/deliverystat/internal/topics"
	"deliverystat/processors/exactlyonce"
)

func placed(place func(key string) int32) map[string]int32 {
	keys := map[string]int32{}
	for i := range 100 {
		key := fmt.Sprintf("D-%06d", i)
		keys[key] = place(key)
	}
	return keys
}

func TestTheHashThatPlacedTheKeysIsFound(t *testing.T) {
	by := func(h exactlyonce.Hasher) func(string) int32 {
		return func(key string) int32 { return h.Partition([]byte(key), 8) }
	}
	roundRobin := func(key string) int32 { return int32(key[len(key)-1]) % 8 }
	for _, test := range []struct {
		name        string
		keys        map[string]int32
		contradicts bool
		better      exactlyonce.Hasher
	}{
		{"none", nil, false, ""},
		{"as configured", placed(by(exactlyonce.Murmur2)), false, ""},
		{"librdkafka", placed(by(exactlyonce.CRC32)), true, exactlyonce.CRC32},
		{"sarama", placed(by(exactlyonce.FNV1a)), true, exactlyonce.FNV1a},
		{"no known hash", placed(roundRobin), true, ""},
		{"one stray record", map[string]int32{"D-1": (exactlyonce.Murmur2.Partition([]byte("D-1"), 8) + 1) % 8}, false, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			contradicts, better := topics.Place(test.keys, 8).Contradicts(exactlyonce.Murmur2)

			require.Equal(t, test.contradicts, contradicts)
			require.Equal(t, test.better, better)
		})
	}
}
