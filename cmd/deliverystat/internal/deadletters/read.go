package deadletters

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/IBM/sarama"

	"deliverystat/processors/exactlyonce"
)

// Read yields the dead letters that read-committed readers can see when it is
// called and that were refused at since or later, in order of that time (within
// a partition in order of offset). An error is the last that is yielded.
func Read(ctx context.Context, client sarama.Client, topic string, since time.Time) iter.Seq2[*Letter, error] {
	return func(yield func(*Letter, error) bool) {
		merged, err := open(ctx, client, topic, since)
		defer merged.close()
		for err == nil {
			var m *sarama.ConsumerMessage
			if m, err = merged.next(ctx); m == nil {
				break
			}
			if l := FromRecord(m); !l.Time.Before(since) && !yield(l, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, fmt.Errorf("reading %s: %w", topic, err))
		}
	}
}

// source is one partition that is being read.
type source struct {
	records sarama.PartitionConsumer
	end     int64 // 1 + the offset of the last record to read, which exists
	head    *sarama.ConsumerMessage
	ended   bool
}

// merge reads partitions in order of time.
type merge struct {
	consumer sarama.Consumer
	sources  []*source
}

func open(ctx context.Context, client sarama.Client, topic string, since time.Time) (*merge, error) {
	m := &merge{}
	partitions, err := client.Partitions(topic)
	if err != nil {
		return m, err
	}
	if m.consumer, err = sarama.NewConsumerFromClient(client); err != nil {
		return m, err
	}
	for _, p := range partitions {
		start, end, err := bounds(ctx, client, topic, p, since)
		if err != nil {
			return m, err
		}
		if start == end {
			continue
		}
		records, err := m.consumer.ConsumePartition(topic, p, start)
		if err != nil {
			return m, err
		}
		s := &source{records: records, end: end}
		m.sources = append(m.sources, s)
		if err := s.advance(ctx); err != nil {
			return m, err
		}
	}
	return m, nil
}

// bounds returns the first offset at since or later and 1 + the last visible
// one; they are equal if there is nothing to read.
func bounds(ctx context.Context, client sarama.Client, topic string, p int32, since time.Time) (start, end int64, err error) {
	at := sarama.OffsetOldest
	if !since.IsZero() {
		at = since.UnixMilli()
	}
	if start, err = client.GetOffset(topic, p, at); err != nil || start < 0 { // -1: nothing so young
		return 0, 0, err
	}
	if end, err = client.GetOffset(topic, p, sarama.OffsetNewest); err != nil {
		return 0, 0, err
	}
	end, err = exactlyonce.VisibleEnd(ctx, client, topic, p, start, end)
	return start, end, err
}

// advance waits for the next record of s.
func (s *source) advance(ctx context.Context) error {
	s.head = nil
	if s.ended {
		return nil
	}
	select {
	case s.head = <-s.records.Messages():
		s.ended = s.head.Offset >= s.end-1
		return nil
	case err := <-s.records.Errors():
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// next returns the oldest record that was not returned yet, nil after the last.
func (m *merge) next(ctx context.Context) (*sarama.ConsumerMessage, error) {
	var oldest *source
	for _, s := range m.sources {
		if s.head != nil && (oldest == nil || s.head.Timestamp.Before(oldest.head.Timestamp)) {
			oldest = s
		}
	}
	if oldest == nil {
		return nil, nil //nolint:nilnil // there is no more
	}
	head := oldest.head
	return head, oldest.advance(ctx)
}

func (m *merge) close() {
	for _, s := range m.sources {
		_ = s.records.Close() // only read from
	}
	if m.consumer != nil {
		_ = m.consumer.Close() // as above
	}
}
