package processors

import (
	"fmt"
	"maps"
	"math"

	"deliverystat/codecs"
	"deliverystat/processors/exactlyonce"
)

// CountsTable follows the rows of the table count-per-status and makes
// snapshots of them. It is not safe for concurrent use; its snapshots are
// immutable.
type CountsTable struct {
	all    codecs.ScopeCounts
	groups map[string]codecs.ScopeCounts // shared with snapshots: replaced, not changed
	newest *codecs.Counts
}

// NewCountsTable returns an empty table.
func NewCountsTable() *CountsTable { return &CountsTable{} }

// Apply takes in rows in log order, ending with a progress row, and returns the
// counts as of that row. Without a progress row among them it returns what it
// returned last, nil at first: rows behind the last progress row are kept for
// the next one.
func (t *CountsTable) Apply(rows []exactlyonce.Change) (*codecs.Counts, error) {
	var progress *codecs.CountsProgress
	groups := t.groups
	shared := true
	for _, row := range rows {
		if row.Key == codecs.ProgressKey {
			p, err := codecs.ReadCountsProgress(row.Value)
			if err != nil {
				return nil, fmt.Errorf("decoding the progress row: %w", err)
			}
			progress = p
			continue
		}
		_, scope, total, ok := codecs.ParseCountsKey(row.Key)
		if !ok {
			return nil, fmt.Errorf("row %q is none of count-per-status", row.Key)
		}
		if !total {
			continue
		}
		var counts []codecs.StatusCount
		if row.Value != nil {
			var err error
			if counts, err = codecs.ReadCounts(row.Value); err != nil {
				return nil, fmt.Errorf("decoding row %q: %w", row.Key, err)
			}
		}
		if scope == AllScope {
			t.all.Counts = counts
			continue
		}
		if shared { // one copy for all rows of a batch
			groups, shared = maps.Clone(groups), false
			if groups == nil {
				groups = map[string]codecs.ScopeCounts{}
			}
		}
		if counts == nil {
			delete(groups, scope)
		} else {
			groups[scope] = codecs.ScopeCounts{Scope: scope, Counts: counts}
		}
	}
	t.groups = groups
	if progress != nil {
		t.newest = t.snapshot(progress)
	}
	return t.newest, nil
}

// snapshot says what the table holds at progress.
func (t *CountsTable) snapshot(progress *codecs.CountsProgress) *codecs.Counts {
	c := &codecs.Counts{
		EventTime: codecs.None,
		Complete:  len(progress.Partitions) > 0,
		Uniform:   true,
		All:       t.all,
		Groups:    t.groups,
		Audited:   math.MaxInt64,
	}
	if len(progress.Partitions) == 0 {
		c.Audited = codecs.None
	}
	var first *codecs.PartitionCounts
	c.Position.Next = make([]int64, len(progress.Partitions))
	for i := range progress.Partitions {
		p := &progress.Partitions[i]
		c.Position.Next[i] = p.Position
		c.Complete = c.Complete && p.Full
		c.Audited = min(c.Audited, p.Audit.At)
		// Not the sum: what the rows contradict is taken back in the table too.
		for _, n := range greater(p.Audit.Rows, p.Audit.Table) {
			if c.Drift == nil {
				c.Drift = map[string]int64{}
			}
			c.Drift[n.Status] += n.Live + n.Closed
		}
		if p.Position < 0 {
			continue
		}
		if first == nil {
			first = p
			c.Position.TopicID = p.TopicID
		}
		c.EventTime = max(c.EventTime, p.Clock)
		c.Uniform = c.Uniform && p.SettingsHash == first.SettingsHash
		// While the input is being created anew, no position says what the
		// counts reflect.
		c.Complete = c.Complete && p.TopicID == first.TopicID
	}
	return c
}
