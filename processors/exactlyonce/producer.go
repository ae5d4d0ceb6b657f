package exactlyonce

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"github.com/IBM/sarama"
)

// producer runs one transaction at a time. After any error it is done for: only
// the InitProducerID of the next one settles what this one left open.
type producer struct {
	sarama.AsyncProducer
	cfg *Config

	mu      sync.Mutex
	sent    int // of the running transaction
	acked   int
	allIn   chan struct{} // closed when all sent records are acknowledged
	err     error
	offsets map[int32]int64 // highest acknowledged table offset per partition
	readers sync.WaitGroup
}

func newProducer(cfg *Config) (*producer, error) {
	async, err := sarama.NewAsyncProducer(cfg.Client.Brokers, cfg.transactional())
	if err != nil {
		return nil, fmt.Errorf("opening producer %s: %w", cfg.transactionalID(), err)
	}
	p := &producer{AsyncProducer: async, cfg: cfg}
	p.readers.Go(p.readAcks)
	p.readers.Go(p.readErrors)
	return p, nil
}

func (p *producer) readAcks() {
	table := p.cfg.table()
	for m := range p.Successes() {
		p.mu.Lock()
		p.acked++
		if m.Topic == table {
			if o, ok := p.offsets[m.Partition]; !ok || m.Offset > o { // 0 is an offset too
				p.offsets[m.Partition] = m.Offset
			}
		}
		if p.acked == p.sent {
			close(p.allIn)
		}
		p.mu.Unlock()
	}
}

func (p *producer) readErrors() {
	for e := range p.Errors() {
		p.mu.Lock()
		if p.err == nil {
			p.err = e.Err
		}
		p.mu.Unlock()
	}
}

// commit writes an epoch and its offsets in one transaction. It returns the
// highest table offset written per partition. After an error the outcome must
// be taken as unknown.
func (p *producer) commit(e *transaction, meta *sarama.ConsumerGroupMetadata) (map[int32]int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), p.cfg.CommitTimeout)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- p.run(ctx, e, meta) }()
	// Sarama retries batches for the whole Producer.Retry budget although the
	// transaction has failed for good (fenced), and that would hold up the
	// rebalance; so its state is watched.
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for fatal := 0; ; {
		select {
		case err := <-done:
			if err != nil {
				return nil, err
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.offsets, nil
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: no answer in %v", errUnknownOutcome, p.cfg.CommitTimeout)
		case <-tick.C:
			if p.TxnStatus()&sarama.ProducerTxnFlagFatalError == 0 {
				continue
			}
			if fatal++; fatal > 5 {
				return nil, p.because("producing", fmt.Errorf("%w: the producer failed for good", errUnknownOutcome))
			}
		}
	}
}

func (p *producer) run(ctx context.Context, e *transaction, meta *sarama.ConsumerGroupMetadata) error {
	allIn := make(chan struct{})
	p.mu.Lock()
	p.sent, p.acked, p.err, p.offsets, p.allIn = e.records(), 0, nil, map[int32]int64{}, allIn
	if p.sent == 0 {
		close(allIn)
	}
	p.mu.Unlock()
	if err := p.BeginTxn(); err != nil {
		return fmt.Errorf("beginning transaction: %w", err)
	}
	p.cfg.crash("begun")
	if err := p.send(ctx, e); err != nil {
		return err
	}
	p.cfg.crash("produced")
	if err := p.AddOffsetsToTxnWithGroupMetadata(e.offsets(), meta); err != nil {
		return p.because("adding offsets", err)
	}
	p.cfg.crash("before-commit")
	if err := p.CommitTxn(); err != nil {
		return p.because("committing", err)
	}
	p.cfg.crash("after-commit")
	// Sarama has handed every acknowledgement to readAcks; let it count them.
	select {
	case <-allIn:
		return nil
	case <-ctx.Done():
		return p.because("counting acknowledgements", ctx.Err())
	}
}

// because adds the first send error to an error that it may explain.
func (p *producer) because(doing string, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return fmt.Errorf("%s: %w (first send error: %w)", doing, err, p.err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// send hands all records to the producer. Rows of one partition keep their
// order: it is one connection with one request in flight.
func (p *producer) send(ctx context.Context, e *transaction) error {
	table := p.cfg.table()
	for i := range e.parts {
		part := &e.parts[i]
		messages := make([]sarama.ProducerMessage, len(part.rows)+len(part.records)) // in one allocation
		var pinned any = ToPartition(part.shard.id)
		for j := range part.rows {
			r, m := &part.rows[j], &messages[j]
			m.Topic, m.Key, m.Metadata = table, (*rowKey)(r), pinned
			if r.Value != nil {
				m.Value = (*rowValue)(r)
			}
			if err := p.put(ctx, m); err != nil {
				return err
			}
		}
		for j := range part.records {
			r, m := &part.records[j], &messages[len(part.rows)+j]
			m.Topic, m.Key, m.Headers = r.topic, sarama.StringEncoder(r.key), r.headers
			if r.value != nil {
				m.Value = sarama.ByteEncoder(r.value)
			}
			if err := p.put(ctx, m); err != nil {
				return err
			}
		}
		if i == 0 {
			p.cfg.crash("mid-produce")
		}
	}
	return nil
}

// rowKey is the key of a row as sarama takes it, without a copy.
type rowKey Change

// Encode implements sarama.Encoder.
func (r *rowKey) Encode() ([]byte, error) {
	return unsafe.Slice(unsafe.StringData(r.Key), len(r.Key)), nil //nolint:gosec // sarama only reads it
}

// Length implements sarama.Encoder.
func (r *rowKey) Length() int { return len(r.Key) }

// rowValue is the value of a row as sarama takes it.
type rowValue Change

// Encode implements sarama.Encoder.
func (r *rowValue) Encode() ([]byte, error) { return r.Value, nil }

// Length implements sarama.Encoder.
func (r *rowValue) Length() int { return len(r.Value) }

func (p *producer) put(ctx context.Context, m *sarama.ProducerMessage) error {
	if size := m.ByteSize(2) - 36; size > MaxRecordBytes+2048 {
		return at("state", &recordTooLargeError{topic: m.Topic, size: size})
	}
	select {
	case p.Input() <- m:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// discard closes a producer. Aborting first is a courtesy to readers of the
// output, who would wait for the transaction timeout; it is left out when the
// outcome is unknown, because then only the next InitProducerID can say what
// happened.
func (p *producer) discard(cause error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		const open = sarama.ProducerTxnFlagInTransaction | sarama.ProducerTxnFlagAbortableError
		const never = sarama.ProducerTxnFlagCommittingTransaction | sarama.ProducerTxnFlagFatalError
		if st := p.TxnStatus(); !errors.Is(cause, errUnknownOutcome) && st&never == 0 && st&open != 0 {
			if err := p.AbortTxn(); err != nil {
				p.cfg.Logger.Info("aborting the transaction of a failed attempt", "err", err)
			}
		}
		// Close drains both channels, so the readers end.
		if err := p.Close(); err != nil {
			p.cfg.Logger.Debug("closing producer", "err", err)
		}
		p.readers.Wait()
	}()
	select {
	case <-done:
	case <-time.After(3 * time.Second): // it ends in the background; the next producer fences it
	}
}
