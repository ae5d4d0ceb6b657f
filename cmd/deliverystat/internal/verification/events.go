package verification

import (
	"context"
	"errors"
	"fmt"

	"github.com/IBM/sarama"
	"golang.org/x/sync/errgroup"

	"deliverystat/cmd/deliverystat/internal/exit"
	"deliverystat/codecs"
	"deliverystat/processors"
	"deliverystat/processors/audit"
)

// atOnce is how many partitions are replayed at the same time; the rows of each
// are in memory.
const atOnce = 8

// Events replays the input from offset 0 to a position of each partition, under
// the given settings.
func (s *Source) Events(ctx context.Context, client sarama.Client, targets []int64, settings *processors.Settings) (*Recount, error) {
	decoder, err := s.decoder(settings)
	if err != nil {
		return nil, err
	}
	for p := range targets {
		oldest, err := client.GetOffset(s.Topics.Events, int32(p), sarama.OffsetOldest)
		if err != nil {
			return nil, fmt.Errorf("asking for the start of %s/%d: %w", s.Topics.Events, p, err)
		}
		if oldest > 0 && targets[p] > 0 {
			return nil, exit.With(exit.Usage, fmt.Errorf(
				"replaying %s/%d: offset 0 is gone, the log begins at %d; verify --from=table still works", s.Topics.Events, p, oldest))
		}
	}
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return nil, fmt.Errorf("preparing to read %s: %w", s.Topics.Events, err)
	}
	defer func() { _ = consumer.Close() }() // only read from
	r := &Recount{Settings: settings, Parts: make([]audit.Counts, len(targets))}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for p, target := range targets {
		group.Go(func() (err error) {
			r.Parts[p], err = s.replay(ctx, consumer, int32(p), int32(len(targets)), target, decoder, settings)
			if err != nil {
				return fmt.Errorf("replaying %s/%d: %w", s.Topics.Events, p, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return r, nil
}

// decoder returns a decoder that reads the input as whoever wrote the table did.
func (s *Source) decoder(settings *processors.Settings) (*codecs.Decoder, error) {
	if settings.Mapping == "" {
		return s.Decoder.Native(), nil // as what is republished from sources
	}
	if settings.Mapping != s.Decoder.Mapping() {
		return nil, exit.With(exit.Usage, errors.New(
			"reading events: the table was written with another mapping of events; name its profile by --profile"))
	}
	return s.Decoder, nil
}

// replay applies one partition's records below target. The record before a
// position is always one that was read, so that its offset ends the replay.
func (s *Source) replay(ctx context.Context, consumer sarama.Consumer, p, partitions int32, target int64, decoder *codecs.Decoder, settings *processors.Settings) (audit.Counts, error) {
	replay := processors.NewReplay(settings)
	if target > 0 {
		var decoded codecs.Decoded
		err := s.read(ctx, consumer, p, 0, target, func(m *sarama.ConsumerMessage) {
			rec := record(m)
			decoder.Decode(rec, &decoded)
			replay.Apply(rec, &decoded, s.misplaced(m, partitions))
		})
		if err != nil {
			return nil, err
		}
	}
	counts := audit.Counts{}
	for _, scope := range replay.Counts() {
		counts.AddRow(scope.Scope, scope.Counts)
	}
	return counts, nil
}

// read calls each with the records of a partition of the input in [from, end),
// in order. The record before end must exist.
func (s *Source) read(ctx context.Context, consumer sarama.Consumer, p int32, from, end int64, each func(*sarama.ConsumerMessage)) error {
	records, err := consumer.ConsumePartition(s.Topics.Events, p, from)
	if err != nil {
		return err
	}
	defer func() { _ = records.Close() }() // only read from
	for {
		select {
		case m := <-records.Messages():
			if m.Offset < end {
				each(m)
			}
			if m.Offset >= end-1 {
				return nil
			}
		case err := <-records.Errors():
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// misplaced reports whether the key of m belongs to another partition.
func (s *Source) misplaced(m *sarama.ConsumerMessage, partitions int32) bool {
	return s.Client.Hasher.Partition(m.Key, partitions) != m.Partition
}

func record(m *sarama.ConsumerMessage) *codecs.Record {
	return &codecs.Record{
		Key:       string(m.Key),
		Value:     m.Value,
		Timestamp: processors.RecordTime(m.Timestamp),
		Headers: func() []codecs.Header {
			headers := make([]codecs.Header, 0, len(m.Headers))
			for _, h := range m.Headers {
				headers = append(headers, codecs.Header{Key: string(h.Key), Value: h.Value})
			}
			return headers
		},
	}
}
