package processors

import (
	"cmp"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"deliverystat/codecs"
	"deliverystat/processors/exactlyonce"
)

// firstAudit is when the first audits after an assignment are over, unless they
// are more frequent anyway.
const firstAudit = time.Minute

// selfAudit audits one partition of the first stage during one assignment. It
// compares two pairs, each at one position:
//
//   - The running counts with the contributions in the table of the second
//     stage. An audit begins with a full tally behind what its epoch changed, so it
//     changes nothing in the second stage unless the table is wrong. Then it also
//     mends it.
//   - The rows with the running counts. The rows are those of a snapshot of the
//     committed table, taken when that epoch is durable, and counted beside the
//     stream. If they differ, the attempt ends: the recovery counts all rows anew,
//     and its full tally mends the rest.
//
// The outcome travels with a tally, so that all who follow the table of the
// second stage know it.
type selfAudit struct {
	settings  *Settings
	log       *slog.Logger
	partition int32
	every     time.Duration
	now       func() time.Time
	drifts    *drifts

	due     time.Time            // of the next
	counted []codecs.ScopeCounts // the running counts as they were told; nil if none begins
	done    chan struct{}        // closed when the recount under way has ended; nil if none is
	result  *codecs.Audit        // of it, nil if it failed
}

// start plans the audits of an assignment, each partition at its own time.
func (a *selfAudit) start(cfg *LatestDeliveryConfig, at *exactlyonce.Assignment, log *slog.Logger) {
	a.settings, a.log, a.partition, a.every, a.now, a.drifts = cfg.Settings, log, at.Partition, cfg.AuditEvery, cfg.Now, cfg.drifts
	first := min(a.every, firstAudit)
	a.due = a.now().Add(first * time.Duration(at.Partition+1) / time.Duration(at.Partitions))
}

// begins reports whether an audit begins now.
func (a *selfAudit) begins(now time.Time) bool {
	if a.every == 0 || now.Before(a.due) || a.done != nil {
		return false
	}
	a.due = now.Add(a.every)
	return true
}

// committed begins the recount if the epoch that has become durable was that of
// an audit.
func (a *selfAudit) committed(at *exactlyonce.Assignment) {
	counted := a.counted
	if counted == nil {
		return
	}
	a.counted = nil
	rows, failed, err := at.Snapshot()
	if err != nil {
		a.log.Warn("audit left out", "err", err)
		return
	}
	done := make(chan struct{})
	a.done = done
	go func() {
		defer close(done)
		recounted, err := recount(a.settings, rows)
		if err = cmp.Or(failed(), err); err != nil {
			a.log.Warn("audit left out", "err", err)
			return
		}
		a.result = &codecs.Audit{Rows: difference(recounted, counted)}
	}()
}

// found returns the outcome of an audit, once; nil if none has ended. If rows and
// running counts differ, it is an error that ends the attempt, and the next state
// finds the outcome.
func (a *selfAudit) found() (*codecs.Audit, error) {
	if known := a.drifts.take(a.partition); known != nil {
		return known, nil
	}
	select {
	case <-a.done: // never if it is nil
	default:
		return nil, nil
	}
	result := a.result
	a.done, a.result = nil, nil
	if result == nil {
		return nil, nil
	}
	result.At = a.now().UnixNano()
	if len(result.Rows) == 0 {
		return result, nil
	}
	a.log.Error("running counts differ from the rows: counting all rows anew", "recounted_minus_counted", result.Rows)
	a.drifts.put(a.partition, result)
	return nil, fmt.Errorf("audit of partition %d: recounted rows minus running counts: %+v", a.partition, result.Rows)
}

// drifts holds what audits found until the state after the next recovery tells it.
type drifts struct {
	mu    sync.Mutex
	found map[int32]*codecs.Audit
}

func newDrifts() *drifts { return &drifts{found: map[int32]*codecs.Audit{}} }

func (d *drifts) put(partition int32, found *codecs.Audit) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.found[partition] = found
}

func (d *drifts) take(partition int32) *codecs.Audit {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := d.found[partition]
	delete(d.found, partition)
	return found
}

// recount counts the rows of a partition as they stand at the progress row, which
// is the first of them.
func recount(s *Settings, rows iter.Seq2[string, []byte]) ([]codecs.ScopeCounts, error) {
	t := newTally(s)
	at := NewStream()
	var row codecs.RowBuffer
	for key, value := range rows {
		if key == codecs.ProgressKey {
			progress, err := codecs.ReadProgress(value)
			if err != nil {
				return nil, fmt.Errorf("decoding the progress row: %w", err)
			}
			at = StreamOf(progress)
			continue
		}
		r, err := row.Read(s.Lifecycle, value)
		if err != nil {
			return nil, fmt.Errorf("decoding a row: %w", err)
		}
		if st := s.Standing(r, at); !st.Forgotten {
			t.add(t.setOf(r, nil), st.Status, st.Closed, +1)
		}
	}
	return t.cut(true), nil
}

// difference returns a − b by status, of the scope in which that is greatest.
func difference(a, b []codecs.ScopeCounts) []codecs.StatusCount {
	other := make(map[string][]codecs.StatusCount, len(b))
	for _, sc := range b {
		other[sc.Scope] = normalCounts(sc.Counts)
	}
	var all []codecs.StatusCount
	for _, sc := range a {
		all = greater(all, addCounts(normalCounts(sc.Counts), other[sc.Scope], -1))
		delete(other, sc.Scope)
	}
	for _, counts := range other {
		all = greater(all, addCounts(nil, counts, -1))
	}
	return all
}

// greater returns for each status the difference that is further from 0.
func greater(a, b []codecs.StatusCount) []codecs.StatusCount {
	if len(b) == 0 {
		return a
	}
	all := slices.Clone(a)
	for _, d := range b {
		i, found := slices.BinarySearchFunc(all, d.Status, func(c codecs.StatusCount, status string) int { return cmp.Compare(c.Status, status) })
		switch {
		case !found:
			all = slices.Insert(all, i, d)
		case abs(d.Live)+abs(d.Closed) > abs(all[i].Live)+abs(all[i].Closed):
			all[i] = d
		}
	}
	return all
}

func abs(n int64) int64 { return max(n, -n) }
