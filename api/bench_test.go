package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/api"
	"deliverystat/codecs"
)

// discard is a ResponseWriter that keeps nothing.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

// wideWorld is an API over an input of n partitions, with n regions.
func wideWorld(t testing.TB, n int) *api.API {
	t.Helper()
	w := newWorld(t)
	s := snapshot()
	s.Position = codecs.Position{TopicID: "t1", Next: make([]int64, n)}
	for p := range s.Position.Next {
		s.Position.Next[p] = 1_000_000 + int64(p)
		scope := fmt.Sprintf("region=r%d", p)
		s.Groups[scope] = codecs.ScopeCounts{Scope: scope, Counts: []codecs.StatusCount{{Status: "CREATED", Live: 1}}}
	}
	w.counts.set(s)
	return w.api(t)
}

// read answers one request without keeping the answer.
func read(a *api.API, r *http.Request) {
	a.ServeHTTP(&discard{http.Header{}}, r)
}

func BenchmarkCounts(b *testing.B) {
	for _, partitions := range []int{8, 64, 1024} {
		for _, query := range []string{"", "?by=region"} {
			b.Run(fmt.Sprintf("partitions=%d%s", partitions, query), func(b *testing.B) {
				a := wideWorld(b, partitions)
				r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/v1/counts"+query, nil)
				b.ReportAllocs()
				for b.Loop() {
					read(a, r)
				}
			})
		}
	}
}

// The body is encoded once per snapshot: a read costs the same allocations
// however many partitions and groups there are.
func TestReadsDoNotAllocateByPartition(t *testing.T) { //nolint:paralleltest // AllocsPerRun would count what runs beside it
	if raceEnabled {
		t.Skip("the race detector makes pools drop what they are given, so that allocations are random")
	}
	allocations := func(partitions int, query string) float64 {
		a := wideWorld(t, partitions)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/counts"+query, nil)
		return testing.AllocsPerRun(200, func() { read(a, r) })
	}
	for _, query := range []string{"", "?by=region", "?region=seoul"} {
		// One more or less: the pools lose a buffer to a collection now and then.
		require.InDelta(t, allocations(4, query), allocations(2048, query), 1, query)
	}
}
