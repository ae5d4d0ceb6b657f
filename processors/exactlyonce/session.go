package exactlyonce

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// group rejoins at once after a rebalance: goka would pause for 5 s whenever
// Consume returns.
type group struct {
	sarama.ConsumerGroup
	a      *Attempt
	errors chan error
}

func newGroup(a *Attempt, g sarama.ConsumerGroup) *group {
	w := &group{ConsumerGroup: g, a: a, errors: make(chan error)}
	a.background.Go(w.watchErrors)
	return w
}

// watchErrors passes sarama's asynchronous errors on, and ends the attempt on
// the one that must never be retried.
func (g *group) watchErrors() {
	defer close(g.errors)
	for err := range g.ConsumerGroup.Errors() {
		g.check(err)
		select {
		case g.errors <- err:
		case <-g.a.ctx.Done():
		}
	}
}

// check makes permanent what another attempt would not mend: the loss of our
// instance ID to a twin, and a session timeout that the broker does not allow.
func (g *group) check(err error) {
	switch {
	case errors.Is(err, sarama.ErrFencedInstancedId):
		_ = g.a.fail(fmt.Errorf("%w: %q", ErrFencedInstance, g.a.cfg.Instance))
	case errors.Is(err, sarama.ErrInvalidSessionTimeout):
		_ = g.a.fail(Permanent(fmt.Errorf("session timeout %v: %w", g.a.cfg.SessionTimeout, err)))
	}
}

// Errors implements sarama.ConsumerGroup.
func (g *group) Errors() <-chan error { return g.errors }

// Consume implements sarama.ConsumerGroup. It returns when the attempt is over.
func (g *group) Consume(ctx context.Context, topics []string, h sarama.ConsumerGroupHandler) error {
	const floor = 100 * time.Millisecond // between two sessions
	var held time.Time                   // since when our offsets are pending; zero if they are not
	var p *patience
	for {
		start := time.Now()
		err := g.ConsumerGroup.Consume(ctx, topics, &handler{ConsumerGroupHandler: h, a: g.a})
		switch {
		case ctx.Err() != nil || g.a.failure() != nil:
			return err
		case errors.Is(err, sarama.ErrUnstableOffsetCommit):
			// A dead member's open transaction holds an offset of ours.
			if held.IsZero() {
				held, p = start, g.a.patience()
			}
			_, tell := p.after(time.Since(held))
			g.a.fenceOffsetHolders(tell)
		case err != nil:
			g.check(err)
			return err
		default:
			held = time.Time{}
		}
		if pause(ctx, floor-time.Since(start)) != nil {
			return nil //nolint:nilerr // the end of ctx is no fault
		}
	}
}

// handler wraps goka's handler for one session, which is one generation of the
// group.
type handler struct {
	sarama.ConsumerGroupHandler
	a *Attempt
	s *session
}

// Setup implements sarama.ConsumerGroupHandler: sarama has joined the group and
// fetched the offsets; goka recovers the tables, then the states are rebuilt.
func (h *handler) Setup(cs sarama.ConsumerGroupSession) error {
	a, start := h.a, time.Now()
	a.cluster.forgetTopicIDs()
	s := newSession(a, cs)
	h.s = s
	a.session.Store(s)
	a.cfg.Observer.Rebalanced(a.cfg.Group) // Status speaks of the new session from here on
	if a.standby != nil {
		a.standby.yield(s.partitions())
	}
	a.background.Go(s.watch)
	if err := h.ConsumerGroupHandler.Setup(cs); err != nil {
		return a.fail(at("recovery", err))
	}
	if cs.Context().Err() != nil { // goka reports an interrupted recovery as success
		return nil //nolint:nilerr // the end of a session is no fault
	}
	if err := s.own(); err != nil {
		if cs.Context().Err() != nil && !isPermanent(err) {
			return nil
		}
		return a.fail(at("recovery", err))
	}
	s.running = true
	a.working()
	if a.standby != nil {
		a.standby.resume(s.partitions())
	}
	s.loop.Go(s.commitLoop)
	if len(a.cfg.InputWriters) > 0 && len(s.owned()) > 0 {
		a.background.Go(s.fenceWriters)
	}
	a.cfg.Logger.Info("partitions assigned and recovered", "generation", cs.GenerationID(),
		"partitions", s.partitions(), "duration", time.Since(start).Round(time.Millisecond))
	return nil
}

// Cleanup implements sarama.ConsumerGroupHandler: no callback runs after
// goka's, and we are still a member of this generation until the next
// JoinGroup, so the last epoch can be committed.
func (h *handler) Cleanup(cs sarama.ConsumerGroupSession) error {
	s, a := h.s, h.a
	s.stopLoop()
	err := h.ConsumerGroupHandler.Cleanup(cs)
	if err != nil {
		err = a.fail(at("callback", err))
	}
	if a.failure() == nil && s.running {
		err = s.commit()
	}
	s.release()
	return err
}

// session is the ownership of some partitions during one generation.
type session struct {
	sarama.ConsumerGroupSession
	a      *Attempt
	shards []*shard // by partition; nil where it is not ours

	running bool // states are recovered, and the commit loop was started
	stop    chan struct{}
	full    chan struct{} // asks for an early cut
	loop    sync.WaitGroup
}

func newSession(a *Attempt, cs sarama.ConsumerGroupSession) *session {
	s := &session{ConsumerGroupSession: cs, a: a, stop: make(chan struct{}), full: make(chan struct{}, 1)}
	for _, parts := range cs.Claims() {
		for _, p := range parts {
			for int(p) >= len(s.shards) {
				s.shards = append(s.shards, nil)
			}
			if s.shards[p] == nil {
				s.shards[p] = newShard(p, a.cfg.MaxEpochEvents, a.stores.get(a.cfg.table(), p))
			}
		}
	}
	for _, sh := range s.owned() {
		// Nothing is cut any more when the session has ended, so nobody may wait.
		context.AfterFunc(cs.Context(), sh.end)
	}
	return s
}

func (s *session) owned() []*shard {
	var owned []*shard
	for _, sh := range s.shards {
		if sh != nil {
			owned = append(owned, sh)
		}
	}
	return owned
}

func (s *session) partitions() []int32 {
	var ids []int32
	for _, sh := range s.owned() {
		ids = append(ids, sh.id)
	}
	return ids
}

// own takes over the recovered stores and rebuilds the states.
func (s *session) own() error {
	committed, err := s.committedOffsets()
	if err != nil {
		return err
	}
	owned := s.owned()
	errs := make([]error, len(owned))
	var wg sync.WaitGroup
	for i, sh := range owned {
		wg.Go(func() { errs[i] = s.recover(sh, committed) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// recover rebuilds one shard and tells sarama where to begin reading.
func (s *session) recover(sh *shard, committed *sarama.OffsetFetchResponse) error {
	a := s.a
	as := &Assignment{Partition: sh.id, table: sh.store}
	for topic, claimed := range s.Claims() {
		if !slices.Contains(claimed, sh.id) {
			continue
		}
		partitions, err := a.cluster.Client.Partitions(topic)
		if err != nil {
			return fmt.Errorf("partitions of %s: %w", topic, err)
		}
		as.Partitions = int32(len(partitions)) // the same for all topics and the table: goka checks that
		in, err := s.input(topic, sh.id, committed)
		if err != nil {
			return err
		}
		as.Inputs = append(as.Inputs, in)
	}
	sh.store.own(s)
	sh.state = a.cfg.NewState(sh.id)
	if err := sh.state.Recover(as); err != nil {
		return fmt.Errorf("recovering the state of partition %d: %w", sh.id, err)
	}
	for _, in := range as.Inputs {
		// One of the two moves sarama's position, whichever way it has to go.
		s.MarkOffset(in.Topic, sh.id, in.Start, "")
		s.ResetOffset(in.Topic, sh.id, in.Start, "")
		sh.inputs = append(sh.inputs, *in)
	}
	sh.owed = true // a start offset that was resolved is committed too
	sh.next.Store(sh.inputs[0].Start)
	sh.running.Store(true)
	return nil
}

// input resolves where one partition of an input begins.
func (s *session) input(topic string, p int32, committed *sarama.OffsetFetchResponse) (*Input, error) {
	c, ctx := s.a.cluster, s.Context()
	in := &Input{Topic: topic, Committed: -1}
	var err error
	if in.TopicID, err = c.topicID(topic); err != nil {
		return nil, err
	}
	if in.LogStart, err = c.logOffset(ctx, topic, p, sarama.OffsetOldest); err != nil {
		return nil, err
	}
	if in.LogEnd, err = c.logOffset(ctx, topic, p, sarama.OffsetNewest); err != nil {
		return nil, err
	}
	if block := committed.GetBlock(topic, p); block != nil {
		in.Committed = block.Offset
	}
	in.Start = in.Committed
	if in.Committed < in.LogStart || in.Committed > in.LogEnd {
		in.Start = in.LogStart
	}
	if in.Committed >= 0 && in.Committed < in.LogStart {
		in.Lost = in.LogStart - in.Committed
	}
	return in, nil
}

// committedOffsets fetches what sarama fetched before Setup and keeps to
// itself. Nobody else can commit in between: only this generation may.
func (s *session) committedOffsets() (*sarama.OffsetFetchResponse, error) {
	a := s.a
	request := sarama.NewOffsetFetchRequest(a.cluster.Config().Version, a.cfg.Group, s.Claims())
	request.RequireStable = true
	for try := 0; ; try++ {
		response, err := func() (*sarama.OffsetFetchResponse, error) {
			coordinator, err := a.cluster.Coordinator(a.cfg.Group)
			if err != nil {
				return nil, err
			}
			response, err := coordinator.FetchOffset(request)
			if err != nil {
				_ = coordinator.Close() // opened again by the next look-up
				return nil, err
			}
			if err := response.GroupError(); !errors.Is(err, sarama.ErrNoError) {
				return nil, err
			}
			for topic, parts := range s.Claims() {
				for _, p := range parts {
					if block := response.GetBlock(topic, p); block != nil && !errors.Is(block.Err, sarama.ErrNoError) {
						return nil, block.Err
					}
				}
			}
			return response, nil
		}()
		if err == nil {
			return response, nil
		}
		if try == 20 {
			return nil, fmt.Errorf("fetching the committed offsets of %s: %w", a.cfg.Group, err)
		}
		if err := pause(s.Context(), 100*time.Millisecond); err != nil {
			return nil, err
		}
		_ = a.cluster.RefreshCoordinator(a.cfg.Group) // the next try reports what matters
	}
}

// release gives the partitions up: what was not certainly committed is not
// ours to keep.
func (s *session) release() {
	for _, sh := range s.owned() {
		sh.store.disown(s)
	}
	s.a.session.CompareAndSwap(s, nil)
}

func (s *session) commitLoop() {
	t := time.NewTicker(s.a.cfg.CommitInterval)
	defer t.Stop()
	began := time.Now() // the running epoch
	for {
		select {
		case <-s.stop:
			return
		case <-t.C:
			if s.grows(time.Since(began)) {
				continue
			}
		case <-s.full:
		}
		began = time.Now()
		if s.commit() != nil {
			return
		}
	}
}

// An epoch grows for up to catchUp commit intervals, or to about catchUpEvents,
// while a partition is far behind: the more events of a delivery meet in one
// epoch, the fewer rows are written, and no answer is current meanwhile anyway.
const (
	catchUp       = 10
	catchUpEvents = 100_000
)

// grows reports whether an epoch of this age had better grow.
func (s *session) grows(age time.Duration) bool {
	if age >= catchUp*s.a.cfg.CommitInterval {
		return false
	}
	events, behind := 0, false
	for _, sh := range s.owned() {
		n, far := sh.backlog()
		events, behind = events+n, behind || far
	}
	return behind && events < catchUpEvents
}

// stopLoop waits for the commit in flight, but not so long that the rest of
// the group waits for us in vain.
func (s *session) stopLoop() {
	close(s.stop)
	done := make(chan struct{})
	go func() {
		s.loop.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(s.a.cfg.RebalanceTimeout / 4):
		_ = s.a.fail(fmt.Errorf("%w: still committing when the session ended", errUnknownOutcome))
	}
}

// commit writes the running epoch and, only when that certainly succeeded,
// makes it permanent. Any error ends the attempt.
func (s *session) commit() error {
	a := s.a
	var t transaction
	for _, sh := range s.shards {
		if sh == nil {
			continue
		}
		if p, ok := sh.cut(); ok {
			t.parts = append(t.parts, p)
		}
	}
	if err := a.failure(); err != nil { // half a callback must never be committed
		return err
	}
	if len(t.parts) == 0 {
		return nil
	}
	if err := t.write(); err != nil {
		return a.fail(at("state", err))
	}
	start := time.Now()
	meta := sarama.NewConsumerGroupMetadataFromSession(s.ConsumerGroupSession, a.cfg.Group, &a.cfg.Instance)
	offsets, err := a.producer.commit(&t, meta)
	if err != nil {
		a.cfg.Observer.Transaction(a.cfg.Group, "failed", time.Since(start))
		if errors.Is(err, sarama.ErrFencedInstancedId) || a.hasTwin(s.MemberID()) {
			err = fmt.Errorf("%w: %q", ErrFencedInstance, a.cfg.Instance)
		}
		return a.fail(fmt.Errorf("committing an epoch of %d events: %w", t.events(), err))
	}
	a.cfg.Observer.Transaction(a.cfg.Group, "committed", time.Since(start))
	if err := a.failure(); err != nil {
		return err // the epoch stands, and recovery will read it
	}
	for i := range t.parts {
		p := &t.parts[i]
		offset, ok := offsets[p.shard.id]
		if !ok {
			offset = -1
		}
		if err := p.shard.committed(s, p, offset); err != nil {
			return a.fail(err)
		}
	}
	a.cfg.crash("stored")
	return nil
}
