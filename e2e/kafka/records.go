package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Header is one record header.
type Header struct {
	Key   string
	Value []byte
}

// Record is one record to be written or as it was read.
type Record struct {
	Topic     string
	Partition int32
	Offset    int64 // when read
	Timestamp time.Time
	Key       []byte // nil for none
	Value     []byte // nil for a tombstone
	Headers   []Header
}

// Produce writes records, waits until all are acknowledged, and returns the
// offset of each. The order within a partition is that of records. A zero
// timestamp means now.
func (c *Client) Produce(ctx context.Context, records ...Record) ([]int64, error) {
	out := make([]*kgo.Record, len(records))
	for i := range records {
		out[i] = records[i].kgo()
	}
	if err := c.kgo.ProduceSync(ctx, out...).FirstErr(); err != nil {
		return nil, fmt.Errorf("producing %d records: %w", len(records), err)
	}
	return offsets(out), nil
}

// mostBytes is the largest batch that ProduceLarge sends.
const mostBytes = 16 << 20

// ProduceLarge writes one record of up to 16 MB, uncompressed, and returns its
// offset. The topic must take it.
func (c *Client) ProduceLarge(ctx context.Context, record Record) (int64, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.seeds...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchMaxBytes(mostBytes), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return 0, fmt.Errorf("making a client: %w", err)
	}
	defer cl.Close()
	r := record.kgo()
	if err := cl.ProduceSync(ctx, r).FirstErr(); err != nil {
		return 0, fmt.Errorf("producing a record of %d bytes: %w", len(record.Value), err)
	}
	return r.Offset, nil
}

// ProduceTransaction writes records in one transaction, which it then commits
// or aborts, and returns the offset of each.
func (c *Client) ProduceTransaction(ctx context.Context, id string, commit bool, records ...Record) ([]int64, error) {
	cl, offsets, err := c.begin(ctx, records, kgo.TransactionalID(id))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	if err := cl.EndTransaction(ctx, kgo.TransactionEndTry(commit)); err != nil {
		return nil, fmt.Errorf("ending a transaction: %w", err)
	}
	return offsets, nil
}

// HoldTransaction writes records in a transaction and leaves it open, for ten
// minutes if nobody ends it before: as a process that dies then.
func (c *Client) HoldTransaction(ctx context.Context, id string, records ...Record) error {
	cl, _, err := c.begin(ctx, records, kgo.TransactionalID(id), kgo.TransactionTimeout(10*time.Minute))
	if err != nil {
		return err
	}
	cl.Close() // which tells the broker nothing
	return nil
}

// begin writes records in a transaction that the client returned is to end.
func (c *Client) begin(ctx context.Context, records []Record, options ...kgo.Opt) (*kgo.Client, []int64, error) {
	cl, err := kgo.NewClient(append(options, kgo.SeedBrokers(c.seeds...), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		return nil, nil, fmt.Errorf("making a transactional client: %w", err)
	}
	failed := func(doing string, err error) (*kgo.Client, []int64, error) {
		cl.Close()
		return nil, nil, fmt.Errorf("%s a transaction: %w", doing, err)
	}
	if err := cl.BeginTransaction(); err != nil {
		return failed("beginning", err)
	}
	out := make([]*kgo.Record, len(records))
	for i := range records {
		out[i] = records[i].kgo()
	}
	if err := cl.ProduceSync(ctx, out...).FirstErr(); err != nil {
		return failed("producing in", err)
	}
	return cl, offsets(out), nil
}

func offsets(records []*kgo.Record) []int64 {
	out := make([]int64, len(records))
	for i, r := range records {
		out[i] = r.Offset
	}
	return out
}

func (r *Record) kgo() *kgo.Record {
	out := &kgo.Record{Topic: r.Topic, Partition: r.Partition, Timestamp: r.Timestamp, Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	return out
}

// ReadAll returns what read_committed readers can see of topic now, by
// partition and in offset order.
func (c *Client) ReadAll(ctx context.Context, topic string) ([][]Record, error) {
	ends, err := c.Ends(ctx, topic, Committed)
	if err != nil {
		return nil, err
	}
	from := map[int32]kgo.Offset{}
	for p, end := range ends {
		if end > 0 {
			from[int32(p)] = kgo.NewOffset().AtStart()
		}
	}
	read := make([][]Record, len(ends))
	if len(from) == 0 {
		return read, nil
	}
	// Control records are kept to see the end of a partition that ends in one.
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.seeds...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		return nil, fmt.Errorf("making a reader: %w", err)
	}
	defer cl.Close()
	for len(from) > 0 {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return nil, fmt.Errorf("reading topic %s: %w", topic, err)
		}
		for _, e := range fetches.Errors() {
			return nil, fmt.Errorf("reading topic %s partition %d: %w", topic, e.Partition, e.Err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			end := ends[r.Partition]
			if r.Offset < end && !r.Attrs.IsControl() {
				read[r.Partition] = append(read[r.Partition], record(r))
			}
			if r.Offset+1 >= end {
				delete(from, r.Partition)
			}
		})
	}
	return read, nil
}

func record(r *kgo.Record) Record {
	out := Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp, Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, Header{Key: h.Key, Value: h.Value})
	}
	return out
}
