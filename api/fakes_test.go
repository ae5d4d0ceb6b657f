package api_test

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/api"
	"deliverystat/codecs"
)

// fakeCounts is a Counts whose snapshot tests set.
type fakeCounts struct {
	current atomic.Pointer[codecs.Counts]
	mu      sync.Mutex
	changed chan struct{}
}

func newFakeCounts(c *codecs.Counts) *fakeCounts {
	f := &fakeCounts{changed: make(chan struct{})}
	f.current.Store(c)
	return f
}

func (f *fakeCounts) Snapshot() *codecs.Counts { return f.current.Load() }

func (f *fakeCounts) set(c *codecs.Counts) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.current.Store(c)
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fakeCounts) Wait(ctx context.Context, p codecs.Position) (*codecs.Counts, error) {
	for {
		f.mu.Lock()
		changed := f.changed
		f.mu.Unlock()
		if c := f.Snapshot(); c != nil && c.Position.Reaches(p) {
			return c, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// fakeDeliveries is a Deliveries of one partition of three.
type fakeDeliveries struct {
	mu        sync.Mutex
	rows      map[string]codecs.Delivery
	at        codecs.Position
	notReady  bool
	changed   chan struct{}
	panicking bool
	asked     *codecs.LiveQuery // in the last list
}

func (f *fakeDeliveries) Get(id string) (codecs.Delivery, codecs.Reflected, bool, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.panicking {
		panic("secret of the inside")
	}
	if f.notReady {
		return codecs.Delivery{}, codecs.Reflected{}, false, false
	}
	d, found := f.rows[id]
	return d, codecs.Reflected{Position: f.at, EventTime: newestEvent}, found, true
}

// List answers with all rows, in key order, and notes what was asked.
func (f *fakeDeliveries) List(_ context.Context, q *codecs.LiveQuery) (codecs.LivePage, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = q
	page := codecs.LivePage{Total: int64(len(f.rows)), At: codecs.Reflected{Position: f.at, EventTime: newestEvent}}
	for _, id := range slices.Sorted(maps.Keys(f.rows)) {
		if q.After == nil || id > q.After.ID {
			page.Deliveries = append(page.Deliveries, f.rows[id])
		}
	}
	if len(page.Deliveries) > q.Limit {
		page.Deliveries = page.Deliveries[:q.Limit]
		last := page.Deliveries[q.Limit-1]
		page.Next = &codecs.LiveKey{Since: last.Since, ID: last.ID, Partition: 2}
	}
	return page, !f.notReady
}

func (f *fakeDeliveries) set(at codecs.Position, rows ...codecs.Delivery) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range rows {
		f.rows[d.ID] = d
	}
	f.at = at
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fakeDeliveries) Wait(ctx context.Context, p codecs.Position) error {
	for {
		f.mu.Lock()
		reached, changed := f.at.Reaches(p), f.changed
		f.mu.Unlock()
		if reached {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fakeFreshness is a Freshness that says the same of every position.
type fakeFreshness struct {
	mu sync.Mutex
	judgement
}

type judgement struct {
	lag       int64
	staleness time.Duration
	known     bool
}

func (f *fakeFreshness) Of(codecs.Position) (int64, time.Duration, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lag, f.staleness, f.known
}

func (f *fakeFreshness) set(staleness time.Duration, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.staleness, f.known = staleness, known
}

// world is an API with everything behind it faked.
type world struct {
	counts     *fakeCounts
	deliveries *fakeDeliveries
	freshness  *fakeFreshness
	options    api.Options
}

// at builds a position of topic t1.
func at(next ...int64) codecs.Position { return codecs.Position{TopicID: "t1", Next: next} }

// eventTime is 2026-11-30T01:00:00.123456Z.
var eventTime = time.Date(2026, 11, 30, 1, 0, 0, 123456000, time.UTC).UnixNano()

// newestEvent is the newest event time that reads of rows reflect: that of
// another delivery.
var newestEvent = eventTime + int64(time.Second)

// snapshot is what the fakes show at first: 4 live and 11 closed deliveries, in
// two regions and one without.
func snapshot() *codecs.Counts {
	return &codecs.Counts{
		Position: at(1042, 998, 17), EventTime: eventTime, Complete: true, Uniform: true,
		All: codecs.ScopeCounts{Counts: []codecs.StatusCount{
			{Status: "CANCELLED", Closed: 1}, {Status: "CREATED", Live: 3}, {Status: "DELIVERED", Closed: 10}, {Status: "PICKED_UP", Live: 1},
		}},
		Groups: map[string]codecs.ScopeCounts{
			"region=": {Scope: "region=", Counts: []codecs.StatusCount{{Status: "CREATED", Live: 1}}},
			"region=seoul": {Scope: "region=seoul", Counts: []codecs.StatusCount{
				{Status: "CREATED", Live: 2}, {Status: "DELIVERED", Closed: 9},
			}},
			"region=busan & 부산": {Scope: "region=busan & 부산", Counts: []codecs.StatusCount{
				{Status: "CANCELLED", Closed: 1}, {Status: "DELIVERED", Closed: 1}, {Status: "PICKED_UP", Live: 1},
			}},
		},
	}
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{
		counts: newFakeCounts(snapshot()),
		deliveries: &fakeDeliveries{
			rows: map[string]codecs.Delivery{}, at: at(-1, -1, 17), changed: make(chan struct{}),
		},
		freshness: &fakeFreshness{judgement: judgement{staleness: 40 * time.Millisecond, known: true}},
	}
	w.options = api.Options{
		Counts: w.counts, Deliveries: w.deliveries, Freshness: w.freshness,
		Lifecycle: codecs.BuiltinLifecycle(), Dimensions: []string{"region", "service"},
		StuckAfter:   map[codecs.Status]time.Duration{5: 40 * time.Minute},
		ClosedWindow: 24 * time.Hour, StaleAfter: 30 * time.Second, MaxStaleness: 5 * time.Minute,
		Replica: "deliverystat-0", Logger: slog.New(slog.DiscardHandler),
	}
	return w
}

// api makes the API of the world.
func (w *world) api(t testing.TB) *api.API {
	t.Helper()
	a, err := api.New(w.options)
	require.NoError(t, err)
	return a
}

// blockingCounts tells when it is asked, and answers when it may.
type blockingCounts struct {
	api.Counts
	entered, held chan struct{}
}

func (b *blockingCounts) Snapshot() *codecs.Counts {
	close(b.entered)
	<-b.held
	return b.Counts.Snapshot()
}
