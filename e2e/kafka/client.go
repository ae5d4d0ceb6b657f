package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Client talks to one cluster. Close it after use.
type Client struct {
	seeds []string
	kgo   *kgo.Client
}

// Connect returns a client of the brokers at addresses, separated by commas.
func Connect(addresses string) (*Client, error) {
	seeds := strings.Split(addresses, ",")
	cl, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MetadataMinAge(100*time.Millisecond), kgo.ProducerBatchCompression(kgo.Lz4Compression()))
	if err != nil {
		return nil, fmt.Errorf("making a kafka client: %w", err)
	}
	return &Client{seeds: seeds, kgo: cl}, nil
}

// Close ends the client.
func (c *Client) Close() { c.kgo.Close() }

// Topic describes a topic to be made.
type Topic struct {
	Name       string
	Partitions int32
	Replicas   int16 // 0 means 1
	Configs    map[string]string
}

// DeleteTopic deletes a topic.
func (c *Client) DeleteTopic(ctx context.Context, topic string) error {
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis = 15000
	req.TopicNames = []string{topic}
	t := kmsg.NewDeleteTopicsRequestTopic()
	t.Topic = &topic
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, c.kgo)
	if err != nil {
		return fmt.Errorf("deleting topic %s: %w", topic, err)
	}
	for _, t := range resp.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return fmt.Errorf("deleting topic %s: %w", topic, err)
		}
	}
	return nil
}

// CreateTopics makes topics, and returns once every broker that answers tells of
// them.
func (c *Client) CreateTopics(ctx context.Context, topics ...Topic) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 15000
	for _, t := range topics {
		rt := kmsg.NewCreateTopicsRequestTopic()
		rt.Topic, rt.NumPartitions, rt.ReplicationFactor = t.Name, t.Partitions, max(1, t.Replicas)
		for k, v := range t.Configs {
			rc := kmsg.NewCreateTopicsRequestTopicConfig()
			rc.Name, rc.Value = k, new(v)
			rt.Configs = append(rt.Configs, rc)
		}
		req.Topics = append(req.Topics, rt)
	}
	resp, err := req.RequestWith(ctx, c.kgo)
	if err != nil {
		return fmt.Errorf("creating topics: %w", err)
	}
	var errs []error
	for _, t := range resp.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			errs = append(errs, fmt.Errorf("creating topic %s: %w", t.Topic, err))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for _, b := range c.kgo.DiscoveredBrokers() {
		if err := awaitTopics(ctx, b, topics); err != nil {
			return err
		}
	}
	return nil
}

// awaitTopics waits until one broker tells of topics, or does not answer.
func awaitTopics(ctx context.Context, b *kgo.Broker, topics []Topic) error {
	req := kmsg.NewPtrMetadataRequest()
	for _, t := range topics {
		rt := kmsg.NewMetadataRequestTopic()
		rt.Topic = new(t.Name)
		req.Topics = append(req.Topics, rt)
	}
	for {
		resp, err := req.RequestWith(ctx, b)
		if err != nil && ctx.Err() == nil {
			return nil // it is down, and will know when it comes back
		}
		if err == nil && !slices.ContainsFunc(resp.Topics, func(t kmsg.MetadataResponseTopic) bool { return t.ErrorCode != 0 }) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for new topics: %w", ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Partitions returns the number of partitions of topic.
func (c *Client) Partitions(ctx context.Context, topic string) (int32, error) {
	req := kmsg.NewPtrMetadataRequest()
	rt := kmsg.NewMetadataRequestTopic()
	rt.Topic = new(topic)
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(ctx, c.kgo)
	if err != nil {
		return 0, fmt.Errorf("describing topic %s: %w", topic, err)
	}
	if err := kerr.ErrorForCode(resp.Topics[0].ErrorCode); err != nil {
		return 0, fmt.Errorf("describing topic %s: %w", topic, err)
	}
	return int32(len(resp.Topics[0].Partitions)), nil
}

// InSync reports whether every replica of every partition of all topics is in
// sync, Kafka's own topics included; if not, state says which is not.
func (c *Client) InSync(ctx context.Context) (inSync bool, state string, err error) {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = nil // all
	resp, err := req.RequestWith(ctx, c.kgo)
	if err != nil {
		return false, "", fmt.Errorf("describing all topics: %w", err)
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if len(p.ISR) < len(p.Replicas) {
				return false, fmt.Sprintf("topic %s partition %d: in sync %v of %v", *t.Topic, p.Partition, p.ISR, p.Replicas), nil
			}
		}
	}
	return true, "", nil
}

// DeleteRecords makes the log of a partition begin at offset, as retention does.
func (c *Client) DeleteRecords(ctx context.Context, topic string, partition int32, offset int64) error {
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.TimeoutMillis = 15000
	rt := kmsg.NewDeleteRecordsRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewDeleteRecordsRequestTopicPartition()
	rp.Partition, rp.Offset = partition, offset
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(ctx, c.kgo)
	if err != nil {
		return fmt.Errorf("deleting records of topic %s: %w", topic, err)
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return fmt.Errorf("deleting records of topic %s partition %d: %w", topic, p.Partition, err)
			}
		}
	}
	return nil
}

// Isolation says which end of a partition is meant.
type Isolation int8

// The ends: all that was written, and what read_committed readers can see.
const (
	Uncommitted Isolation = 0
	Committed   Isolation = 1
)

// Ends returns the end offset of each partition of topic.
func (c *Client) Ends(ctx context.Context, topic string, isolation Isolation) ([]int64, error) {
	n, err := c.Partitions(ctx, topic)
	if err != nil {
		return nil, err
	}
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.IsolationLevel = -1, int8(isolation)
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic = topic
	for p := range n {
		rp := kmsg.NewListOffsetsRequestTopicPartition()
		rp.Partition, rp.Timestamp = p, -1
		rt.Partitions = append(rt.Partitions, rp)
	}
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(ctx, c.kgo)
	if err != nil {
		return nil, fmt.Errorf("listing the ends of topic %s: %w", topic, err)
	}
	ends := make([]int64, n)
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return nil, fmt.Errorf("listing the ends of topic %s partition %d: %w", topic, p.Partition, err)
			}
			ends[p.Partition] = p.Offset
		}
	}
	return ends, nil
}

// Offsets returns the committed offset of group in each of the n partitions of
// topic, -1 where there is none.
func (c *Client) Offsets(ctx context.Context, group, topic string, n int32) ([]int64, error) {
	req := kmsg.NewPtrOffsetFetchRequest()
	rg := kmsg.NewOffsetFetchRequestGroup()
	rg.Group = group
	gt := kmsg.NewOffsetFetchRequestGroupTopic()
	gt.Topic = topic
	for p := range n {
		gt.Partitions = append(gt.Partitions, p)
	}
	rg.Topics = append(rg.Topics, gt)
	req.Groups = append(req.Groups, rg)
	req.RequireStable = true
	resp, err := req.RequestWith(ctx, c.kgo)
	if err != nil {
		return nil, fmt.Errorf("fetching the offsets of group %s: %w", group, err)
	}
	offsets := make([]int64, n)
	for i := range offsets {
		offsets[i] = -1
	}
	for _, g := range resp.Groups {
		if err := kerr.ErrorForCode(g.ErrorCode); err != nil {
			return nil, fmt.Errorf("fetching the offsets of group %s: %w", group, err)
		}
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					return nil, fmt.Errorf("fetching the offsets of group %s partition %d: %w", group, p.Partition, err)
				}
				offsets[p.Partition] = p.Offset
			}
		}
	}
	return offsets, nil
}
