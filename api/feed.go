package api

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"deliverystat/codecs"
)

const (
	// feedEvery is how often the feed looks for other counts, so that a stream has
	// at most four events a second.
	feedEvery = 250 * time.Millisecond
	// heartbeat is after how long without other counts an event is sent all the
	// same: it says how old the counts are by now, and finds out who went away.
	heartbeat = 5 * time.Second
)

// feed wakes the clients of the stream when there is something to say. It works
// while there are any.
//
// Clients take the present moment when they are ready for it: nothing is queued
// for a slow one, and all that ask in one moment share one encoding.
type feed struct {
	look func() *moment // at the present snapshot

	mu      sync.Mutex
	current *moment
	next    chan struct{} // closed when current is another one
	clients int
	stop    context.CancelFunc
	stopped chan struct{}
}

// join returns the present moment, and a channel that is closed when a later one
// has something to say. Every join is followed by a leave.
func (f *feed) join() (*moment, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	// The age of what others were told may be seconds old. Looking under the lock
	// keeps moments in order, so that no client ever goes back.
	now := f.look()
	f.clients++
	if f.clients == 1 {
		ctx, stop := context.WithCancel(context.Background())
		f.current, f.next = now, make(chan struct{})
		f.stop, f.stopped = stop, make(chan struct{})
		go f.run(ctx, f.stopped)
	}
	return now, f.next
}

// leave ends what join began.
func (f *feed) leave() {
	f.mu.Lock()
	f.clients--
	last, stop, stopped := f.clients == 0, f.stop, f.stopped
	f.mu.Unlock()
	if last {
		stop()
		<-stopped
	}
}

// now returns the present moment and a channel as join does.
func (f *feed) now() (*moment, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.current, f.next
}

// run wakes the clients until ctx ends.
func (f *feed) run(ctx context.Context, stopped chan<- struct{}) {
	defer close(stopped)
	ticker := time.NewTicker(feedEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			f.wake(ctx)
		}
	}
}

// wake looks, and wakes the clients if there is something to say.
func (f *feed) wake(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil { // another run has begun since
		return
	}
	now := f.look()
	if now.snapshot == f.current.snapshot && now.tooStale == f.current.tooStale && now.at.Sub(f.current.at) < heartbeat {
		return
	}
	f.current = now
	close(f.next)
	f.next = make(chan struct{})
}

// moment is what the stream can say at one time. Each event is encoded once,
// however many clients there are.
type moment struct {
	at       time.Time
	snapshot *codecs.Counts
	bodies   *bodies
	asOf     []byte // the as_of object
	tooStale bool   // beyond Options.MaxStaleness, or nothing is proved

	mu     sync.Mutex
	events map[bodyKey][]byte
}

// look makes the moment of now. There must have been a snapshot.
func (a *API) look() *moment {
	snapshot := a.options.Counts.Snapshot()
	f := a.freshnessOf(snapshot.Position)
	m := &moment{
		at: time.Now(), snapshot: snapshot, bodies: a.bodiesOf(snapshot),
		tooStale: !f.known || f.staleness > a.options.MaxStaleness,
		events:   map[bodyKey][]byte{},
	}
	m.asOf = a.asOfTail(slices.Clip(m.bodies.asOf), f)
	return m
}

// counts returns the event with the counts that key names.
func (m *moment) counts(a *API, key bodyKey) []byte {
	key = m.bodies.known(key)
	m.mu.Lock()
	defer m.mu.Unlock()
	if made := m.events[key]; made != nil {
		return made
	}
	head := m.bodies.get(a, key).head
	event := make([]byte, 0, len(head)+len(m.asOf)+len(m.bodies.position)+128)
	event = append(event, "event: counts\nid: "...)
	event = append(event, eventID(m.snapshot.Position)...)
	event = append(event, "\ndata: "...)
	event = append(event, head...)
	event = append(event, `,"as_of":`...)
	event = append(event, m.asOf...)
	event = append(event, "}\n\n"...)
	if len(m.events) < maxBodies {
		m.events[key] = event
	}
	return event
}

// age returns the event that says how old the counts are by now.
func (m *moment) age() []byte {
	event := append([]byte(`event: as_of`+"\n"+`data: {"as_of":`), m.asOf...)
	return append(event, "}\n\n"...)
}

// unavailable returns the event that says why there are no counts.
func (m *moment) unavailable(t problemType, detail string) []byte {
	data, err := json.Marshal(&problem{Type: t.Type, Title: t.Title, Status: t.Status, Detail: detail, AsOf: m.asOf})
	if err != nil { // only strings and numbers
		panic(err)
	}
	event := append([]byte("event: unavailable\ndata: "), data...)
	return append(event, "\n\n"...)
}
