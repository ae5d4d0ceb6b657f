package api

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"deliverystat/codecs"
)

// streamPatience is how long a client may take to accept an event. One that
// takes longer is cut off: it continues where it was when it comes back.
const streamPatience = 10 * time.Second

const pathStream = "/v1/counts/stream"

const headerLastEventID = "Last-Event-ID"

// streamCounts answers GET /v1/counts/stream.
func (a *API) streamCounts(w http.ResponseWriter, r *http.Request) {
	snapshot := a.complete()
	q, faults := parseQuery(r.URL.RawQuery, 0, accepts{dimensions: a.options.Dimensions, params: []string{paramBy}})
	since, err := parseEventID(r.Header.Get(headerLastEventID))
	if err != nil {
		faults = append(faults, fault{headerLastEventID, clip(err.Error())})
	}
	if len(faults) > 0 {
		fail(w, r, problemInvalidParameters, summary(faults), withFaults(faults))
		return
	}
	if snapshot == nil {
		failRecovering(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // or nginx keeps events back
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	a.stream.clients.Inc()
	defer a.stream.clients.Dec()
	s := stream{api: a, query: q, key: q.countsKey(), since: since, w: unwrap(w)}
	if err := s.run(r); errors.Is(err, os.ErrDeadlineExceeded) {
		a.stream.dropped.Inc()
	}
}

// stream is what one client is sent.
type stream struct {
	api   *API
	query query
	key   bodyKey
	since codecs.Position // nothing before is sent
	w     http.ResponseWriter

	sent    *codecs.Counts // the newest counts sent; nil after other events than as_of
	problem problemType    // what the last event complained of
	said    time.Time      // when it was made
}

// run sends until the client goes away, loses its token, does not accept an
// event in time (the error), or the API drains.
func (s *stream) run(r *http.Request) error {
	now, next := s.api.feed.join()
	defer s.api.feed.leave()
	// Those whom one replica's end cuts off at once should not come back at once.
	retry := fmt.Appendf(nil, "retry: %d\n", 1000+rand.IntN(2000))
	if err := s.write(append(retry, s.event(now)...)); err != nil {
		return err
	}
	for {
		select {
		case <-r.Context().Done():
			return nil
		case <-s.api.draining.Done():
			return nil
		case <-next:
		}
		if !s.api.authorized(r) {
			return nil
		}
		now, next = s.api.feed.now()
		if err := s.write(s.event(now)); err != nil {
			return err
		}
	}
}

// write sends an event, if there is one.
func (s *stream) write(event []byte) error {
	if len(event) == 0 {
		return nil
	}
	// The deadline replaces the one of the server for whole answers.
	control := http.NewResponseController(s.w)
	if err := control.SetWriteDeadline(time.Now().Add(streamPatience)); err != nil {
		return err
	}
	if _, err := s.w.Write(event); err != nil {
		return err
	}
	return control.Flush()
}

// unwrap returns the writer of the server, since chi's drops the error of a flush.
func unwrap(w http.ResponseWriter) http.ResponseWriter {
	if wrapped, ok := w.(middleware.WrapResponseWriter); ok {
		return wrapped.Unwrap()
	}
	return w
}

// event returns what is to be said at a moment, nil if that was said before.
func (s *stream) event(now *moment) []byte {
	why, detail := s.obstacle(now)
	if why == (problemType{}) && now.snapshot != s.sent {
		s.sent, s.since, s.problem, s.said = now.snapshot, codecs.Position{}, why, now.at
		return now.counts(s.api, s.key)
	}
	if why == s.problem && now.at.Sub(s.said) < feedEvery {
		return nil // it came in between, and knows
	}
	s.problem, s.said = why, now.at
	if why == (problemType{}) {
		return now.age()
	}
	s.sent = nil
	return now.unavailable(why, detail)
}

// obstacle returns why the counts of a moment are not sent.
func (s *stream) obstacle(now *moment) (why problemType, detail string) {
	switch {
	case now.tooStale:
		return problemTooStale, "how old the counts are is not proved, or more than " + s.api.options.MaxStaleness.String()
	case s.query.grouped() && !now.snapshot.Uniform:
		return problemGroupsUnavailable, detailGroups
	case s.since.TopicID == now.snapshot.Position.TopicID && !now.snapshot.Position.Reaches(s.since):
		return problemPositionNotReached, "this replica has not reached position " + s.since.String() + " of the last event yet"
	default:
		return problemType{}, ""
	}
}

// eventID names a position for clients to come back to: the position within one
// life of the topic, and which one.
func eventID(p codecs.Position) string { return p.String() + "@" + p.TopicID }

// parseEventID reads what eventID wrote; nothing is the position before all.
func parseEventID(id string) (codecs.Position, error) {
	if id == "" {
		return codecs.Position{}, nil
	}
	offsets, topic, ok := strings.Cut(id, "@")
	if !ok {
		return codecs.Position{}, fmt.Errorf("%q is no id of an event of this stream", clip(id))
	}
	p, err := codecs.ParsePosition(offsets, 0)
	if err != nil && offsets != "" {
		return codecs.Position{}, fmt.Errorf("is no id of an event of this stream: %w", err)
	}
	p.TopicID = topic
	return p, nil
}

// streamMetrics are the metrics of the stream, whose requests last too long to
// be among the others.
type streamMetrics struct {
	clients prometheus.Gauge
	dropped prometheus.Counter
}

func newStreamMetrics(registerer prometheus.Registerer) streamMetrics {
	with := promauto.With(registerer)
	return streamMetrics{
		clients: with.NewGauge(prometheus.GaugeOpts{
			Name: "deliverystat_stream_clients",
			Help: "Clients of /v1/counts/stream on this replica.",
		}),
		dropped: with.NewCounter(prometheus.CounterOpts{
			Name: "deliverystat_stream_dropped_total",
			Help: "Clients of /v1/counts/stream that were cut off since they did not accept an event in time.",
		}),
	}
}
