package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"golang.org/x/sync/errgroup"
)

// floor consumes every event of a topic once, decodes it, and ends.
func floor(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("floor", flag.ContinueOnError)
	brokers := flags.String("brokers", "", "brokers, separated by commas")
	topic := flags.String("topic", "", "topic to consume")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("reading flags: %w", err)
	}
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V2_8_0_0
	cfg.ChannelBufferSize = 4096
	cfg.Consumer.Fetch.Default = 4 << 20
	client, err := sarama.NewClient(strings.Split(*brokers, ","), cfg)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	defer func() { _ = client.Close() }()
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return fmt.Errorf("making a consumer: %w", err)
	}
	partitions, err := client.Partitions(*topic)
	if err != nil {
		return fmt.Errorf("listing partitions: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range partitions {
		end, err := client.GetOffset(*topic, p, sarama.OffsetNewest)
		if err != nil {
			return fmt.Errorf("listing the end of partition %d: %w", p, err)
		}
		if end == 0 {
			continue
		}
		messages, err := consumer.ConsumePartition(*topic, p, sarama.OffsetOldest)
		if err != nil {
			return fmt.Errorf("consuming partition %d: %w", p, err)
		}
		group.Go(func() error { return decodeAll(ctx, messages.Messages(), end) })
	}
	return group.Wait()
}

// floorEvent is as much of an event as any consumer that counts statuses needs.
type floorEvent struct {
	DeliveryID string    `json:"delivery_id"`
	Status     string    `json:"status"`
	OccurredAt eventTime `json:"occurred_at"`
}

// eventTime is a time that some sources write as text, others as Unix
// milliseconds.
type eventTime struct{ time.Time }

// UnmarshalJSON implements json.Unmarshaler.
func (t *eventTime) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return t.Time.UnmarshalJSON(b)
	}
	ms, err := strconv.ParseInt(string(b), 10, 64)
	t.Time = time.UnixMilli(ms)
	return err
}

func decodeAll(ctx context.Context, messages <-chan *sarama.ConsumerMessage, end int64) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case m := <-messages:
			var e floorEvent
			// The input holds no malformed events: an error is one of the bench.
			if err := json.Unmarshal(m.Value, &e); err != nil {
				return fmt.Errorf("decoding offset %d of partition %d: %w", m.Offset, m.Partition, err)
			}
			if m.Offset+1 >= end {
				return nil
			}
		}
	}
}
