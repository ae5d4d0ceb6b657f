package processors

import (
	"errors"
	"fmt"

	"deliverystat/codecs"
	"deliverystat/processors/exactlyonce"
)

// errNoProgress says that a table holds rows and does not say what they
// reflect, so it was not written by us.
var errNoProgress = errors.New("the table has rows and no progress row")

// Recover implements exactlyonce.State. It reads the progress row, which is the
// first in key order, decides where to begin, and then rebuilds index and counts
// from the rows as they stand at the recovered stream.
func (d *deliveryState) Recover(a *exactlyonce.Assignment) error {
	d.assignment = a
	d.partition = newPartition(d.cfg.Settings, d.cfg.CachedRows/int(max(1, a.Partitions)), d.committedRow)
	d.log = d.log.With("partition", a.Partition)
	in := a.Inputs[0]
	var progress *codecs.Progress
	var forgotten []dueGrave
	rows, failed := a.Rows()
	for key, value := range rows {
		if key == codecs.ProgressKey {
			var err error
			if progress, err = d.recoverProgress(value); err != nil {
				return err
			}
			continue
		}
		if progress == nil {
			return exactlyonce.Permanent(errNoProgress)
		}
		due, gone, err := d.adopt(key, value)
		if err != nil {
			return err
		}
		if gone {
			forgotten = append(forgotten, due)
		}
	}
	if err := failed(); err != nil {
		return fmt.Errorf("reading the table: %w", err)
	}
	d.graves.queueAll(forgotten)
	d.start(progress, in)
	d.audit.start(d.cfg, a, d.log)
	d.running.stats.lost = in.Lost
	return nil
}

// recoverProgress takes in the progress row, if it was written with our
// settings.
func (d *deliveryState) recoverProgress(value []byte) (*codecs.Progress, error) {
	progress, err := codecs.ReadProgress(value)
	if err != nil {
		return nil, fmt.Errorf("decoding the progress row: %w", err)
	}
	if err := d.settings.CheckSettings(progress.Settings); err != nil {
		if !d.cfg.AcceptNewMeaning {
			return nil, exactlyonce.Permanent(err)
		}
		d.log.Warn("table written with other settings accepted", "err", err)
	}
	d.stream = StreamOf(progress)
	return progress, nil
}

// start decides where to begin reading. The table says what it reflects, so it
// decides wherever the committed offset can not be meant: both are written in
// one transaction, and only an operator makes them differ.
func (d *deliveryState) start(progress *codecs.Progress, in *exactlyonce.Input) {
	d.topicID = in.TopicID
	switch {
	case progress == nil:
		if in.Committed > in.LogStart {
			d.log.Warn("the table is empty, so the input is read from its beginning",
				"committed_offset", in.Committed, "offset", in.LogStart)
		}
		in.Start, in.Lost = in.LogStart, 0
		d.position = in.Start
	case progress.TopicID != in.TopicID:
		d.log.Warn("the input topic was created anew, so it is read from its beginning", "offset", in.LogStart)
		in.Start, in.Lost = in.LogStart, 0
		d.position = in.Start
		// Another first load in random order may follow. Until the record
		// times span the lateness again nothing is forgotten, so the deletes
		// that are owed may not wait behind the new progress row.
		d.stream.FirstRecord, d.stream.LastRecord = codecs.None, codecs.None
		d.settle = true
	default:
		if in.Committed < 0 && progress.Next <= in.LogEnd { // the group's offsets have expired
			in.Start = max(progress.Next, in.LogStart)
			in.Lost = in.Start - progress.Next
		}
		if in.Start != progress.Next {
			d.log.Warn("reading begins elsewhere than the table says", "committed_offset", in.Committed,
				"table_offset", progress.Next, "offset", in.Start, "lost", in.Lost)
		}
		d.position = max(progress.Position, in.Start)
	}
	d.next = in.Start
	if in.Lost > 0 {
		d.log.Error("input was trimmed before it was read", "records", in.Lost, "retention_end", in.LogStart)
	}
}
