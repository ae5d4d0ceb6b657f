package processors_test

import (
	"maps"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/processors"
	"deliverystat/processors/exactlyonce"
)

// firstStage is a fake runtime of latest-delivery with what tests need to look
// into it.
type firstStage struct {
	*fakeRuntime
	cfg processors.LatestDeliveryConfig
	now time.Time
}

func newFirstStage(t failer, s *processors.Settings, records ...fakeRecord) *firstStage {
	decoder, err := codecs.NewDecoder(codecs.FormatAuto, s.Lifecycle)
	require.NoError(t, err)
	f := &firstStage{now: epochStart}
	f.cfg = processors.LatestDeliveryConfig{
		Topics:   processors.NewTopics("", ""),
		Settings: s,
		Decoder:  decoder,
		Now:      func() time.Time { return f.now },
	}
	processors.ShareDrifts(&f.cfg)
	input := &fakeTopic{name: f.cfg.Topics.Events, id: "events-1", records: records}
	f.fakeRuntime = newFakeRuntime(t, input, func() (exactlyonce.State, error) { return processors.NewDeliveryState(f.cfg) })
	return f
}

// run assigns the partition and drains the input.
func run(t failer, s *processors.Settings, records ...fakeRecord) *firstStage {
	f := newFirstStage(t, s, records...)
	f.assign()
	f.drain()
	return f
}

// runAudit lets an audit begin and end.
func (f *firstStage) runAudit() {
	f.now = f.now.Add(2 * time.Hour)
	f.step(0)
	processors.AwaitRecount(f.state)
	f.step(0)
}

// produce appends records to the input.
func (f *firstStage) produce(records ...fakeRecord) {
	f.input.records = append(f.input.records, records...)
}

// progress is the committed progress row.
func (f *firstStage) progress() *codecs.Progress {
	p, err := codecs.ReadProgress(f.table[codecs.ProgressKey])
	require.NoError(f.t, err)
	return p
}

// deliveries are the committed rows as readers see them.
func (f *firstStage) deliveries() map[string]codecs.Delivery {
	deliveries := map[string]codecs.Delivery{}
	progress := f.progress()
	for key, value := range f.table {
		if key == codecs.ProgressKey {
			continue
		}
		row, err := f.cfg.Settings.Lifecycle.ReadRow(value)
		require.NoError(f.t, err)
		if d, ok := f.cfg.Settings.Deliver(key, row, progress); ok {
			deliveries[key] = d
		}
	}
	return deliveries
}

// statuses are the names of the statuses of the committed deliveries.
func (f *firstStage) statuses() map[string]string {
	statuses := map[string]string{}
	for id, d := range f.deliveries() {
		statuses[id] = f.cfg.Settings.Lifecycle.Name(d.Status)
	}
	return statuses
}

// rowKeys are the keys of the committed rows, forgotten ones included.
func (f *firstStage) rowKeys() []string {
	keys := slices.Sorted(maps.Keys(f.table))
	return slices.DeleteFunc(keys, func(k string) bool { return k == codecs.ProgressKey })
}

// tallies are all tallies that were committed.
func (f *firstStage) tallies() []*codecs.Tally {
	var tallies []*codecs.Tally
	for _, rec := range f.to(f.cfg.Topics.Tallies) {
		t, err := codecs.ReadTally(rec.Value)
		require.NoError(f.t, err)
		require.Equal(f.t, processors.TallyKey(t.Partition), rec.Key)
		tallies = append(tallies, t)
	}
	return tallies
}

// letters are the dead letters that were committed.
func (f *firstStage) letters() []exactlyonce.Emitted { return f.to(f.cfg.Topics.DeadLetters) }

// reasons are the reasons of the dead letters, in order.
func (f *firstStage) reasons() []codecs.Reason {
	var reasons []codecs.Reason
	for _, rec := range f.letters() {
		reasons = append(reasons, codecs.Reason(rec.Headers[processors.HeaderReason]))
	}
	return reasons
}

// counts are counts by scope, and by status name with "live " or "closed "
// before it.
type counts map[string]map[string]int64

func (c counts) add(scope string, list []codecs.StatusCount) {
	if c[scope] == nil {
		c[scope] = map[string]int64{}
	}
	for _, n := range list {
		if n.Live != 0 {
			c[scope]["live "+n.Status] += n.Live
		}
		if n.Closed != 0 {
			c[scope]["closed "+n.Status] += n.Closed
		}
	}
}

// told are the counts that the tallies of one partition add up to.
func told(tallies []*codecs.Tally) counts {
	c := counts{}
	for _, t := range tallies {
		if t.Full && t.Part == 0 {
			c = counts{}
		}
		for _, sc := range t.Scopes {
			delete(c, sc.Scope)
			if len(sc.Counts) > 0 || sc.Scope == processors.AllScope {
				c.add(sc.Scope, sc.Counts)
			}
		}
	}
	return c
}

// recount counts the committed rows one by one.
func (f *firstStage) recount() counts {
	c := counts{processors.AllScope: {}}
	for _, d := range f.deliveries() {
		n := codecs.StatusCount{Status: f.cfg.Settings.Lifecycle.Name(d.Status), Live: 1}
		if d.Closed {
			n.Live, n.Closed = 0, 1
		}
		c.add(processors.AllScope, []codecs.StatusCount{n})
		for _, dim := range f.cfg.Settings.Dimensions {
			c.add(processors.DimensionScope(dim, d.Attributes[dim]), []codecs.StatusCount{n})
		}
	}
	return c
}

// secondStage is a fake runtime of count-per-status that reads tallies.
type secondStage struct {
	*fakeRuntime
	cfg processors.CountPerStatusConfig
}

func newSecondStage(t failer, partitions int32) *secondStage {
	s := &secondStage{cfg: processors.CountPerStatusConfig{Topics: processors.NewTopics("", ""), InputPartitions: partitions}}
	input := &fakeTopic{name: s.cfg.Topics.Tallies, id: "tallies-1"}
	s.fakeRuntime = newFakeRuntime(t, input, func() (exactlyonce.State, error) { return processors.NewCountsState(s.cfg) })
	return s
}

// feed appends tallies to the input.
func (s *secondStage) feed(tallies ...*codecs.Tally) {
	for _, t := range tallies {
		s.feedRaw(processors.TallyKey(t.Partition), codecs.AppendTally(nil, t))
	}
}

func (s *secondStage) feedRaw(key string, value []byte) {
	s.input.records = append(s.input.records, fakeRecord{key: key, value: value})
}

// snapshot is what a reader of the changelog sees at its end.
func (s *secondStage) snapshot() *codecs.Counts {
	c, err := processors.NewCountsTable().Apply(s.log)
	require.NoError(s.t, err)
	return c
}

// counts are the committed totals by scope.
func (s *secondStage) counts() counts {
	snapshot := s.snapshot()
	c := counts{}
	c.add(processors.AllScope, snapshot.All.Counts)
	for scope, sc := range snapshot.Groups {
		c.add(scope, sc.Counts)
	}
	return c
}
