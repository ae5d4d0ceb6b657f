package views

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"deliverystat/codecs"
)

// listPatience bounds how long a list waits for the table to show what the index
// has. That takes as long as the write of one batch.
const listPatience = time.Second

// List returns the live deliveries that q asks for. All rows and the total are as
// of one position, which names every partition. Ready is false where it is for
// Get, and if ctx ends.
func (d *Deliveries) List(ctx context.Context, q *codecs.LiveQuery) (page codecs.LivePage, ready bool) {
	// A list keeps the index as it is, so they take turns: many at once would
	// hold it up together.
	select {
	case d.lists <- struct{}{}:
		defer func() { <-d.lists }()
	case <-ctx.Done():
		return codecs.LivePage{}, false
	}
	d.live.mu.RLock()
	defer d.live.mu.RUnlock()
	page, ready, err := d.list(ctx, q)
	if err != nil && ctx.Err() == nil {
		d.cfg.Logger.Error("listing deliveries", "err", err)
	}
	return page, ready && err == nil
}

// list is List while the index is locked.
func (d *Deliveries) list(ctx context.Context, q *codecs.LiveQuery) (page codecs.LivePage, ready bool, err error) {
	progress, ready, err := d.indexed()
	if err != nil || !ready {
		return codecs.LivePage{}, false, err
	}
	found := d.live.list(q)
	byPartition := map[int32][]int{} // indices of found.rows
	for i, r := range found.rows {
		byPartition[r.partition] = append(byPartition[r.partition], i)
	}
	page = codecs.LivePage{
		Deliveries: make([]codecs.Delivery, len(found.rows)), Total: found.total, At: reflected(progress, 0),
	}
	for partition, rows := range byPartition {
		if err := d.fill(ctx, partition, progress[partition], found.rows, rows, page.Deliveries); err != nil {
			return codecs.LivePage{}, false, err
		}
	}
	if found.more {
		last := found.rows[len(found.rows)-1]
		page.Next = &codecs.LiveKey{Since: last.since, ID: last.id, Partition: last.partition}
	}
	return page, true, nil
}

// indexed returns the progress of each partition of the index.
func (d *Deliveries) indexed() ([]*codecs.Progress, bool, error) {
	n := d.table.Partitions()
	if n <= 0 || !d.table.Recovered() {
		return nil, false, nil
	}
	out := make([]*codecs.Progress, n)
	for partition := range n {
		p := d.live.partitions[partition]
		if p == nil || p.progress == nil {
			return nil, false, nil
		}
		var err error
		if out[partition], err = d.decode(partition, p.progress); err != nil {
			return nil, false, err
		}
	}
	return out, true, nil
}

// fill reads the deliveries of one partition. The index is told a batch before
// the table shows it, and told no more while it is locked: so the table comes to
// stand where the index stands.
func (d *Deliveries) fill(
	ctx context.Context, partition int32, progress *codecs.Progress, found []*liveRow, rows []int, out []codecs.Delivery,
) error {
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	want := d.live.partitions[partition].progress
	read := func(get func(string) ([]byte, error)) (shown bool, err error) {
		raw, err := get(codecs.ProgressKey)
		if err != nil || !bytes.Equal(raw, want) {
			return false, err
		}
		for _, i := range rows {
			id := found[i].id
			value, err := get(id)
			if err != nil {
				return false, err
			}
			row, err := d.cfg.Settings.Lifecycle.ReadRow(value)
			if err != nil {
				return false, fmt.Errorf("decoding a row: %w", err)
			}
			out[i], _ = d.cfg.Settings.Deliver(id, row, progress) // live: the index says so
		}
		return true, nil
	}
	var err error
	done := await(ctx, time.Millisecond, func() (shown bool) {
		err = d.table.View(partition, func(get func(string) ([]byte, error)) (err error) {
			shown, err = read(get)
			return err
		})
		return shown || err != nil
	})
	switch {
	case err != nil:
		return fmt.Errorf("reading the local table: %w", err)
	case !done:
		return fmt.Errorf("waiting for partition %d of the table to show what the index has: %w", partition, ctx.Err())
	default:
		return nil
	}
}
