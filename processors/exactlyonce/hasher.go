package exactlyonce

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"slices"

	"github.com/IBM/sarama"
)

// Hasher names a key hash: which partition a record goes to by its key.
type Hasher string

// The key hashes of Kafka's clients.
const (
	Murmur2 Hasher = "murmur2" // the Java client, hence Debezium; sarama, librdkafka and franz-go can be told to use it
	CRC32   Hasher = "crc32"   // librdkafka's default
	FNV1a   Hasher = "fnv1a"   // sarama's and goka's default
)

// Hashers returns all key hashes.
func Hashers() []Hasher { return []Hasher{Murmur2, CRC32, FNV1a} }

// Validate reports a name that is no key hash.
func (h Hasher) Validate() error {
	if slices.Contains(Hashers(), h) {
		return nil
	}
	return fmt.Errorf("unknown key partitioner %q: want one of %v", string(h), Hashers())
}

// Partition returns the partition of key among n, as the client that the hash
// is named for computes it.
func (h Hasher) Partition(key []byte, n int32) int32 {
	switch h {
	case CRC32:
		return int32(crc32.ChecksumIEEE(key) % uint32(n))
	case FNV1a:
		f := fnv.New32a()
		_, _ = f.Write(key) // never fails
		p := int32(f.Sum32()) % n
		if p < 0 {
			p = -p // sarama's way; the Java client masks the sign bit instead
		}
		return p
	default:
		return int32(murmur2(key)&0x7fffffff) % n
	}
}

// murmur2 is Kafka's variant of MurmurHash2: org.apache.kafka.common.utils.Utils.
func murmur2(d []byte) uint32 {
	const m = 0x5bd1e995
	h := uint32(0x9747b28c) ^ uint32(len(d))
	for ; len(d) >= 4; d = d[4:] {
		k := binary.LittleEndian.Uint32(d) * m
		k = (k ^ k>>24) * m
		h = h*m ^ k
	}
	switch len(d) {
	case 3:
		h ^= uint32(d[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(d[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(d[0])) * m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}

// Partitioner is a sarama partitioner that sends a record to the partition in
// its Metadata, if that is a [ToPartition], and else where h sends its key.
func (h Hasher) Partitioner() sarama.PartitionerConstructor {
	return func(string) sarama.Partitioner { return partitioner{h} }
}

// ToPartition pins a record: it is the Metadata of its sarama.ProducerMessage.
type ToPartition int32

type partitioner struct{ hasher Hasher }

// Partition implements sarama.Partitioner.
func (p partitioner) Partition(m *sarama.ProducerMessage, n int32) (int32, error) {
	if to, ok := m.Metadata.(ToPartition); ok {
		return int32(to), nil
	}
	if m.Key == nil {
		return 0, nil
	}
	key, err := m.Key.Encode()
	if err != nil {
		return 0, fmt.Errorf("encoding record key: %w", err)
	}
	return p.hasher.Partition(key, n), nil
}

// RequiresConsistency implements sarama.Partitioner.
func (partitioner) RequiresConsistency() bool { return true }
