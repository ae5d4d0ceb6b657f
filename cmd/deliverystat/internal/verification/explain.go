package verification

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"

	"github.com/IBM/sarama"

	"deliverystat/cmd/deliverystat/internal/exit"
	"deliverystat/codecs"
	"deliverystat/processors/audit"
	"deliverystat/processors/exactlyonce"
)

// Explained is what the whole input partition of a delivery says of it, and
// whether the table agrees.
type Explained struct {
	*audit.Explanation
	Lifecycle *codecs.Lifecycle
	Topic     string
	Partition int32
	Start     int64 // first offset of the log
	End       int64 // 1 + the last offset read
	Position  int64 // what the table reflects
	// Unjudged says why the row of the table was not compared; "" if it was.
	Unjudged   string
	Difference string // what differs from the row of the table; "" if nothing, or not compared
}

// Explain reads the input partition of delivery id from its log start to its
// visible end. partition says which; if it is negative, it is the one in which
// the table has a row of id, else the one where the hash of id belongs.
func (s *Source) Explain(ctx context.Context, client sarama.Client, id string, partition int32) (*Explained, error) {
	partitions, err := client.Partitions(s.Topics.Events)
	if err != nil {
		return nil, fmt.Errorf("asking for the partitions of %s: %w", s.Topics.Events, err)
	}
	n := int32(len(partitions))
	if partition >= n {
		return nil, exit.With(exit.Usage, fmt.Errorf("--partition=%d: %s has partitions 0 to %d", partition, s.Topics.Events, n-1))
	}
	folds, err := s.rowsOf(ctx, id, n)
	if err != nil {
		return nil, err
	}
	if partition < 0 {
		partition = s.Client.Hasher.Partition([]byte(id), n)
		for p, f := range folds {
			if f.Value(id) != nil {
				partition = int32(p)
			}
		}
	}
	progress := folds[partition].Progress()
	if progress == nil {
		return nil, exit.With(exit.Usage, fmt.Errorf("partition %d of %s has no progress row: no processor has worked on it yet", partition, s.Topics.DeliveryTable))
	}
	settings, err := audit.ParseSettings(progress.Settings, s.Lifecycle)
	if err != nil {
		return nil, exit.With(exit.Usage, fmt.Errorf("partition %d: %w", partition, err))
	}
	var row *codecs.Row
	if value := folds[partition].Value(id); value != nil {
		if row, err = s.Lifecycle.ReadRow(value); err != nil {
			return nil, fmt.Errorf("reading the row of %q: %w", id, err)
		}
	}
	decoder, err := s.decoder(settings)
	if err != nil {
		return nil, err
	}
	x := &Explained{
		Explanation: audit.NewExplanation(settings, decoder, id), Lifecycle: s.Lifecycle,
		Topic: s.Topics.Events, Partition: partition, Position: progress.Position,
	}
	return x, s.explain(ctx, client, x, n, row, progress)
}

// explain reads the partition of x, and compares on the way.
func (s *Source) explain(ctx context.Context, client sarama.Client, x *Explained, partitions int32, row *codecs.Row, progress *codecs.Progress) error {
	var err error
	if x.Start, err = client.GetOffset(x.Topic, x.Partition, sarama.OffsetOldest); err != nil {
		return fmt.Errorf("asking for the start of %s/%d: %w", x.Topic, x.Partition, err)
	}
	end, err := client.GetOffset(x.Topic, x.Partition, sarama.OffsetNewest)
	if err == nil {
		x.End, err = exactlyonce.VisibleEnd(ctx, client, x.Topic, x.Partition, x.Start, end)
	}
	if err != nil {
		return fmt.Errorf("asking for the end of %s/%d: %w", x.Topic, x.Partition, err)
	}
	topicID, err := topicID(client, x.Topic)
	if err != nil {
		return err
	}
	switch {
	case progress.TopicID != topicID:
		x.Unjudged = "the table reflects an input topic that was deleted since, and created anew"
	case x.Start > 0:
		x.Unjudged = fmt.Sprintf("retention has cut offsets 0 to %d: what they said of this delivery, and of the clock, is not known here, so the row may differ", x.Start-1)
	}
	judged := x.Unjudged != ""
	judge := func() {
		if !judged {
			x.Difference, judged = x.Compare(row, progress), true
		}
	}
	if x.End > x.Start {
		consumer, err := sarama.NewConsumerFromClient(client)
		if err != nil {
			return fmt.Errorf("preparing to read %s: %w", x.Topic, err)
		}
		defer func() { _ = consumer.Close() }() // only read from
		err = s.read(ctx, consumer, x.Partition, x.Start, x.End, func(m *sarama.ConsumerMessage) {
			if m.Offset >= x.Position {
				judge()
			}
			x.Record(m.Offset, record(m), s.misplaced(m, partitions))
		})
		if err != nil {
			return fmt.Errorf("reading %s/%d: %w", x.Topic, x.Partition, err)
		}
	}
	judge()
	return nil
}

// topicID returns Kafka's UUID of a topic as progress rows have it.
func topicID(client sarama.Client, topic string) (string, error) {
	admin, err := sarama.NewClusterAdminFromClient(client) // not closed: that would close client
	if err != nil {
		return "", fmt.Errorf("describing topic %s: %w", topic, err)
	}
	found, err := admin.DescribeTopics([]string{topic})
	if err != nil {
		return "", fmt.Errorf("describing topic %s: %w", topic, err)
	}
	if len(found) != 1 {
		return "", fmt.Errorf("describing topic %s: %d answers", topic, len(found))
	}
	return hex.EncodeToString(found[0].Uuid[:]), nil
}

// rowsOf folds the rows of one delivery, and the progress rows, to the present
// end of each partition of the table.
func (s *Source) rowsOf(ctx context.Context, id string, partitions int32) ([]*audit.Fold, error) {
	folds := make([]*audit.Fold, partitions)
	start := func(p int32) {
		if p < partitions {
			folds[p] = audit.NewFold(math.MaxInt64)
		}
	}
	for p := range partitions {
		start(p)
	}
	err := s.follow(ctx, s.Topics.DeliveryTable, start,
		func(p int32, c exactlyonce.Change) error {
			if c.Key != id && c.Key != codecs.ProgressKey {
				return nil
			}
			if p >= partitions {
				return fmt.Errorf("%s has only %d partitions", s.Topics.Events, partitions)
			}
			return folds[p].Row(c.Key, c.Value)
		},
		func(recovered bool) (bool, error) { return recovered, nil })
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("waiting for the rows of %s: %w", s.Topics.DeliveryTable, err)
	}
	return folds, err
}
