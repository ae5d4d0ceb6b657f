package exactlyonce

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
)

// Header is a header of a record.
type Header = sarama.RecordHeader

// Record is a record of an input as a callback gets it, for the time of the
// callback. Key, Value and Headers may be kept and must not be changed; keeping
// one of them keeps all that was fetched with it in memory.
type Record struct {
	Topic     string
	Partition int32
	Offset    int64
	Timestamp time.Time // of the producer or of the broker; zero if there is none
	Key       []byte
	Value     []byte // nil for a tombstone
	Headers   []*Header
}

// callback takes one record into the running epoch of its partition.
type callback func(State, *Record) error

// Consume makes topic an input of the group, and f part of the running epoch of
// each record's partition. It gets the state of that partition, which nobody
// else touches meanwhile. An error or a panic ends the attempt, and nothing of
// the epoch is committed.
//
// Records come straight from the claims of sarama's session. Goka's way, with a
// context, two allocations and a channel of its own per record, costs as much as
// reading and deciding an event together.
func Consume[S State](a *Attempt, topic string, f func(S, *Record) error) goka.Edge {
	a.callbacks[topic] = func(s State, r *Record) error {
		own, ok := s.(S)
		if !ok {
			return fmt.Errorf("state of %s/%d is a %T", r.Topic, r.Partition, s)
		}
		return f(own, r)
	}
	return goka.Input(goka.Stream(topic), RawCodec{}, func(ctx goka.Context, _ any) {
		ctx.Fail(errors.New("record came through goka"))
	})
}

// batch is how many records are taken under one lock, if so many are waiting.
const batch = 64

// ConsumeClaim implements sarama.ConsumerGroupHandler, in the place of goka's.
func (h *handler) ConsumeClaim(cs sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	if !h.s.running {
		return nil // the session ended before the states were recovered
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.consume(cs, claim)
	}()
	select {
	case <-done:
		return nil
	case <-cs.Context().Done():
	}
	// A callback that hangs must not keep the rest of the group waiting, nor the
	// next attempt. It is left alone: nothing that it still does is committed.
	patience := time.NewTimer(h.a.cfg.RebalanceTimeout / 4)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C:
		_ = h.a.fail(at("stalled", fmt.Errorf("a callback of %s/%d has not returned %v after the end of its session",
			claim.Topic(), claim.Partition(), h.a.cfg.RebalanceTimeout/4)))
	}
	return nil
}

// consume takes the records of a claim until the session ends.
func (h *handler) consume(cs sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) {
	sh, f := h.s.shards[claim.Partition()], h.a.callbacks[claim.Topic()]
	for h.a.failure() == nil {
		select {
		case m, ok := <-claim.Messages():
			if !ok {
				return
			}
			h.s.consume(sh, f, m, claim)
		case <-cs.Context().Done():
			return
		}
	}
}

// consume takes m, and what waits behind it, into the running epoch.
func (s *session) consume(sh *shard, f callback, m *sarama.ConsumerMessage, claim sarama.ConsumerGroupClaim) {
	sh.lockForEvent()
	defer sh.mu.Unlock()
	sh.waiting = claim.HighWaterMarkOffset() - m.Offset - 1
	defer func() {
		if v := recover(); v != nil { // half a callback must never be committed
			_ = s.a.fail(at("callback", fmt.Errorf("callback panicked at %s/%d/%d: %v\n%s", m.Topic, m.Partition, m.Offset, v, debug.Stack())))
		}
	}()
	for n := 1; m != nil; n++ {
		sh.record = Record{
			Topic: m.Topic, Partition: m.Partition, Offset: m.Offset, Timestamp: m.Timestamp,
			Key: m.Key, Value: m.Value, Headers: m.Headers,
		}
		if err := f(sh.state, &sh.record); err != nil {
			_ = s.a.fail(at("callback", fmt.Errorf("callback at %s/%d/%d: %w", m.Topic, m.Partition, m.Offset, err)))
			return
		}
		if sh.consumed(m.Topic, m.Offset) {
			select {
			case s.full <- struct{}{}:
			default: // asked already
			}
		}
		if n == batch || sh.overfull() {
			return
		}
		select {
		case m = <-claim.Messages(): // nil when the claim has ended
		default:
			return
		}
	}
}
