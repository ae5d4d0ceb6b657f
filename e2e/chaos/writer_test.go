//go:build chaos

package chaos_test

import (
	"context"
	"sync"
	"time"

	"deliverystat/e2e/chaos"
	"deliverystat/e2e/kafka"
	"deliverystat/processors/market"
	"deliverystat/processors/processorstest"
)

// writer sends a market to the input, in two ways at once: as it comes, and in
// transactions, of which one in ten is aborted.
type writer struct {
	*rig

	mu           sync.Mutex
	market       *market.Market
	at           time.Time // event time so far; record timestamps follow it
	transactions int
}

// run writes portions in one of the ways until ctx ends. What was begun then is
// finished.
func (w *writer) run(ctx context.Context, write func(context.Context, []kafka.Record)) {
	tick := time.NewTicker(time.Second * portion / pace)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		records := w.next()
		if len(records) == 0 {
			return
		}
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		write(bounded, records)
		cancel()
	}
}

func (w *writer) next() []kafka.Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	var records []kafka.Record
	for len(records) < portion {
		r, ok := w.market.Next()
		if !ok {
			break
		}
		if r.Kind == market.InOrder {
			w.at = time.Unix(0, max(w.at.UnixNano(), r.Event.OccurredAt))
		}
		records = append(records, kafka.Record{
			Topic: prefix + "delivery-events", Partition: processorstest.Partition([]byte(r.Key), partitions),
			Timestamp: w.at, Key: []byte(r.Key), Value: r.Value,
		})
	}
	return records
}

func (w *writer) produce(ctx context.Context, records []kafka.Record) {
	offsets, err := w.client.Produce(ctx, records...)
	if err != nil {
		w.t.Errorf("writing: %v", err)
		return
	}
	w.Wrote(sent(records, offsets)...)
}

// transact writes a transaction. Whether one that failed has taken effect,
// nobody knows: it is neither noted as sent nor as aborted.
func (w *writer) transact(ctx context.Context, records []kafka.Record) {
	w.transactions++
	commit := w.transactions%10 != 0
	offsets, err := w.client.ProduceTransaction(ctx, prefix+"upstream", commit, records...)
	switch {
	case err != nil:
		w.t.Logf("a transaction of the writer failed: %v", err)
	case commit:
		w.Wrote(sent(records, offsets)...)
	default:
		w.Took(sent(records, offsets)...)
	}
}

func sent(records []kafka.Record, offsets []int64) []chaos.Sent {
	now := time.Now()
	out := make([]chaos.Sent, len(records))
	for i, r := range records {
		out[i] = chaos.Sent{Partition: r.Partition, Offset: offsets[i], Value: string(r.Value), At: now}
	}
	return out
}
