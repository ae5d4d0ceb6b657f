package deadletters

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/IBM/sarama"

	"deliverystat/codecs"
	"deliverystat/processors/exactlyonce"
)

// Bounds of what is sent at once.
const (
	atOnceRecords = 500
	atOnceBytes   = 4 << 20
)

// Replay sends letters back to where they came from.
type Replay struct {
	Topics     []string // the input, and the sources that are republished to it
	AcceptLate bool     // send late events too, marked to be applied

	// What became of the letters that were offered.
	Sent       int // acknowledged; with no producer: chosen
	Late       int // left out for want of AcceptLate
	Incomplete int // left out since not all of the record was kept
	Elsewhere  int // left out since the record was of another topic

	producer sarama.SyncProducer
	pending  []*sarama.ProducerMessage
	size     int
}

// Connect prepares to send; without it nothing is sent.
func (r *Replay) Connect(client exactlyonce.ClientConfig) error {
	c := client.Sarama()
	c.Net.MaxOpenRequests = 1
	c.Producer.Idempotent = true
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Return.Successes = true
	c.Producer.Return.Errors = true
	c.Producer.Compression = sarama.CompressionLZ4
	c.Producer.MaxMessageBytes = exactlyonce.MaxRecordBytes + 4096
	c.Producer.Retry.Max = 20
	c.Producer.Partitioner = client.Hasher.Partitioner()
	producer, err := sarama.NewSyncProducer(client.Brokers, c)
	if err != nil {
		return fmt.Errorf("connecting producer: %w", err)
	}
	r.producer = producer
	return nil
}

// Offer takes the next letter, and reports whether it is one to send. It keeps
// it until enough of them can be sent together; see Close.
func (r *Replay) Offer(ctx context.Context, l *Letter) (bool, error) {
	late := l.Reason == codecs.TooLate
	topic := l.Source.Topic
	if topic == "" {
		topic = r.Topics[0]
	}
	switch {
	case l.Incomplete != "":
		r.Incomplete++
		return false, nil
	case !slices.Contains(r.Topics, topic):
		r.Elsewhere++
		return false, nil
	case late && !r.AcceptLate:
		r.Late++
		return false, nil
	case r.producer == nil:
		r.Sent++
		return true, nil
	}
	r.pending = append(r.pending, l.message(topic, late))
	r.size += len(l.Key) + len(l.Value)
	if len(r.pending) < atOnceRecords && r.size < atOnceBytes {
		return true, nil
	}
	return true, r.flush(ctx)
}

// flush sends what is pending and waits until it is acknowledged.
func (r *Replay) flush(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(r.pending) == 0 {
		return nil
	}
	if err := r.producer.SendMessages(r.pending); err != nil {
		if failed, ok := err.(sarama.ProducerErrors); ok && len(failed) > 0 { //nolint:errorlint // sarama returns it bare
			r.Sent += len(r.pending) - len(failed)
			err = failed[0].Err
		}
		return fmt.Errorf("sending back: %w", err)
	}
	r.Sent += len(r.pending)
	r.pending, r.size = r.pending[:0], 0
	return nil
}

// Close sends what is pending, unless err says that something has failed, and
// disconnects. It returns what failed first.
func (r *Replay) Close(ctx context.Context, err error) error {
	if r.producer == nil {
		return err
	}
	if err == nil {
		err = r.flush(ctx)
	}
	if failed := r.producer.Close(); err == nil && failed != nil {
		err = fmt.Errorf("closing producer: %w", failed)
	}
	return err
}

// LeftOut says in words what was not sent; "" if all was.
func (r *Replay) LeftOut() string {
	var parts []string
	say := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	say(r.Late, "late (--accept-late sends them too, to be applied all the same)")
	say(r.Incomplete, "too large to have been kept whole")
	say(r.Elsewhere, "of other topics (--sources names more)")
	return strings.Join(parts, ", ")
}
