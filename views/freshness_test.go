package views_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/views"
)

const interval = 200 * time.Millisecond

// fakeLog is an input topic in memory.
type fakeLog struct {
	mu           sync.Mutex
	topicID      string
	stable, high []int64
	visible      map[int32]int64 // 1 + offset of the last committed record
	down         bool
	takes        time.Duration // a probe takes
	looks        int           // calls to VisibleEnd
	lookFails    bool
	closed       bool
}

func (l *fakeLog) Probe(context.Context) (*views.Probe, error) {
	at := time.Now()
	l.mu.Lock()
	takes, p := l.takes, &views.Probe{
		TopicID: l.topicID, At: at, Stable: append([]int64(nil), l.stable...), High: append([]int64(nil), l.high...),
	}
	if l.high == nil {
		p.High = p.Stable
	}
	down := l.down
	l.mu.Unlock()
	time.Sleep(takes) //nolint:forbidigo // in a bubble: the request is under way that long
	if down {
		return nil, errors.New("no broker")
	}
	return p, nil
}

func (l *fakeLog) VisibleEnd(_ context.Context, partition int32, from, _ int64) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looks++
	if l.lookFails {
		return 0, errors.New("no broker")
	}
	return max(from, l.visible[partition]), nil
}

func (l *fakeLog) Close() error {
	l.closed = true
	return nil
}

func (l *fakeLog) set(change func(*fakeLog)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
}

func (l *fakeLog) lookups() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.looks
}

// standing is where answers stand: a position in life A that the test moves.
type standing struct {
	mu sync.Mutex
	p  codecs.Position
}

func (s *standing) at(next ...int64) codecs.Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.p = codecs.Position{TopicID: lifeA, Next: next}
	return s.p
}

func (s *standing) positions() []codecs.Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []codecs.Position{s.p}
}

// watch starts a Freshness of log. It probes at once, and then every interval.
func watch(t *testing.T, log *fakeLog, s *standing) *views.Freshness {
	t.Helper()
	f := views.NewFreshness(views.FreshnessConfig{Log: log, Positions: s.positions, Interval: interval, Logger: quiet()})
	start(t, f.Run)
	synctest.Wait()
	return f
}

// pass lets d go by, and all that happens in it.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a bubble: moves its clock
	synctest.Wait()
}

type seen struct {
	lag       int64
	staleness time.Duration
	known     bool
}

func of(f *views.Freshness, p codecs.Position) seen {
	lag, staleness, known := f.Of(p)
	return seen{lag, staleness, known}
}

func TestStalenessIsTheAgeOfTheNewestEndReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &standing{}
		p := s.at(10, 20)
		log := &fakeLog{topicID: lifeA, stable: []int64{10, 20}}
		f := watch(t, log, s)
		require.Equal(t, seen{0, 0, true}, of(f, p))
		pass(50 * time.Millisecond)
		require.Equal(t, seen{0, 50 * time.Millisecond, true}, of(f, p))
		pass(interval)
		require.Equal(t, seen{0, 50 * time.Millisecond, true}, of(f, p), "the same end, seen again, proves more")

		log.set(func(l *fakeLog) { l.stable = []int64{10, 23}; l.visible = map[int32]int64{1: 23} })
		pass(10 * interval)
		require.Equal(t, seen{3, 10*interval + 50*time.Millisecond, true}, of(f, p), "one partition behind is behind")
		require.Equal(t, seen{0, 50 * time.Millisecond, true}, of(f, s.at(10, 23)))
		require.Equal(t, seen{0, 50 * time.Millisecond, true}, of(f, s.at(11, 40)), "beyond the end seen last")
		require.Equal(t, seen{33, 0, false}, of(f, s.at(0, 0)), "older than all that was seen")
	})
}

func TestStalenessBeginsWhenTheQuestionIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &standing{}
		p := s.at(10)
		log := &fakeLog{topicID: lifeA, stable: []int64{10}, takes: 30 * time.Millisecond}
		f := watch(t, log, s)
		require.Equal(t, seen{-1, 0, false}, of(f, p), "nothing is known before the first answer")
		require.Nil(t, f.Ends(p))
		pass(30 * time.Millisecond)
		require.Equal(t, seen{0, 30 * time.Millisecond, true}, of(f, p))
	})
}

func TestStalenessGrowsWhileTheBrokersAreAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &standing{}
		p := s.at(10)
		log := &fakeLog{topicID: lifeA, stable: []int64{10}}
		f := watch(t, log, s)
		log.set(func(l *fakeLog) { l.down = true })
		pass(time.Hour)
		require.Equal(t, seen{0, time.Hour, true}, of(f, p))
		log.set(func(l *fakeLog) { l.down = false })
		pass(interval)
		require.Equal(t, seen{0, 0, true}, of(f, p))
	})
}

// TestStalenessOfAStalledPositionStaysABound forgets most of what was seen: that
// may make the bound wider by a 32nd, but never narrower than the truth.
func TestStalenessOfAStalledPositionStaysABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &standing{}
		p := s.at(100)
		log := &fakeLog{topicID: lifeA, stable: []int64{0}, visible: map[int32]int64{0: 1 << 40}}
		f := watch(t, log, s)
		var reached time.Time
		for i := range 5000 {
			if log.stable[0] <= 100 {
				reached = time.Now()
			}
			if i > 200 && i%100 == 0 {
				got := of(f, p)
				require.True(t, got.known)
				require.GreaterOrEqual(t, got.staleness, time.Since(reached))
				require.LessOrEqual(t, got.staleness, time.Since(reached)*33/32+interval)
			}
			log.set(func(l *fakeLog) { l.stable = []int64{int64(i)} })
			pass(interval)
		}
		// A position that keeps up is as fresh as ever.
		require.Equal(t, seen{0, 0, true}, of(f, codecs.Position{TopicID: lifeA, Next: []int64{4999}}))
		require.LessOrEqual(t, log.lookups(), 1, "once it is known that records follow, nobody asks again")
	})
}

func TestMarkersAtTheEndAreSettledByOneLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &standing{}
		p := s.at(10)
		log := &fakeLog{topicID: lifeA, stable: []int64{11}, visible: map[int32]int64{0: 10}}
		f := watch(t, log, s)
		require.Equal(t, seen{1, 0, false}, of(f, p), "it may still be on its way")
		require.Zero(t, log.lookups())
		pass(interval)
		require.Equal(t, seen{0, 0, true}, of(f, p))
		pass(10 * interval)
		require.Equal(t, 1, log.lookups(), "remembered")

		// One more marker, one more look.
		log.set(func(l *fakeLog) { l.stable = []int64{12} })
		pass(2 * interval)
		require.Equal(t, seen{0, 0, true}, of(f, p))
		require.Equal(t, 2, log.lookups())

		// A record behind the markers is one that is missing.
		log.set(func(l *fakeLog) { l.stable = []int64{14}; l.visible = map[int32]int64{0: 13} })
		pass(10 * interval)
		require.Equal(t, seen{3, 10 * interval, true}, of(f, p), "what was settled stays settled, and gets older")
		require.Equal(t, 3, log.lookups())
		require.Equal(t, seen{0, 0, true}, of(f, s.at(13)), "the marker behind it is known already")
		pass(2 * interval)
		require.Equal(t, 3, log.lookups())
	})
}

func TestAMovingPositionNeedsNoLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &standing{}
		s.at(0)
		log := &fakeLog{topicID: lifeA, stable: []int64{5}, visible: map[int32]int64{0: 1 << 40}}
		f := watch(t, log, s)
		for i := range int64(50) {
			s.at(1 + i)
			log.set(func(l *fakeLog) { l.stable = []int64{6 + i} })
			pass(interval)
		}
		require.Zero(t, log.lookups())
		require.Equal(t, seen{5, 5 * interval, true}, of(f, s.positions()[0]))
	})
}

func TestALookThatFailsIsRepeatedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &standing{}
		p := s.at(10)
		log := &fakeLog{topicID: lifeA, stable: []int64{11}, lookFails: true}
		f := watch(t, log, s)
		pass(5 * time.Second)
		require.Equal(t, 1, log.lookups())
		require.False(t, of(f, p).known)
		log.set(func(l *fakeLog) { l.lookFails = false })
		pass(6 * time.Second)
		require.Equal(t, 2, log.lookups())
		require.True(t, of(f, p).known)
	})
}

func TestATopicCreatedAnewDoesNotMatchOldPositions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &standing{}
		p := s.at(10, 10)
		log := &fakeLog{topicID: lifeA, stable: []int64{10, 10}}
		f := watch(t, log, s)
		log.set(func(l *fakeLog) { l.topicID = lifeB; l.stable = []int64{1, 2} })
		pass(10 * interval)
		require.Equal(t, seen{3, 10 * interval, true}, of(f, p), "all of the new life is missing, and the old proof gets older")
		require.Equal(t, seen{0, 0, true}, of(f, codecs.Position{TopicID: lifeB, Next: []int64{1, 2}}))
		require.Equal(t, seen{3, 0, false}, of(f, codecs.Position{TopicID: "cccc", Next: []int64{9, 9}}))
	})
}

func TestALogThatWasCutProvesNothingBeyondTheCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &standing{}
		log := &fakeLog{topicID: lifeA, stable: []int64{5}, visible: map[int32]int64{0: 10}}
		s.at(5)
		f := watch(t, log, s)
		log.set(func(l *fakeLog) { l.stable = []int64{10} })
		pass(interval)
		log.set(func(l *fakeLog) { l.stable = []int64{7} })
		pass(interval)
		require.Equal(t, seen{0, 0, true}, of(f, codecs.Position{TopicID: lifeA, Next: []int64{7}}))
		require.Equal(t, seen{2, 2 * interval, true}, of(f, codecs.Position{TopicID: lifeA, Next: []int64{5}}))

		// What was settled is forgotten too: other records may be there now.
		p := s.at(7)
		log.set(func(l *fakeLog) { l.stable = []int64{9}; l.visible = map[int32]int64{0: 7} })
		pass(2 * interval)
		require.Equal(t, seen{0, 0, true}, of(f, p))
		log.set(func(l *fakeLog) { l.stable = []int64{8}; l.visible = map[int32]int64{0: 8} })
		pass(interval)
		require.Equal(t, int64(1), of(f, p).lag)
	})
}

func TestFreshnessSpeaksOfThePartitionsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &standing{}
		s.at(10, 20)
		log := &fakeLog{topicID: lifeA, stable: []int64{10, 90}, high: []int64{14, 90}, visible: map[int32]int64{1: 90}}
		f := watch(t, log, s)
		require.Equal(t, seen{0, 0, true}, of(f, codecs.Position{TopicID: lifeA, Next: []int64{10, -1}}))
		require.Equal(t, seen{70, 0, false}, of(f, codecs.Position{TopicID: lifeA, Next: []int64{-1, 20}}))
		require.Equal(t, seen{0, 0, false}, of(f, codecs.Position{TopicID: lifeA, Next: []int64{-1, -1}}))
		require.Equal(t, seen{0, 0, false}, of(f, codecs.Position{TopicID: lifeA, Next: []int64{10}}), "the topic has more partitions")
		require.Equal(t, []views.PartitionEnd{{Lag: 0, Open: 4}, {Lag: -1, Open: 0}},
			f.Ends(codecs.Position{TopicID: lifeA, Next: []int64{10, -1}}))
	})
}

func TestFreshnessClosesItsLog(t *testing.T) {
	log := &fakeLog{topicID: lifeA, stable: []int64{1}}
	f := views.NewFreshness(views.FreshnessConfig{Log: log, Positions: (&standing{}).positions, Logger: quiet()})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, f.Run(ctx))
	require.True(t, log.closed)
}
