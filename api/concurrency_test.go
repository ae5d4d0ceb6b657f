package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
)

// numbered is a snapshot in which everything says n.
func numbered(n int64) *codecs.Counts {
	s := snapshot()
	s.Position.Next[0] = n
	s.All.Counts = []codecs.StatusCount{{Status: "ASSIGNED", Live: 1}, {Status: "CREATED", Live: n}, {Status: "DELIVERED", Closed: n}}
	s.Groups = map[string]codecs.ScopeCounts{
		"region=a": {Counts: []codecs.StatusCount{{Status: "CREATED", Live: n}, {Status: "DELIVERED", Closed: n}}},
		"region=b": {Counts: []codecs.StatusCount{{Status: "ASSIGNED", Live: 1}}},
	}
	return s
}

// All numbers of an answer are of its position, and positions do not go back,
// while the snapshot is swapped under the readers.
func TestAnswersAreOfOnePositionWhileSnapshotsAreSwapped(t *testing.T) {
	t.Parallel()
	const readers, reads = 8, 1250
	w := newWorld(t)
	w.counts.set(numbered(1))
	a := w.api(t)
	stop := make(chan struct{})
	var writer, group sync.WaitGroup
	writer.Go(func() {
		for n := int64(2); ; n++ {
			select {
			case <-stop:
				return
			default:
				w.counts.set(numbered(n))
			}
		}
	})
	for i := range readers {
		group.Go(func() {
			last := int64(0)
			path := []string{"/v1/counts", "/v1/counts?by=region", "/v1/counts?region=a", "/v1/counts/CREATED"}[i%4]
			for range reads {
				recorder := httptest.NewRecorder()
				a.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
				var got struct {
					Counts, Closed map[string]int64
					Live, Count    int64
					Groups         []struct{ Live int64 }
					AsOf           struct{ Position string } `json:"as_of"`
				}
				if err := json.Unmarshal(recorder.Body.Bytes(), &got); err != nil {
					t.Errorf("%s: %v", recorder.Body, err)
					return
				}
				p, err := codecs.ParsePosition(got.AsOf.Position, 3)
				if err != nil {
					t.Error(err)
					return
				}
				n := p.Next[0]
				switch {
				case path == "/v1/counts/CREATED" && got.Count != n,
					path != "/v1/counts/CREATED" && (got.Counts["CREATED"] != n || got.Closed["DELIVERED"] != n),
					path == "/v1/counts" && got.Live != n+1,
					len(got.Groups) == 2 && got.Groups[0].Live+got.Groups[1].Live != got.Live,
					n < last:
					t.Errorf("%s after %d: %s", path, last, recorder.Body)
					return
				}
				last = n
			}
		})
	}
	group.Wait()
	close(stop)
	writer.Wait()
	require.False(t, t.Failed())
}
