package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// moveAfter moves the counts, and deliveries, on to offset next of partition 2
// after d.
func (w *world) moveAfter(d time.Duration, next int64) {
	time.AfterFunc(d, func() {
		s := snapshot()
		s.Position.Next[2] = next
		w.counts.set(s)
		w.deliveries.set(at(-1, -1, next), rowOf("D-1"))
	})
}

func TestWaitingForAPosition(t *testing.T) {
	for _, tt := range []struct {
		path  string
		after time.Duration // when the position is reached; 0 never
		took  time.Duration
		want  string // problem
	}{
		{"/v1/counts?min_position=2:17", 0, 0, ""},
		{"/v1/counts?min_position=0:1042,1:998,2:17&wait=30s", 0, 0, ""},
		{"/v1/counts?min_position=2:18", time.Second, 0, "position-not-reached"},
		{"/v1/counts?min_position=2:18&wait=0s", time.Second, 0, "position-not-reached"},
		{"/v1/counts?min_position=2:18&wait=2s", time.Second, time.Second, ""},
		{"/v1/counts?min_position=2:18&wait=500ms", time.Second, 500 * time.Millisecond, "position-not-reached"},
		{"/v1/counts?min_position=2:18&wait=30s", 0, 30 * time.Second, "position-not-reached"},
		{"/v1/counts?min_position=1:999,2:18&wait=2s", time.Second, 2 * time.Second, "position-not-reached"},
		{"/v1/counts/CREATED?min_position=2:18&wait=2s", time.Second, time.Second, ""},
		{"/v1/counts?by=region&min_position=2:18&wait=2s", time.Second, time.Second, ""},
		{"/v1/deliveries/D-1?min_position=2:18&wait=2s", time.Second, time.Second, ""},
		{"/v1/deliveries/D-1?min_position=2:18", time.Second, 0, "position-not-reached"},
		{"/v1/deliveries/D-1?min_position=2:19&wait=2s", time.Second, 2 * time.Second, "position-not-reached"},
		{"/v1/deliveries/D-1?min_position=2:17", 0, 0, "delivery-not-found"},
	} {
		describe() // outside of the bubble: it starts goroutines
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			if tt.after > 0 {
				w.moveAfter(tt.after, 18)
			}
			start := time.Now()
			a := get(t, w.api(t), tt.path)
			require.Equal(t, tt.took, time.Since(start), tt.path)
			if tt.want != "" {
				requireProblem(t, a, tt.want)
			} else {
				require.Equal(t, http.StatusOK, a.StatusCode, tt.path)
				if tt.after > 0 {
					require.Contains(t, a.object(t)["as_of"].(map[string]any)["position"], "2:18", tt.path)
				}
			}
		})
	}
}

func TestWaitingEndsWhenTheAPIDrains(t *testing.T) {
	describe()
	synctest.Test(t, func(t *testing.T) {
		a := newWorld(t).api(t)
		time.AfterFunc(time.Second, a.Drain)
		start := time.Now()
		requireProblem(t, get(t, a, "/v1/counts?min_position=2:18&wait=30s"), "position-not-reached")
		require.Equal(t, time.Second, time.Since(start))
		// Waiting is over for later requests too; reads go on.
		requireProblem(t, get(t, a, "/v1/deliveries/D-1?min_position=2:18&wait=30s"), "position-not-reached")
		require.Equal(t, time.Second, time.Since(start))
		require.Equal(t, http.StatusOK, get(t, a, "/v1/counts").StatusCode)
	})
}

func TestWaitingEndsWhenTheClientGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newWorld(t).api(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/counts?min_position=2:18&wait=30s", nil)
		a.ServeHTTP(httptest.NewRecorder(), r)
		require.Equal(t, time.Second, time.Since(start))
	})
}
