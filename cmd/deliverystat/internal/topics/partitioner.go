package topics

import (
	"context"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"golang.org/x/sync/errgroup"

	"deliverystat/processors/exactlyonce"
)

// Sample bounds: enough keys to tell a hash, in little time.
const (
	sampleRecords = 1000 // of each partition
	sampleTime    = 10 * time.Second
	leastKeys     = 3 // fewer say nothing: they may be strays
)

// Placement says how many of the keys that were looked at lie where a hash puts
// them.
type Placement struct {
	Keys  int
	Right map[exactlyonce.Hasher]int
}

// Place judges keys by the partition that they were found in.
func Place(keys map[string]int32, partitions int32) Placement {
	p := Placement{Keys: len(keys), Right: map[exactlyonce.Hasher]int{}}
	for key, partition := range keys {
		for _, h := range exactlyonce.Hashers() {
			if h.Partition([]byte(key), partitions) == partition {
				p.Right[h]++
			}
		}
	}
	return p
}

// Contradicts reports whether most keys lie elsewhere than hasher says, and
// which hash puts all but a few where they are, or "".
func (p Placement) Contradicts(hasher exactlyonce.Hasher) (contradicts bool, better exactlyonce.Hasher) {
	if p.Keys < leastKeys || 2*p.Right[hasher] >= p.Keys {
		return false, ""
	}
	for _, h := range exactlyonce.Hashers() {
		if 10*p.Right[h] >= 9*p.Keys {
			return true, h
		}
	}
	return true, ""
}

// SampleKeys returns keys from the beginning of each partition of a topic, by
// the partition that they lie in. It reads committed records only, and stops
// early rather than wait.
func SampleKeys(ctx context.Context, client sarama.Client, topic string, partitions int32) (map[string]int32, error) {
	ctx, cancel := context.WithTimeout(ctx, sampleTime)
	defer cancel()
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return nil, fmt.Errorf("sampling keys of %s: %w", topic, err)
	}
	defer func() { _ = consumer.Close() }() // only read from
	found := make([][]string, partitions)
	var group errgroup.Group
	for p := range partitions {
		group.Go(func() error {
			keys, err := samplePartition(ctx, client, consumer, topic, p)
			found[p] = keys
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("sampling keys of %s: %w", topic, err)
	}
	keys := map[string]int32{}
	for p, list := range found {
		for _, key := range list {
			keys[key] = int32(p)
		}
	}
	return keys, nil
}

func samplePartition(ctx context.Context, client sarama.Client, consumer sarama.Consumer, topic string, partition int32) ([]string, error) {
	start, err := client.GetOffset(topic, partition, sarama.OffsetOldest)
	if err != nil {
		return nil, err
	}
	end, err := client.GetOffset(topic, partition, sarama.OffsetNewest)
	if err != nil {
		return nil, err
	}
	// Only what is certain to arrive is waited for: not transaction markers, and
	// not what compaction removed.
	visible, err := exactlyonce.VisibleEnd(ctx, client, topic, partition, start, min(end, start+sampleRecords))
	if err != nil || visible == start {
		return nil, err
	}
	records, err := consumer.ConsumePartition(topic, partition, start)
	if err != nil {
		return nil, err
	}
	defer func() { _ = records.Close() }() // only read from
	var keys []string
	for {
		select {
		case m := <-records.Messages():
			if m.Key != nil {
				keys = append(keys, string(m.Key))
			}
			if m.Offset >= visible-1 {
				return keys, nil
			}
		case err := <-records.Errors():
			return nil, err
		case <-ctx.Done():
			return keys, nil
		}
	}
}
