package exactlyonce

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/IBM/sarama"
)

// VisibleEnd returns 1 + the offset of the last committed record in [from, end)
// of a partition, or from if there is none: transaction markers and records of
// aborted transactions do not count. Records that an open transaction still
// hides do not count either.
func VisibleEnd(ctx context.Context, client sarama.Client, topic string, partition int32, from, end int64) (int64, error) {
	t := tail{client: client, topic: topic, partition: partition}
	return t.visibleEnd(ctx, from, end)
}

// tail reads the end of one partition.
type tail struct {
	client    sarama.Client
	topic     string
	partition int32
	// blocked, if not nil, is called again and again while an open transaction
	// hides records below the end; since is the time at which that began. The
	// tail then waits until every transaction that reaches below the end is
	// decided. If nil, it does not wait.
	blocked func(since time.Time)
}

func (t *tail) visibleEnd(ctx context.Context, from, end int64) (int64, error) {
	// The last record is nearly always close to the end, so start there and
	// step back in growing strides.
	for stride := int64(16); ; stride *= 16 {
		start := max(end-stride, from)
		last, err := t.lastCommitted(ctx, start, end)
		switch {
		case err != nil:
			return 0, err
		case last >= 0:
			return last + 1, nil
		case start <= from:
			return from, nil
		}
	}
}

// lastCommitted returns the offset of the last committed record in [pos, end),
// or -1.
func (t *tail) lastCommitted(ctx context.Context, pos, end int64) (int64, error) {
	last, failures, since := int64(-1), 0, time.Time{}
	// A tail of a few records is all that is read nearly always; the broker
	// sends at least one batch, however small the limit.
	for limit := int32(64 << 10); pos < end; limit = min(4*limit, 4<<20) {
		block, err := t.fetch(pos, limit)
		if err != nil {
			if failures++; failures > 20 {
				return 0, fmt.Errorf("reading the end of %s/%d: %w", t.topic, t.partition, err)
			}
			if err := pause(ctx, 100*time.Millisecond); err != nil {
				return 0, err
			}
			_ = t.client.RefreshMetadata(t.topic) // the next fetch reports what matters
			continue
		}
		next := scan(block, pos, end, &last)
		if next > pos {
			pos, since = next, time.Time{}
			continue
		}
		if t.blocked == nil || block.LastStableOffset >= end {
			break // nothing left to read below end
		}
		if since.IsZero() {
			since = time.Now()
		}
		t.blocked(since)
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return 0, err
		}
	}
	return last, ctx.Err()
}

func (t *tail) fetch(pos int64, limit int32) (*sarama.FetchResponseBlock, error) {
	leader, err := t.client.Leader(t.topic, t.partition)
	if err != nil {
		return nil, err
	}
	req := &sarama.FetchRequest{
		Version: 11, MaxWaitTime: 50, MinBytes: 1, MaxBytes: limit,
		Isolation: sarama.ReadCommitted, SessionEpoch: -1,
	}
	req.AddBlock(t.topic, t.partition, pos, limit, -1)
	resp, err := leader.Fetch(req)
	if err != nil {
		_ = leader.Close() // opened again by the next look-up of the leader
		return nil, err
	}
	block := resp.GetBlock(t.topic, t.partition)
	if block == nil {
		return nil, errors.New("empty fetch response")
	}
	if !errors.Is(block.Err, sarama.ErrNoError) {
		return nil, block.Err
	}
	return block, nil
}

// scan walks the batches of a read-committed fetch, skipping markers and the
// records of aborted transactions, and returns the position behind them. Last
// becomes the offset of the last committed record below end.
func scan(block *sarama.FetchResponseBlock, pos, end int64, last *int64) int64 {
	// One producer may have several aborted transactions in one fetch: each
	// begins at its FirstOffset and ends at its marker.
	begins := slices.Clone(block.AbortedTransactions)
	slices.SortFunc(begins, func(a, b *sarama.AbortedTransaction) int { return int(a.FirstOffset - b.FirstOffset) })
	aborted := map[int64]bool{}
	for _, set := range block.RecordsSet {
		b := set.RecordBatch
		if b == nil {
			continue
		}
		batchEnd := b.FirstOffset + int64(b.LastOffsetDelta)
		for len(begins) > 0 && begins[0].FirstOffset <= batchEnd {
			aborted[begins[0].ProducerID] = true
			begins = begins[1:]
		}
		pos = max(pos, batchEnd+1)
		switch {
		case b.Control:
			// The key of a marker is version int16, type int16; type 0 is abort.
			if len(b.Records) > 0 && len(b.Records[0].Key) >= 4 && binary.BigEndian.Uint16(b.Records[0].Key[2:]) == 0 {
				delete(aborted, b.ProducerID)
			}
		case b.IsTransactional && aborted[b.ProducerID]:
		default:
			for _, r := range b.Records {
				if o := b.FirstOffset + r.OffsetDelta; o < end && o > *last {
					*last = o
				}
			}
		}
	}
	return pos
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
