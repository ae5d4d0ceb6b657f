package exactlyonce

import (
	"testing"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
)

// The vectors are Kafka's own, from the Java client's UtilsTest.
func TestMurmur2IsJavas(t *testing.T) {
	for key, want := range map[string]int32{
		"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536,
		"a-little-bit-longer-string":                       -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		require.Equal(t, want, int32(murmur2([]byte(key))), key)
	}
}

// Each hash agrees with the client that it is named for.
func TestHashersAgreeWithTheirClients(t *testing.T) {
	for h, constructor := range map[Hasher]sarama.PartitionerConstructor{
		Murmur2: sarama.NewMurmur2Partitioner, FNV1a: sarama.NewHashPartitioner, CRC32: sarama.NewConsistentCRCHashPartitioner,
	} {
		client, ours := constructor("t"), h.Partitioner()("t")
		for i := range 1000 {
			m := &sarama.ProducerMessage{Key: sarama.StringEncoder(string(rune('a'+i%26)) + string(rune(0xac00+i)))}
			want, err := client.Partition(m, 12)
			require.NoError(t, err)
			got, err := ours.Partition(m, 12)
			require.NoError(t, err)
			require.Equal(t, want, got, "%s of key %s", h, m.Key)
		}
	}
}

func TestPinnedRecordsKeepTheirPartition(t *testing.T) {
	p, err := Murmur2.Partitioner()("t").Partition(&sarama.ProducerMessage{Key: sarama.StringEncoder("x"), Metadata: ToPartition(7)}, 12)
	require.NoError(t, err)
	require.Equal(t, int32(7), p)
}

func TestUnknownHasher(t *testing.T) {
	require.EqualError(t, Hasher("md5").Validate(), `unknown key partitioner "md5": want one of [murmur2 crc32 fnv1a]`)
	require.NoError(t, Murmur2.Validate())
}
