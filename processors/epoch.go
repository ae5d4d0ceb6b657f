package processors

import (
	"strconv"

	"deliverystat/codecs"
	"deliverystat/processors/exactlyonce"
)

// epoch is what one epoch of a partition of latest-delivery changed.
type epoch struct {
	number    uint32 // from 1, within one assignment
	consumed  bool   // a record was read, of whatever kind
	changes   []change
	deletes   []string // forgotten rows of former epochs
	letters   []deadLetter
	summaries []summary
	stats     epochStats

	// Set at the cut.
	progress *codecs.Progress
	tally    *codecs.Tally // nil if there is nothing to tell
	check    *codecs.Tally // of an audit that begins, nil if none does
}

// change is one row that the epoch changed, encoded; a nil row is a delete.
type change struct {
	key string
	row []byte
}

func newEpoch(number uint32, l *codecs.Lifecycle) *epoch {
	return &epoch{number: number, stats: newEpochStats(l)}
}

// change notes the row of e, which replaces one that the epoch changed before.
func (ep *epoch) change(e *entry) {
	if e.epoch == ep.number {
		ep.changes[e.slot].row = e.row
		return
	}
	e.epoch, e.slot = ep.number, int32(len(ep.changes))
	ep.changes = append(ep.changes, change{e.key, e.row})
}

// recycle empties the epoch for another use, and lets go of what it held.
func (ep *epoch) recycle() {
	clear(ep.changes)
	clear(ep.letters)
	clear(ep.summaries)
	ep.stats.reset()
	*ep = epoch{changes: ep.changes[:0], letters: ep.letters[:0], summaries: ep.summaries[:0], stats: ep.stats}
}

// deliveryEpoch writes an epoch of latest-delivery.
type deliveryEpoch struct {
	*epoch
	settings *Settings
	topics   *Topics
}

// Write implements exactlyonce.Epoch. The progress row comes last, so that
// whoever reads it has read all that it speaks of.
func (ep deliveryEpoch) Write(w *exactlyonce.Writer) error {
	for _, c := range ep.changes {
		w.Row(c.key, c.row)
	}
	for _, key := range ep.deletes {
		w.Row(key, nil)
	}
	w.Row(codecs.ProgressKey, codecs.AppendProgress(nil, ep.progress))
	for _, tally := range []*codecs.Tally{ep.tally, ep.check} {
		if tally == nil {
			continue
		}
		key := TallyKey(tally.Partition)
		for _, part := range SplitTally(tally, maxValueBytes) {
			w.Record(ep.topics.Tallies, key, codecs.AppendTally(nil, part), nil)
		}
	}
	for _, sum := range ep.summaries {
		w.Record(ep.topics.Summaries, sum.key, sum.value, nil)
	}
	for i := range ep.letters {
		key, value, headers := ep.letters[i].record()
		w.Record(ep.topics.DeadLetters, key, value, headers)
	}
	return nil
}

// failedEpoch is an epoch that could not be cut.
type failedEpoch struct{ err error }

// Write implements exactlyonce.Epoch.
func (ep failedEpoch) Write(*exactlyonce.Writer) error { return ep.err }

// TallyKey is the record key of the tallies of one source partition.
func TallyKey(partition int32) string { return strconv.Itoa(int(partition)) }
