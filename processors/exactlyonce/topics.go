package exactlyonce

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// cluster answers questions about topics, waiting out elections.
type cluster struct {
	sarama.Client

	mu  sync.Mutex
	ids map[string]string
}

func newCluster(c ClientConfig) (*cluster, error) {
	client, err := sarama.NewClient(c.Brokers, c.Sarama())
	if err != nil {
		return nil, fmt.Errorf("connecting to Kafka: %w", err)
	}
	return &cluster{Client: client, ids: map[string]string{}}, nil
}

// admin is closed together with the client.
func (c *cluster) admin() (sarama.ClusterAdmin, error) {
	return sarama.NewClusterAdminFromClient(c.Client)
}

// topicID returns Kafka's UUID of a topic, in hex. It is asked for once in a
// session.
func (c *cluster) topicID(topic string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id, ok := c.ids[topic]; ok {
		return id, nil
	}
	id, err := c.lookUpTopicID(topic)
	if err == nil {
		c.ids[topic] = id
	}
	return id, err
}

// forgetTopicIDs makes topicID ask again: a topic may be created anew between
// two sessions.
func (c *cluster) forgetTopicIDs() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.ids)
}

func (c *cluster) lookUpTopicID(topic string) (string, error) {
	admin, err := c.admin()
	if err != nil {
		return "", err
	}
	found, err := admin.DescribeTopics([]string{topic})
	if err != nil {
		return "", fmt.Errorf("describing topic %s: %w", topic, err)
	}
	if len(found) != 1 {
		return "", fmt.Errorf("describing topic %s: %d answers", topic, len(found))
	}
	switch err := found[0].Err; {
	case errors.Is(err, sarama.ErrUnknownTopicOrPartition):
		return "", fmt.Errorf("topic %s does not exist", topic)
	case !errors.Is(err, sarama.ErrNoError):
		return "", fmt.Errorf("describing topic %s: %w", topic, err)
	}
	return hex.EncodeToString(found[0].Uuid[:]), nil
}

// topicConfig returns the value of one topic setting.
func (c *cluster) topicConfig(topic, name string) (string, error) {
	admin, err := c.admin()
	if err != nil {
		return "", err
	}
	entries, err := admin.DescribeConfig(sarama.ConfigResource{ //nolint:staticcheck // one resource is all that is asked for
		Type: sarama.TopicResource, Name: topic, ConfigNames: []string{name},
	})
	if err != nil {
		return "", fmt.Errorf("describing the configuration of topic %s: %w", topic, err)
	}
	for _, e := range entries {
		if e.Name == name {
			return e.Value, nil
		}
	}
	return "", fmt.Errorf("topic %s has no setting %s", topic, name)
}

// tombstoneRetention returns delete.retention.ms of a table topic.
func (c *cluster) tombstoneRetention(topic string) (time.Duration, error) {
	v, err := c.topicConfig(topic, "delete.retention.ms")
	if err != nil {
		return 0, err
	}
	ms, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("delete.retention.ms of topic %s: %w", topic, err)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// logOffset asks the leader for the offset at a time, or at
// sarama.OffsetOldest or sarama.OffsetNewest.
func (c *cluster) logOffset(ctx context.Context, topic string, partition int32, at int64) (int64, error) {
	for try := 0; ; try++ {
		o, err := c.GetOffset(topic, partition, at)
		if err == nil {
			return o, nil
		}
		if try == 50 {
			return 0, fmt.Errorf("offset of %s/%d: %w", topic, partition, err)
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return 0, err
		}
		_ = c.RefreshMetadata(topic) // the next try reports what matters
	}
}

// usable gives an unusableError for a store that may not be used: rows that
// were deleted meanwhile would come back if their tombstones are gone already.
// The age of the store is the broker's time of the record at its offset, and
// half the tombstone retention is the bound.
func (c *cluster) usable(ctx context.Context, topic string, partition int32) func(storeMeta) error {
	return func(m storeMeta) error {
		end, err := c.logOffset(ctx, topic, partition, sarama.OffsetNewest)
		if err != nil {
			return err
		}
		if m.Offset >= end {
			return &unusableError{fmt.Sprintf("its offset %d is beyond the end %d of the log", m.Offset, end)}
		}
		retention, err := c.tombstoneRetention(topic)
		if err != nil {
			return err
		}
		young := time.Now().Add(-retention / 2).UnixMilli()
		first, err := c.GetOffset(topic, partition, young)
		if err != nil {
			return fmt.Errorf("offset of %s/%d at a time: %w", topic, partition, err)
		}
		if first >= 0 && first <= m.Offset {
			return nil
		}
		// The record at its offset is old. That matters only if others follow.
		next, err := VisibleEnd(ctx, c, topic, partition, m.Offset+1, end)
		if err != nil {
			return err
		}
		if next > m.Offset+1 {
			return &unusableError{fmt.Sprintf("its offset %d is older than half the tombstone retention of %v", m.Offset, retention)}
		}
		return nil
	}
}

// topicManager answers goka's questions about topics and creates nothing. Its
// newest offset is the end of the visible data, because goka's recovery waits
// for the record at newest-1, and a transaction marker never arrives.
type topicManager struct {
	*cluster
	// end returns the visible end of a table partition below the high watermark.
	end func(topic string, partition int32, oldest, hwm int64) (int64, error)
	ctx context.Context //nolint:containedctx // goka's interface has none
}

// Close implements goka.TopicManager. The client has another owner.
func (*topicManager) Close() error { return nil }

// Partitions implements goka.TopicManager.
func (t *topicManager) Partitions(topic string) ([]int32, error) {
	return t.cluster.Partitions(topic)
}

// EnsureTopicExists implements goka.TopicManager.
func (t *topicManager) EnsureTopicExists(topic string, n, _ int, _ map[string]string) error {
	parts, err := t.cluster.Partitions(topic)
	if err != nil {
		return fmt.Errorf("topic %s: %w", topic, err)
	}
	if len(parts) != n {
		return fmt.Errorf("topic %s has %d partitions, want %d", topic, len(parts), n)
	}
	return nil
}

// EnsureStreamExists implements goka.TopicManager.
func (t *topicManager) EnsureStreamExists(topic string, n int) error {
	return t.EnsureTopicExists(topic, n, 0, nil)
}

// EnsureTableExists implements goka.TopicManager.
func (t *topicManager) EnsureTableExists(topic string, n int) error {
	if err := t.EnsureTopicExists(topic, n, 0, nil); err != nil {
		return err
	}
	policy, err := t.topicConfig(topic, "cleanup.policy")
	if err != nil {
		return err
	}
	if policy != "compact" {
		return fmt.Errorf("table topic %s has cleanup.policy=%s, want compact", topic, policy)
	}
	return nil
}

// GetOffset implements goka.TopicManager.
func (t *topicManager) GetOffset(topic string, partition int32, at int64) (int64, error) {
	o, err := t.logOffset(t.ctx, topic, partition, at)
	if err != nil || at != sarama.OffsetNewest {
		return o, err
	}
	oldest, err := t.logOffset(t.ctx, topic, partition, sarama.OffsetOldest)
	if err != nil {
		return 0, err
	}
	return t.end(topic, partition, oldest, o)
}
