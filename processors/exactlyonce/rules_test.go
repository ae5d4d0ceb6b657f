package exactlyonce

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func newTestCluster(t *testing.T, brokers []string) *cluster {
	t.Helper()
	c, err := newCluster(ClientConfig{Brokers: brokers, ClientID: "test"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// A local store is as old as the record at its offset. Once that is older than
// half the tombstone retention and others follow, deleted rows could come back.
func TestOldStoresAreNotUsed(t *testing.T) {
	w := newWorld(t, fakeBroker(t))
	topic := w.Input + "-old"
	w.create(t, topic, 1, map[string]*string{"delete.retention.ms": new("3600000")})
	c := newTestCluster(t, w.brokers)
	produce := func(age time.Duration) {
		r := &kgo.Record{Topic: topic, Key: []byte("k"), Value: []byte("v"), Timestamp: time.Now().Add(-age)}
		require.NoError(t, w.client.ProduceSync(t.Context(), r).FirstErr())
	}
	usable := func(offset int64) error {
		return c.usable(t.Context(), topic, 0)(storeMeta{Offset: offset})
	}
	produce(2 * time.Hour)
	require.NoError(t, usable(0), "old, but nothing follows")
	require.ErrorContains(t, usable(1), "beyond the end 1")
	produce(90 * time.Minute)
	require.ErrorContains(t, usable(0), "half the tombstone retention of 1h0m0s")
	produce(time.Minute)
	require.ErrorContains(t, usable(1), "half the tombstone retention")
	require.NoError(t, usable(2))
}

// Goka is told of topics that are not what the graph says, and nothing is
// created.
func TestTopicsThatDoNotFitAreRefused(t *testing.T) {
	w := newWorld(t, fakeBroker(t))
	m := &topicManager{cluster: newTestCluster(t, w.brokers), ctx: t.Context()}
	require.NoError(t, m.EnsureTableExists(w.table(), partitions))
	require.EqualError(t, m.EnsureTableExists(w.table(), 7), fmt.Sprintf("topic %s has %d partitions, want 7", w.table(), partitions))
	require.EqualError(t, m.EnsureTableExists(w.Input, partitions), fmt.Sprintf("table topic %s has cleanup.policy=delete, want compact", w.Input))
	require.Error(t, m.EnsureStreamExists(w.Input+"-absent", 1))
	topics, err := kadm.NewClient(w.client).ListTopics(t.Context())
	require.NoError(t, err)
	require.False(t, topics.Has(w.Input+"-absent"))
}

// A partition whose epoch is far too large waits for the cut, and never beyond
// the end of its session, or goka could not stop it.
func TestFullEpochsBlockTheirPartition(t *testing.T) {
	for name, release := range map[string]func(*shard){
		"until the cut":                func(sh *shard) { sh.cut() },
		"until the end of the session": func(sh *shard) { sh.end() },
	} {
		t.Run(name, func(t *testing.T) {
			sh := newShard(0, 1, nil)
			sh.state = &ledger{started: true}
			sh.inputs = []Input{{Topic: "in"}}
			for range 2 {
				sh.lockForEvent()
				sh.consumed("in", 0)
				sh.mu.Unlock()
			}
			entered := make(chan struct{})
			go func() {
				sh.lockForEvent()
				sh.mu.Unlock()
				close(entered)
			}()
			select {
			case <-entered:
				t.Fatal("the third event of an epoch of one did not wait")
			case <-time.After(20 * time.Millisecond): // long enough for a wrong one to enter
			}
			release(sh)
			<-entered
		})
	}
}

// A transaction carries an offset for every partition that it writes for, also
// where nothing was consumed.
func TestEveryPartOfATransactionHasItsOffset(t *testing.T) {
	idle, busy := newShard(0, 10, nil), newShard(1, 10, nil)
	for _, sh := range []*shard{idle, busy} {
		sh.inputs = []Input{{Topic: "in", Start: 40}}
		sh.state = &ledger{started: true, dirty: map[string]bool{"k": true}, counts: map[string]int{}}
	}
	busy.lockForEvent()
	full := busy.consumed("in", 41)
	busy.mu.Unlock()
	require.False(t, full)
	var tx transaction
	for _, sh := range []*shard{idle, busy} {
		p, ok := sh.cut()
		require.True(t, ok)
		tx.parts = append(tx.parts, p)
	}
	require.NoError(t, tx.write())
	got := map[int32]int64{}
	for _, o := range tx.offsets()["in"] {
		got[o.Partition] = o.Offset
	}
	require.Equal(t, map[int32]int64{0: 40, 1: 42}, got)
	_, ok := idle.cut()
	require.False(t, ok, "nothing more is to be written")
}

// A record that no topic takes is the State's mistake: it is refused before it
// can fail in Kafka.
func TestOversizedRecordsAreRefused(t *testing.T) {
	p := &producer{}
	m := &sarama.ProducerMessage{Topic: "out", Key: sarama.StringEncoder("k"), Value: sarama.ByteEncoder(make([]byte, MaxRecordBytes+4096))}
	err := p.put(t.Context(), m)
	var tooLarge *recordTooLargeError
	require.ErrorAs(t, err, &tooLarge)
	require.Equal(t, "state", reason(err))
}

func TestReasonsAreAClosedSet(t *testing.T) {
	for want, err := range map[string]error{
		"fenced":          fmt.Errorf("committing: %w", sarama.ErrProducerFenced),
		"unknown_outcome": fmt.Errorf("%w: no answer", errUnknownOutcome),
		"recovery":        at("recovery", errors.New("x")),
		"callback":        at("callback", errors.New("x")),
		"group":           at("group", errors.New("x")),
		"state":           at("state", errors.New("x")),
		"stalled":         at("stalled", errors.New("x")),
		"broker":          &net.OpError{Op: "dial", Err: io.EOF},
		"other":           errors.New("x"),
	} {
		require.Equal(t, want, reason(err))
		require.Contains(t, Reasons(), want)
	}
	require.Len(t, Reasons(), 9)
}

func TestPermanentErrorsKeepTheirCause(t *testing.T) {
	cause := errors.New("settings differ")
	err := fmt.Errorf("recovering: %w", Permanent(cause))
	require.ErrorIs(t, err, cause)
	require.True(t, isPermanent(err))
	require.True(t, isPermanent(fmt.Errorf("x: %w", ErrFencedInstance)))
	require.False(t, isPermanent(cause))
}

func TestConfigNamesEverythingThatIsMissing(t *testing.T) {
	_, err := New(Config{Logger: slog.New(slog.DiscardHandler)}, nil)
	for _, name := range []string{"Client.Brokers", "Group", "Instance", "StateDir", "NewState"} {
		require.ErrorContains(t, err, "Config."+name+" is required")
	}
	require.NotContains(t, err.Error(), "Config.Logger")
}

// The transactional ID of another deployment whose group name begins with ours
// is not taken for one of ours.
func TestTransactionalIDsAreUnambiguous(t *testing.T) {
	ours := &Config{Group: "latest-delivery", Instance: "a"}
	theirs := &Config{Group: "latest-delivery-green", Instance: "a"}
	_, mine := strings.CutPrefix(theirs.transactionalID(), ours.Group+"/")
	require.False(t, mine)
	require.Equal(t, "latest-delivery/a", ours.transactionalID())
}

// An epoch grows only while a whole one waits behind it, and not for ever.
func TestEpochGrowsWhileFarBehind(t *testing.T) {
	const interval = 50 * time.Millisecond
	for name, tt := range map[string]struct {
		events  int
		waiting int64
		age     time.Duration
		want    bool
	}{
		"far behind":                       {1, 100, interval, true},
		"a whole epoch does not wait":      {1, 99, interval, false},
		"nothing is taken of what waits":   {0, 1000, interval, false},
		"as old as an epoch gets":          {1, 1000, catchUp * interval, false},
		"just younger":                     {1, 1000, catchUp*interval - 1, true},
		"the epochs of all are large":      {catchUpEvents - 5, 1000, interval, false},
		"the epochs of all are just small": {catchUpEvents - 6, 1000, interval, true},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := newShard(0, 100, nil), newShard(2, 100, nil)
			near.events, near.waiting = 5, 3
			far.events, far.waiting = tt.events, tt.waiting
			s := &session{a: &Attempt{cfg: &Config{CommitInterval: interval}}, shards: []*shard{near, nil, far}}

			got := s.grows(tt.age)

			require.Equal(t, tt.want, got)
		})
	}
}
