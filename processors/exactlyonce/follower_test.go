package exactlyonce

import (
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A follower that was cut off for so long that deletions may be gone from the log
// begins anew, as one that was stopped for so long does.
func TestAFollowerThatWasCutOffTooLongBeginsAnew(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DefaultNumPartitions(1))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	w := newWorld(t, cluster.ListenAddrs())
	var cut atomic.Bool
	var cuts atomic.Int64
	cluster.ControlKey(int16(kmsg.Fetch), func(request kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		// Nobody but the follower waits so long for records.
		if !cut.Load() || request.(*kmsg.FetchRequest).MaxWaitMillis != int32(followerWait.Milliseconds()) {
			return nil, nil, false
		}
		cuts.Add(1)
		return nil, errors.New("cut off"), true
	})
	r := w.replica(t, "a")
	p := r.start(t)
	w.produce(t, 1000)
	w.waitConsumed(t)
	var log lines
	f, a, stop := w.followWith(t, t.TempDir(), slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), &log), nil)))
	w.waitFollowed(t, f)

	cut.Store(true)
	wait(t, 60*time.Second, func() bool { return cuts.Load() > 0 }, func() string { return "the follower does not read" })
	w.alter(t, w.table(), "delete.retention.ms", "1")
	w.produce(t, 1000)
	w.waitConsumed(t)
	log.wait(t, "older than half the tombstone retention")
	w.alter(t, w.table(), "delete.retention.ms", "604800000")
	cut.Store(false)

	w.waitFollowed(t, f)
	stop()
	p.stop(t)
	require.Empty(t, a.wrong)
	for p := range int32(partitions) {
		require.Equal(t, w.perPart[p], a.sum(p))
	}
}
