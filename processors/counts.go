package processors

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"

	"deliverystat/codecs"
	"deliverystat/processors/exactlyonce"
)

// CountPerStatusConfig describes the second stage in one process.
type CountPerStatusConfig struct {
	// Runtime says how to run; Group and NewState are set by
	// NewCountPerStatus.
	Runtime         exactlyonce.Config
	Topics          Topics
	InputPartitions int32 // partitions of the input of the first stage
}

func (c *CountPerStatusConfig) complete() error {
	if c.InputPartitions <= 0 {
		return errors.New("count-per-status: InputPartitions is required")
	}
	if c.Runtime.Logger == nil {
		c.Runtime.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// NewCountPerStatus prepares the second stage: from the tallies of all source
// partitions to one set of totals.
func NewCountPerStatus(cfg CountPerStatusConfig) (*exactlyonce.Runtime, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	cfg.Runtime.Group = cfg.Topics.CountsGroup
	// Tallies are few, and how long they wait adds to the age of every answer.
	if rows := cfg.Runtime.CommitInterval; rows > 0 {
		cfg.Runtime.CommitInterval = max(rows/4, time.Millisecond)
	}
	cfg.Runtime.InputWriters = []string{cfg.Topics.DeliveryGroup}
	cfg.Runtime.NewState = func(int32) exactlyonce.State { return newCountsState(&cfg) }
	return exactlyonce.New(cfg.Runtime, cfg.Topics.countPerStatus)
}

// countsState is the one partition of the second stage during one assignment.
type countsState struct {
	*contributions
	cfg      *CountPerStatusConfig
	log      *slog.Logger
	topicID  string // of the tally topic
	next     int64  // next offset to consume
	assembly assembly
	dirty    bool // there is something to write
}

func newCountsState(cfg *CountPerStatusConfig) *countsState {
	return &countsState{
		contributions: newContributions(cfg.InputPartitions),
		cfg:           cfg,
		log:           cfg.Runtime.Logger.With("group", cfg.Topics.CountsGroup),
		dirty:         true, // the first cut writes the progress row, so that readers have one
	}
}

// consume is the callback for each tally record. A tally takes effect when its
// last part is there.
func (c *countsState) consume(r *exactlyonce.Record) error {
	c.next = r.Offset + 1
	c.dirty = true
	t, err := codecs.ReadTally(r.Value)
	if err == nil && (t.Partition < 0 || t.Partition >= c.cfg.InputPartitions) {
		err = fmt.Errorf("partition %d of an input with %d", t.Partition, c.cfg.InputPartitions)
	}
	if err != nil {
		c.log.Error("tally skipped, its partition is unknown until it tells all", "offset", r.Offset, "key", string(r.Key), "err", err)
		c.gapOf(string(r.Key))
		return nil
	}
	whole, lost := c.assembly.add(t, r.Offset)
	if lost {
		c.log.Error("parts of a tally are missing, its partition is unknown until it tells all", "offset", r.Offset, "key", string(r.Key))
		c.gap(t.Partition)
	}
	if whole != nil {
		if drift := c.apply(whole); len(drift) > 0 {
			c.log.Error("counts differed from what their partition tells, and are corrected", "source_partition", t.Partition,
				"position", t.Position, "told_minus_counted", drift)
		}
	}
	return nil
}

// gapOf marks the partition that a record key names, or all if it names none.
func (c *countsState) gapOf(key string) {
	p, err := strconv.ParseInt(key, 10, 32)
	if err != nil || p < 0 || p >= int64(c.cfg.InputPartitions) {
		c.gapAll()
		return
	}
	c.gap(int32(p))
}

// Cut implements exactlyonce.State.
func (c *countsState) Cut() exactlyonce.Epoch {
	if !c.dirty {
		return nil
	}
	ep := countsEpoch{rows: c.changed, progress: codecs.CountsProgress{
		TopicID: c.topicID,
		// Parts of an unfinished tally are read again after a restart.
		Next:       c.assembly.first(c.next),
		Partitions: slices.Clone(c.partitions),
	}}
	c.changed, c.dirty = map[string][]codecs.StatusCount{}, false
	for key, counts := range ep.rows {
		if negative(counts) {
			c.log.Error("negative count", "row", key)
		}
	}
	return ep
}

// Committed implements exactlyonce.State.
func (c *countsState) Committed() {}

// countsEpoch writes an epoch of count-per-status.
type countsEpoch struct {
	rows     map[string][]codecs.StatusCount
	progress codecs.CountsProgress
}

// Write implements exactlyonce.Epoch. Empty scopes are deleted, but not the
// total of all: it says that there are none. The progress row comes last.
func (ep countsEpoch) Write(w *exactlyonce.Writer) error {
	for _, key := range slices.Sorted(maps.Keys(ep.rows)) {
		if counts := ep.rows[key]; len(counts) > 0 || key == codecs.TotalKey(AllScope) {
			w.Row(key, codecs.AppendCounts(nil, counts))
		} else {
			w.Row(key, nil)
		}
	}
	w.Row(codecs.ProgressKey, codecs.AppendCountsProgress(nil, &ep.progress))
	return nil
}

// Recover implements exactlyonce.State.
func (c *countsState) Recover(a *exactlyonce.Assignment) error {
	var progress *codecs.CountsProgress
	rows, failed := a.Rows()
	for key, value := range rows {
		if key == codecs.ProgressKey {
			var err error
			if progress, err = codecs.ReadCountsProgress(value); err != nil {
				return fmt.Errorf("decoding the progress row: %w", err)
			}
			continue
		}
		if progress == nil {
			return exactlyonce.Permanent(errNoProgress)
		}
		if err := c.recoverRow(key, value); err != nil {
			return err
		}
	}
	if err := failed(); err != nil {
		return fmt.Errorf("reading the table: %w", err)
	}
	if progress != nil {
		for _, p := range progress.Partitions {
			if p.Partition < c.cfg.InputPartitions {
				c.partitions[p.Partition] = p
			}
		}
	}
	if wrong := c.recount(); len(wrong) > 0 {
		c.log.Error("totals were not the sums of their parts and are corrected", "scopes", wrong)
	}
	c.start(progress, a.Inputs[0])
	return nil
}

func (c *countsState) recoverRow(key string, value []byte) error {
	p, scope, total, ok := codecs.ParseCountsKey(key)
	if !ok || !total && p >= c.cfg.InputPartitions {
		return exactlyonce.Permanent(fmt.Errorf("row %q is none of count-per-status with %d input partitions", key, c.cfg.InputPartitions))
	}
	counts, err := codecs.ReadCounts(value)
	if err != nil {
		return fmt.Errorf("decoding row %q: %w", key, err)
	}
	if total {
		c.totals[scope] = normalCounts(counts)
	} else {
		c.parts[p][scope] = normalCounts(counts)
	}
	return nil
}

// start begins where the table says, whatever offset is committed: the parts of
// an unfinished tally lie between the two, and tallies read twice do no harm. If
// that is not possible, every partition has to tell all again.
func (c *countsState) start(progress *codecs.CountsProgress, in *exactlyonce.Input) {
	c.topicID = in.TopicID
	in.Lost = 0 // no input: the next full tallies make up for it
	switch {
	case progress == nil:
		in.Start = in.LogStart
	case progress.TopicID != in.TopicID:
		c.log.Warn("the tally topic was created anew: waiting for every partition to tell all")
		c.gapAll()
		in.Start = in.LogStart
	case progress.Next < in.LogStart || progress.Next > in.LogEnd:
		c.log.Warn("tallies are gone that were not read: waiting for every partition to tell all",
			"table_offset", progress.Next, "log_start", in.LogStart, "log_end", in.LogEnd)
		c.gapAll()
		in.Start = in.LogStart
	default:
		in.Start = progress.Next
	}
	c.next = in.Start
}
