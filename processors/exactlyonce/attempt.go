package exactlyonce

import (
	"context"
	"fmt"
	"hash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/lovoo/goka/storage"
)

// Attempt is one life of the processor: one transactional producer, one
// goka.Processor. Any error of a transaction ends it, because only a new
// InitProducerID, a fresh look at the committed offsets and a recovery from the
// changelog together give a known state again.
type Attempt struct {
	cfg      *Config
	stores   *stores
	cluster  *cluster
	producer *producer

	standby *standby // nil without one

	callbacks map[string]callback // by input topic

	ctx        context.Context //nolint:containedctx // the life of the attempt: goka's builder hooks get none
	cancel     context.CancelFunc
	broken     atomic.Pointer[error]
	session    atomic.Pointer[session]
	working    func() // called once a session has recovered
	background sync.WaitGroup
}

// run lives one attempt until ctx ends or something fails.
func (r *Runtime) attempt(parent context.Context) (err error) {
	cfg := r.cfg
	a := &Attempt{cfg: &cfg, stores: r.stores, callbacks: map[string]callback{}, working: func() { r.fault.Store(nil) }}
	a.ctx, a.cancel = context.WithCancel(parent)
	cfg.Client = cfg.Client.until(a.ctx)
	defer func() {
		a.background.Wait()
		if a.standby != nil {
			_ = a.standby.consumer.Close() // only read from
		}
	}()
	defer a.cancel()
	defer r.stores.disown() // whatever way the attempt ends, it commits no more
	if a.cluster, err = newCluster(cfg.Client); err != nil {
		return at("broker", err)
	}
	defer func() { _ = a.cluster.Close() }() // nothing is lost with it
	// The producer comes first: its InitProducerID completes or aborts what the
	// last attempt, or the killed process of the same name, left open, before
	// any offset or row is read.
	if a.producer, err = newProducer(&cfg); err != nil {
		return at("broker", err)
	}
	if cfg.Standby && !cfg.Stateless {
		if a.standby, err = newStandby(a); err != nil {
			a.producer.discard(nil)
			return at("broker", err)
		}
	}
	processor, err := a.processor(r.graph(a))
	if err != nil {
		a.producer.discard(nil)
		return fmt.Errorf("setting up the processor: %w", err)
	}
	r.current.Store(a)
	defer r.current.Store(nil)
	err = processor.Run(a.ctx)
	a.cancel() // what works beside the processor ends with it
	cause := a.failure()
	a.producer.discard(cause)
	if cause != nil {
		return cause
	}
	return at("group", err)
}

// processor makes the processor of a graph. A missing input is known at once:
// sarama would look for it for as long as for a leader.
func (a *Attempt) processor(graph *goka.GroupGraph) (*goka.Processor, error) {
	for topic := range a.callbacks {
		if _, err := a.cluster.topicID(topic); err != nil {
			return nil, err
		}
	}
	return goka.NewProcessor(a.cfg.Client.Brokers, graph, a.options()...)
}

func (a *Attempt) options() []goka.ProcessorOption {
	return []goka.ProcessorOption{
		goka.WithClientID(a.cfg.Client.ClientID),
		goka.WithLogger(gokaLog{a.cfg.Logger}),
		goka.WithProducerBuilder(func([]string, string, func() hash.Hash32) (goka.Producer, error) {
			return noProducer{}, nil
		}),
		goka.WithStorageBuilder(a.openStore),
		goka.WithTopicManagerBuilder(func([]string) (goka.TopicManager, error) {
			return &topicManager{cluster: a.cluster, end: a.recoveryEnd, ctx: a.ctx}, nil
		}),
		goka.WithConsumerGroupBuilder(func(brokers []string, name, _ string) (sarama.ConsumerGroup, error) {
			g, err := sarama.NewConsumerGroup(brokers, name, a.cfg.member())
			if err != nil {
				return nil, err
			}
			return newGroup(a, g), nil
		}),
		goka.WithConsumerSaramaBuilder(func(brokers []string, _ string) (sarama.Consumer, error) {
			return sarama.NewConsumer(brokers, a.cfg.recovery())
		}),
	}
}

func (a *Attempt) openStore(topic string, partition int32) (storage.Storage, error) {
	id, err := a.cluster.topicID(topic)
	if err != nil {
		return nil, err
	}
	st := a.stores.get(topic, partition)
	if err := st.open(id, a.cluster.usable(a.ctx, topic, partition)); err != nil {
		return nil, err
	}
	r := &recovering{store: st}
	st.own(r)
	return r, nil
}

// recoveryEnd is where the recovery of an owned partition ends: behind the last
// committed record, after every transaction that reaches below the high
// watermark is decided. The former owner's last commit may still be without its
// marker.
func (a *Attempt) recoveryEnd(topic string, partition int32, oldest, hwm int64) (int64, error) {
	ctx := a.ctx
	if s := a.session.Load(); s != nil {
		ctx = s.Context()
	}
	st := a.stores.get(topic, partition)
	// Rows that the store has already may be gone from the log.
	from := max(oldest, st.offset()+1)
	p := a.patience()
	t := tail{client: a.cluster, topic: topic, partition: partition, blocked: func(since time.Time) {
		if act, tell := p.after(time.Since(since)); act {
			a.fencePartitionHolders(topic, partition, tell)
		}
	}}
	end, err := t.visibleEnd(ctx, from, hwm)
	if err != nil {
		return 0, err
	}
	if s := a.session.Load(); s != nil && int(partition) < len(s.shards) && s.shards[partition] != nil {
		s.shards[partition].target.Store(end)
	}
	return end, nil
}

// fail ends the attempt. Nothing of the running or committing epoch is kept.
func (a *Attempt) fail(err error) error {
	if a.broken.CompareAndSwap(nil, &err) {
		a.cancel()
	}
	return err
}

func (a *Attempt) failure() error {
	if p := a.broken.Load(); p != nil {
		return *p
	}
	return nil
}

// noProducer is what goka gets for a producer: rows and records are written by
// epochs, not by callbacks.
type noProducer struct{}

func (noProducer) Emit(topic, key string, value []byte) *goka.Promise {
	return noProducer{}.EmitWithHeaders(topic, key, value, nil)
}

func (noProducer) EmitWithHeaders(string, string, []byte, goka.Headers) *goka.Promise {
	p, finish := goka.NewPromiseWithFinisher()
	finish(nil, errNotForCallbacks)
	return p
}

func (noProducer) Close() error { return nil }
