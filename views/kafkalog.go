package views

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"golang.org/x/sync/errgroup"

	"deliverystat/processors/exactlyonce"
)

// requestTimeout bounds each request of a KafkaLog, and so how long its user
// takes to stop.
const requestTimeout = 5 * time.Second

// errRecreated says that the topic was created anew while it was looked at.
var errRecreated = errors.New("the topic was created anew during the look-up")

// KafkaLog is a topic on Kafka. It is used by one goroutine.
type KafkaLog struct {
	config exactlyonce.ClientConfig
	topic  string
	client sarama.Client // nil until the first answer
	// id and partitions are as of the last look at the topic.
	id         string
	partitions int32
}

// NewKafkaLog makes a Log of topic. It connects when it is first asked, so the
// brokers may be absent before.
func NewKafkaLog(config exactlyonce.ClientConfig, topic string) *KafkaLog {
	return &KafkaLog{config: config, topic: topic}
}

// Close implements Log.
func (l *KafkaLog) Close() error {
	if l.client == nil {
		return nil
	}
	err := l.client.Close()
	l.client = nil
	return err
}

// Probe implements Log with one request per leader for each kind of end. It
// looks at the topic's ID before and after, so that no end is ever taken for
// one of another life of the topic.
func (l *KafkaLog) Probe(ctx context.Context) (*Probe, error) {
	p, err := l.probe(ctx)
	if err != nil && l.client != nil {
		l.id = ""
		_ = l.client.RefreshMetadata(l.topic) // the next probe reports what matters
	}
	return p, err
}

func (l *KafkaLog) probe(ctx context.Context) (*Probe, error) {
	if err := l.connect(); err != nil {
		return nil, err
	}
	if l.id == "" {
		if err := l.look(); err != nil {
			return nil, err
		}
	}
	p := &Probe{TopicID: l.id}
	n := l.partitions
	var err error
	if p.High, err = l.ends(ctx, n, sarama.OffsetNewest, sarama.ReadUncommitted); err != nil {
		return nil, err
	}
	p.At = time.Now()
	if p.Stable, err = l.ends(ctx, n, sarama.OffsetNewest, sarama.ReadCommitted); err != nil {
		return nil, err
	}
	if err := l.look(); err != nil {
		return nil, err
	}
	if p.TopicID != l.id || n != l.partitions {
		return nil, errRecreated
	}
	return p, nil
}

// VisibleEnd implements Log. Records that the log has dropped are not visible.
func (l *KafkaLog) VisibleEnd(ctx context.Context, partition int32, from, end int64) (int64, error) {
	if err := l.connect(); err != nil {
		return 0, err
	}
	start, err := l.client.GetOffset(l.topic, partition, sarama.OffsetOldest)
	if err != nil {
		return 0, fmt.Errorf("asking for the start of %s/%d: %w", l.topic, partition, err)
	}
	first := max(from, start)
	visible, err := exactlyonce.VisibleEnd(ctx, l.client, l.topic, partition, first, end)
	if err != nil {
		return 0, err
	}
	if visible == first {
		return from, nil
	}
	return visible, nil
}

func (l *KafkaLog) connect() error {
	if l.client != nil {
		return nil
	}
	config := l.config.Sarama()
	config.Net.DialTimeout = requestTimeout
	config.Net.ReadTimeout = requestTimeout
	config.Net.WriteTimeout = requestTimeout
	// A probe that fails is repeated soon: no patience within it.
	config.Metadata.Retry.Max = 1
	config.Metadata.Retry.BackoffFunc = nil
	config.Metadata.Retry.Backoff = 100 * time.Millisecond
	client, err := sarama.NewClient(l.config.Brokers, config)
	if err != nil {
		return fmt.Errorf("connecting to Kafka: %w", err)
	}
	l.client = client
	return nil
}

// look asks for the topic's ID and number of partitions.
func (l *KafkaLog) look() error {
	broker := l.client.LeastLoadedBroker()
	if broker == nil {
		return fmt.Errorf("describing topic %s: %w", l.topic, sarama.ErrOutOfBrokers)
	}
	request := sarama.NewMetadataRequest(l.client.Config().Version, []string{l.topic})
	response, err := broker.GetMetadata(request)
	if err != nil {
		return fmt.Errorf("describing topic %s: %w", l.topic, err)
	}
	if len(response.Topics) != 1 {
		return fmt.Errorf("describing topic %s: %d answers", l.topic, len(response.Topics))
	}
	topic := response.Topics[0]
	if !errors.Is(topic.Err, sarama.ErrNoError) {
		return fmt.Errorf("describing topic %s: %w", l.topic, topic.Err)
	}
	l.id = hex.EncodeToString(topic.Uuid[:])
	l.partitions = int32(len(topic.Partitions))
	return nil
}

// ends asks the leader of each of n partitions for an offset, all leaders at
// once.
func (l *KafkaLog) ends(ctx context.Context, n int32, at int64, isolation sarama.IsolationLevel) ([]int64, error) {
	requests := map[*sarama.Broker]*sarama.OffsetRequest{}
	for partition := range n {
		leader, err := l.client.Leader(l.topic, partition)
		if err != nil {
			return nil, fmt.Errorf("finding the leader of %s/%d: %w", l.topic, partition, err)
		}
		request := requests[leader]
		if request == nil {
			request = sarama.NewOffsetRequest(l.client.Config().Version)
			request.IsolationLevel = isolation
			requests[leader] = request
		}
		request.AddBlock(l.topic, partition, at, 1)
	}
	var mu sync.Mutex
	responses := make([]*sarama.OffsetResponse, 0, len(requests))
	group, _ := errgroup.WithContext(ctx)
	for leader, request := range requests {
		group.Go(func() error {
			response, err := leader.GetAvailableOffsets(request)
			if err != nil {
				_ = leader.Close() // opened again by the next look-up of the leader
				return fmt.Errorf("asking for the ends of %s: %w", l.topic, err)
			}
			mu.Lock()
			defer mu.Unlock()
			responses = append(responses, response)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return offsets(l.topic, n, responses)
}

// offsets collects the answers for n partitions.
func offsets(topic string, n int32, responses []*sarama.OffsetResponse) ([]int64, error) {
	out := make([]int64, n)
	for partition := range n {
		found := false
		for _, response := range responses {
			block := response.GetBlock(topic, partition)
			if block == nil {
				continue
			}
			if !errors.Is(block.Err, sarama.ErrNoError) {
				return nil, fmt.Errorf("asking for the end of %s/%d: %w", topic, partition, block.Err)
			}
			out[partition], found = block.Offset, true
		}
		if !found {
			return nil, fmt.Errorf("asking for the end of %s/%d: no answer", topic, partition)
		}
	}
	return out, nil
}
