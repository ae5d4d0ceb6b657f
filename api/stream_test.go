package api_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"deliverystat/api"
	"deliverystat/codecs"
)

const streamPath = "/v1/counts/stream"

// event is a server-sent event.
type event struct {
	kind, id string
	data     string
	after    time.Duration // since the stream was opened
}

// subscription reads a stream.
type subscription struct {
	t      testing.TB
	lines  *bufio.Scanner
	opened time.Time
}

// subscribe opens a stream.
func (s *served) subscribe(path string, headers ...string) *subscription {
	s.t.Helper()
	opened := time.Now()
	stream := s.read(s.get(path, headers...)) //nolint:bodyclose // closed with the test
	stream.opened = opened
	return stream
}

// read reads an answer as a stream.
func (s *served) read(response *http.Response) *subscription {
	s.t.Helper()
	require.Equal(s.t, http.StatusOK, response.StatusCode)
	require.Equal(s.t, "text/event-stream", response.Header.Get("Content-Type"))
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	return &subscription{s.t, lines, time.Now()}
}

// read returns the next event, or false when the stream has ended.
func (s *subscription) read() (event, bool) {
	s.t.Helper()
	var e event
	for s.lines.Scan() {
		field, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch field {
		case "event":
			e.kind = value
		case "id":
			e.id = value
		case "data":
			e.data = value
		case "":
			e.after = time.Since(s.opened)
			return e, true
		case "retry":
		default:
			s.t.Fatalf("line %q of a stream", s.lines.Text())
		}
	}
	return event{}, false
}

// expect reads an event of this kind, which comes so long after the stream was
// opened, and holds its data against the description.
func (s *subscription) expect(kind string, after time.Duration) event {
	s.t.Helper()
	e, ok := s.read()
	require.True(s.t, ok, "the stream has ended")
	require.Equal(s.t, kind, e.kind, e.data)
	require.Equal(s.t, after, e.after)
	schema := map[string]string{"counts": "Counts", "as_of": "StreamAsOf", "unavailable": "StreamUnavailable"}[kind]
	_, faults := describe().schemas.ValidateSchemaBytes(describe().model.Components.Schemas.GetOrZero(schema).Schema(), []byte(e.data))
	for _, f := range faults {
		s.t.Errorf("%s: %s: %s %v", e.data, f.Message, f.Reason, f.SchemaValidationErrors)
	}
	require.Equal(s.t, kind == "counts", e.id != "", "the id belongs to counts")
	return e
}

// expectProblem is expect for an unavailable of this problem type.
func (s *subscription) expectProblem(problem string, after time.Duration) {
	s.t.Helper()
	var data struct{ Type string }
	require.NoError(s.t, json.Unmarshal([]byte(s.expect("unavailable", after).data), &data))
	require.Equal(s.t, "/problems/"+problem, data.Type)
}

// bubble runs a test in a bubble of its own time, with a schema validator that
// was made outside of it.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	describe()
	synctest.Test(t, f)
}

// moved is the snapshot with partition 2 at next.
func moved(next int64) *codecs.Counts {
	s := snapshot()
	s.Position.Next[2] = next
	return s
}

func TestStreamBeginsWithTheAnswerOfCounts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		s := serve(t, w.api(t))
		for _, query := range []string{"", "?region=seoul", "?region=nowhere", "?by=region", "?by=service"} {
			e := s.subscribe(streamPath+query).expect("counts", 0)
			body, err := io.ReadAll(s.get("/v1/counts" + query).Body) //nolint:bodyclose // closed with the test
			require.NoError(t, err)
			require.JSONEq(t, string(body), e.data)
			require.Equal(t, "0:1042,1:998,2:17@t1", e.id)
		}
	})
}

func TestStreamIsDescribed(t *testing.T) {
	t.Parallel()
	a := newWorld(t).api(t)
	a.Drain() // so that it ends after the first event
	got := get(t, a, streamPath, "Accept-Encoding", "gzip")
	require.Regexp(t, "^retry: [12][0-9]{3}\nevent: counts\nid: ", string(got.body))
	require.Empty(t, got.Header.Get("Content-Encoding"))

	head := exchange(t, a, httptest.NewRequestWithContext(t.Context(), http.MethodHead, streamPath, nil))
	require.Equal(t, "text/event-stream", head.Header.Get("Content-Type"))
}

func TestStreamSaysWhatChangedAtMostFourTimesASecond(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		s := serve(t, w.api(t)).subscribe(streamPath)
		s.expect("counts", 0)
		go func() {
			for next := int64(18); next < 18+200; next++ {
				<-time.After(10 * time.Millisecond)
				w.counts.set(moved(next))
			}
		}()
		last := int64(17)
		for i := 1; i <= 8; i++ {
			e := s.expect("counts", time.Duration(i)*250*time.Millisecond)
			p, err := codecs.ParsePosition(strings.TrimSuffix(e.id, "@t1"), 3)
			require.NoError(t, err)
			require.Greater(t, p.Next[2], last, "goes back or stands still")
			last = p.Next[2]
		}
		require.Greater(t, last, int64(18+150), "the newest, not the next")
		if last < 217 { // the last change may or may not be in the eighth event
			s.expect("counts", 2250*time.Millisecond)
			s.expect("as_of", 7250*time.Millisecond)
			return
		}
		s.expect("as_of", 7*time.Second)
	})
}

func TestStreamHasAHeartbeat(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		server := serve(t, w.api(t))
		s := server.subscribe(streamPath)
		s.expect("counts", 0)
		s.expect("as_of", 5*time.Second)
		w.freshness.set(7*time.Second, true)
		e := s.expect("as_of", 10*time.Second)
		require.Contains(t, e.data, `"staleness_seconds":7,`)

		// Who comes in between waits no longer than the others.
		<-time.After(time.Second)
		late := server.subscribe(streamPath)
		late.expect("counts", 0)
		late.expect("as_of", 4*time.Second)
	})
}

func TestStreamSaysWhenTheCountsAreTooOld(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		s := serve(t, w.api(t)).subscribe(streamPath)
		s.expect("counts", 0)
		<-time.After(100 * time.Millisecond)
		w.freshness.set(5*time.Minute+1, true)
		s.expectProblem("too-stale", 250*time.Millisecond)
		s.expectProblem("too-stale", 5250*time.Millisecond)
		w.freshness.set(0, false)
		s.expectProblem("too-stale", 10250*time.Millisecond)
		w.freshness.set(5*time.Minute, true)
		s.expect("counts", 10500*time.Millisecond)
	})
}

func TestStreamSaysWhenThereAreNoGroups(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		server := serve(t, w.api(t))
		s, total := server.subscribe(streamPath+"?by=region"), server.subscribe(streamPath)
		s.expect("counts", 0)
		total.expect("counts", 0)
		mixed := moved(18)
		mixed.Uniform = false
		w.counts.set(mixed)
		s.expectProblem("groups-unavailable", 250*time.Millisecond)
		total.expect("counts", 250*time.Millisecond)
		w.counts.set(moved(19))
		s.expect("counts", 500*time.Millisecond)
	})
}

func TestStreamIsNeverOlderThanTheLastEvent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		server := serve(t, w.api(t))
		for _, id := range []string{"0:1042,1:998,2:17@t1", "2:16@t1", "@t1", "0:9999@t0", "5:1@"} {
			require.Equal(t, "0:1042,1:998,2:17@t1", server.subscribe(streamPath, "Last-Event-ID", id).expect("counts", 0).id)
		}
		s := server.subscribe(streamPath, "Last-Event-ID", "0:1042,2:19@t1")
		s.expectProblem("position-not-reached", 0)
		w.counts.set(moved(18))
		s.expectProblem("position-not-reached", 250*time.Millisecond)
		w.counts.set(moved(20))
		require.Equal(t, "0:1042,1:998,2:20@t1", s.expect("counts", 500*time.Millisecond).id)
	})
}

func TestStreamGoesOnInTheNextLifeOfTheTopic(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		s := serve(t, w.api(t)).subscribe(streamPath, "Last-Event-ID", "2:17@t1")
		s.expect("counts", 0)
		anew := snapshot()
		anew.Position = codecs.Position{TopicID: "t2", Next: []int64{1, 0, 0}}
		w.counts.set(anew)
		require.Equal(t, "0:1,1:0,2:0@t2", s.expect("counts", 250*time.Millisecond).id)
	})
}

func TestFaultsOfAStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{"x", "2:17", "2:-1@t1", "2:1,2:1@t1", "99999999:1@t1"} {
		object := requireProblem(t, get(t, w.api(t), streamPath, "Last-Event-ID", id), "invalid-parameters")
		require.Equal(t, "Last-Event-ID", object["errors"].([]any)[0].(map[string]any)["parameter"], id)
	}
	for _, query := range []string{"?colour=red", "?by=status", "?region=a&by=region", "?min_position=0:1", "?max_staleness=1s", "?access_token=x"} {
		requireProblem(t, get(t, w.api(t), streamPath+query), "invalid-parameters")
	}
	w.counts.set(nil)
	requireProblem(t, get(t, w.api(t), streamPath), "recovering")
}

func TestStreamsEndWhenTheAPIDrains(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newWorld(t).api(t)
		server := serve(t, a)
		var streams []*subscription
		for range 3 {
			s := server.subscribe(streamPath)
			s.expect("counts", 0)
			streams = append(streams, s)
		}
		<-time.After(time.Second)
		a.Drain()
		for _, s := range streams {
			_, more := s.read()
			require.False(t, more)
			require.Equal(t, time.Second, time.Since(s.opened))
			require.NoError(t, s.lines.Err(), "cut, not ended")
		}
	})
}

// The client that does not read blocks its own connection, and nothing else.
func TestASlowClientIsDroppedAndHoldsUpNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		registry := prometheus.NewPedanticRegistry()
		w.options.Registerer = registry
		server := serve(t, w.api(t))
		slow, err := server.dial(t.Context(), "", "")
		require.NoError(t, err)
		_, err = io.WriteString(slow, "GET "+streamPath+" HTTP/1.1\r\nHost: x\r\n\r\n")
		require.NoError(t, err)
		began := time.Now()
		s := server.subscribe(streamPath)
		s.expect("counts", 0)
		for i := 1; i <= 60; i++ {
			w.counts.set(moved(int64(17 + i)))
			s.expect("counts", time.Duration(i)*250*time.Millisecond)
		}
		require.Equal(t, 15*time.Second, time.Since(began))
		_, err = io.Copy(io.Discard, slow) // ends only if the server has hung up
		require.NoError(t, err)
		require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
			# HELP deliverystat_stream_clients Clients of /v1/counts/stream on this replica.
			# TYPE deliverystat_stream_clients gauge
			deliverystat_stream_clients 1
			# HELP deliverystat_stream_dropped_total Clients of /v1/counts/stream that were cut off since they did not accept an event in time.
			# TYPE deliverystat_stream_dropped_total counter
			deliverystat_stream_dropped_total 1
		`), "deliverystat_stream_clients", "deliverystat_stream_dropped_total"))
	})
}

func TestAStreamEndsWhenItsTokenIsWithdrawn(t *testing.T) {
	path := tokenFile(t, "first\nsecond\n")
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		var err error
		w.options.Tokens, err = api.NewTokens(path, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		server := serve(t, w.api(t))
		first := server.subscribe(streamPath, "Authorization", "Bearer first")
		second := server.subscribe(streamPath, "Authorization", "Bearer second")
		first.expect("counts", 0)
		second.expect("counts", 0)
		require.NoError(t, os.WriteFile(path, []byte("second\n"), 0o600))
		second.expect("as_of", 5*time.Second)
		_, more := first.read()
		require.False(t, more)
	})
}

func TestStreamsHavePlacesOfTheirOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.options.MaxStreams, w.options.MaxInFlight = 2, 1
		a := w.api(t)
		server := serve(t, a)
		for range 2 {
			server.subscribe(streamPath).expect("counts", 0)
		}
		requireProblem(t, get(t, a, streamPath), "overloaded")
		require.Equal(t, http.StatusOK, get(t, a, "/v1/counts").StatusCode)
	})
}

// Streams come and go while the counts move: none goes back or misses the end,
// and nothing stays behind (the bubble would say so).
func TestManyStreamsComeAndGo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		server := serve(t, w.api(t))
		done := make(chan error)
		const clients, end = 50, 17 + 400
		for i := range clients {
			go func() {
				<-time.After(time.Duration(i) * 37 * time.Millisecond)
				done <- server.follow(i%5+2, end) // the first event comes at once, and would let no time pass
			}()
		}
		for next := int64(18); next <= end; next++ {
			<-time.After(10 * time.Millisecond)
			w.counts.set(moved(next))
		}
		for range clients {
			require.NoError(t, <-done)
		}
	})
}

// follow reads streams of so many events, each beginning where the last one
// ended, until partition 2 is at end.
func (s *served) follow(events int, end int64) error {
	id, last := "", int64(0)
	for last < end {
		response := s.get(streamPath, "Last-Event-ID", id)
		lines := bufio.NewScanner(response.Body)
		for n := 0; n < events && lines.Scan(); {
			field, ok := bytes.CutPrefix(lines.Bytes(), []byte("id: "))
			if !ok {
				continue
			}
			id = string(field)
			p, err := codecs.ParsePosition(strings.TrimSuffix(id, "@t1"), 3)
			if err != nil {
				return err
			}
			if p.Next[2] < last {
				return errors.New("goes back to " + id)
			}
			last = p.Next[2]
			n++
			if last == end {
				break
			}
		}
		if err := response.Body.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
	}
	return nil
}
