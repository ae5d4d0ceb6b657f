package kafka

import (
	"hash/crc32"

	"github.com/twmb/franz-go/pkg/kgo"
)

// JavaPartition returns the partition that Kafka's Java clients, and Debezium
// with them, choose for key among n.
func JavaPartition(key []byte, n int32) int32 {
	return int32(kgo.StickyKeyPartitioner(nil).ForTopic("").Partition(&kgo.Record{Key: key}, int(n)))
}

// CRC32Partition returns the partition that librdkafka's consistent
// partitioner chooses for key among n.
func CRC32Partition(key []byte, n int32) int32 {
	return int32(crc32.ChecksumIEEE(key) % uint32(n))
}
