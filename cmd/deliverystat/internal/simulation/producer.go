package simulation

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"deliverystat/processors/exactlyonce"
)

// Record is one record to send.
type Record struct {
	Key   []byte // nil for none
	Value []byte
	Tag   int64 // comes back with the acknowledgement
}

// Producer sends records to one topic. Send must not be called by two
// goroutines at the same time.
type Producer struct {
	topic    string
	producer sarama.AsyncProducer
	acked    func(partition int32, offset, tag int64)
	done     sync.WaitGroup

	mu   sync.Mutex
	sent int64 // acknowledged
	err  error // the first failure
}

// NewProducer connects a producer. acked, if not nil, is told each
// acknowledged record, one at a time.
func NewProducer(client exactlyonce.ClientConfig, topic string, acked func(partition int32, offset, tag int64)) (*Producer, error) {
	c := client.Sarama()
	c.Net.MaxOpenRequests = 1
	c.Producer.Idempotent = true
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Return.Successes = true
	c.Producer.Compression = sarama.CompressionLZ4
	c.Producer.Flush.Frequency = 5 * time.Millisecond
	c.Producer.Flush.Bytes = 256 << 10
	c.Producer.Retry.Max = 120
	c.Producer.Retry.BackoffFunc = func(retries, _ int) time.Duration {
		return min(time.Duration(retries+1)*100*time.Millisecond, time.Second)
	}
	// A batch whose leader is not known fails without any of the retries above:
	// looking for it has to outlast an outage as well.
	c.Metadata.Retry.Max = 240
	c.Metadata.Retry.BackoffFunc = func(int, int) time.Duration { return 500 * time.Millisecond }
	c.Producer.Partitioner = client.Hasher.Partitioner()
	producer, err := sarama.NewAsyncProducer(client.Brokers, c)
	if err != nil {
		return nil, fmt.Errorf("connecting producer: %w", err)
	}
	p := &Producer{topic: topic, producer: producer, acked: acked}
	p.done.Go(p.successes)
	p.done.Go(p.failures)
	return p, nil
}

// Send hands over one record. It waits while too many are under way, and
// returns the first failure of any record sent before.
func (p *Producer) Send(ctx context.Context, r Record) error {
	if err := p.Err(); err != nil {
		return err
	}
	m := &sarama.ProducerMessage{Topic: p.topic, Value: sarama.ByteEncoder(r.Value), Metadata: r.Tag}
	if r.Key != nil {
		m.Key = sarama.ByteEncoder(r.Key)
	}
	select {
	case p.producer.Input() <- m:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close waits until all records are acknowledged, or have failed for good.
func (p *Producer) Close() error {
	p.producer.AsyncClose()
	p.done.Wait()
	return p.Err()
}

// Sent returns how many records are acknowledged.
func (p *Producer) Sent() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent
}

// Err returns the first failure.
func (p *Producer) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *Producer) successes() {
	for m := range p.producer.Successes() {
		tag, _ := m.Metadata.(int64) // Send gave it
		if p.acked != nil {
			p.acked(m.Partition, m.Offset, tag)
		}
		p.mu.Lock()
		p.sent++
		p.mu.Unlock()
	}
}

func (p *Producer) failures() {
	for e := range p.producer.Errors() {
		p.mu.Lock()
		if p.err == nil {
			p.err = fmt.Errorf("producing to %s: %w", p.topic, e.Err)
		}
		p.mu.Unlock()
	}
}
