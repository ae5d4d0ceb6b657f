package exactlyonce

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lovoo/goka"
)

// Runtime runs one exactly-once processor and starts it anew after faults.
type Runtime struct {
	cfg     Config
	graph   func(*Attempt) *goka.GroupGraph
	stores  *stores
	current atomic.Pointer[Attempt]
	fault   atomic.Pointer[error] // that ended the last attempt; nil once another works
}

// New prepares a runtime. graph is called once per attempt and defines the goka
// group graph; each of its inputs must come from Consume, each codec must be
// RawCodec.
func New(cfg Config, graph func(*Attempt) *goka.GroupGraph) (*Runtime, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	cfg.Logger = cfg.Logger.With("group", cfg.Group, "instance_id", cfg.Instance)
	return &Runtime{cfg: cfg, graph: graph, stores: newStores(cfg.StateDir, cfg.FlushInterval, cfg.Logger)}, nil
}

// Run works until ctx ends; then it returns nil after the last epoch was
// committed and the local stores were closed. After a fault it starts a new
// attempt, with a jittered pause of 0.1 to 3 s. It returns an error only for a
// fault that another attempt cannot mend: ErrFencedInstance, a session timeout
// that the broker does not allow, or what a State marked Permanent. Run must be
// called once.
func (r *Runtime) Run(ctx context.Context) error {
	const first, most = 100 * time.Millisecond, 3 * time.Second
	backoff := first
	for {
		start := time.Now()
		err := r.attempt(ctx)
		if ctx.Err() != nil {
			return r.stores.close()
		}
		if err == nil {
			err = errors.New("the consumer group ended by itself")
		}
		r.fault.Store(&err)
		r.cfg.Observer.AttemptEnded(r.cfg.Group, reason(err))
		if isPermanent(err) {
			return errors.Join(err, r.stores.close())
		}
		if time.Since(start) > 30*time.Second {
			backoff = first
		}
		r.cfg.Logger.Warn("attempt ended, starting another", "err", err, "reason", reason(err),
			"duration", time.Since(start).Round(time.Millisecond), "pause", backoff)
		_ = pause(ctx, backoff/2+rand.N(backoff)) // the next attempt sees that ctx has ended
		backoff = min(2*backoff, most)
	}
}

// Fault returns what ended the last attempt, or nil once another has recovered
// what it was assigned.
func (r *Runtime) Fault() error {
	if p := r.fault.Load(); p != nil {
		return *p
	}
	return nil
}

// PartitionStatus is what Status reports of one assigned partition.
type PartitionStatus struct {
	Partition int32
	State     string // "recovering" or "running"; "standby" if it is kept for another member
	Next      int64  // committed next offset of the input
	Remaining int64  // changelog offsets left to recover
}

// Status reports the partitions that this process owns now.
func (r *Runtime) Status() []PartitionStatus {
	a := r.current.Load()
	if a == nil {
		return nil
	}
	s := a.session.Load()
	if s == nil {
		return nil
	}
	var all []PartitionStatus
	for _, sh := range s.owned() {
		st := PartitionStatus{Partition: sh.id, State: "recovering", Next: sh.next.Load()}
		if sh.running.Load() {
			st.State = "running"
		} else {
			st.Remaining = max(0, sh.target.Load()-sh.store.offset()-1)
		}
		all = append(all, st)
	}
	return all
}

// Standby reports the partitions whose stores this process keeps for other
// members. Remaining is what was left to read of what the changelog held when
// keeping began; -1 if that is not known yet.
func (r *Runtime) Standby() []PartitionStatus {
	a := r.current.Load()
	if a == nil || a.standby == nil {
		return nil
	}
	return a.standby.status()
}

// RawCodec passes bytes through: records are decoded in callbacks, where their
// key, headers and timestamp are known.
type RawCodec struct{}

// Encode implements goka.Codec.
func (RawCodec) Encode(v any) ([]byte, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("raw codec got a %T", v)
	}
	return b, nil
}

// Decode implements goka.Codec.
func (RawCodec) Decode(b []byte) (any, error) { return b, nil }

// gokaLog passes goka's log on. Goka reports its life cycle at what it calls
// no level at all; ours is logged by ourselves.
type gokaLog struct{ log *slog.Logger }

// Print implements goka.Logger.
func (g gokaLog) Print(args ...any) { g.Printf("%s", fmt.Sprint(args...)) }

// Println implements goka.Logger.
func (g gokaLog) Println(args ...any) { g.Printf("%s", fmt.Sprintln(args...)) }

// Printf implements goka.Logger.
func (g gokaLog) Printf(format string, args ...any) {
	g.log.Debug("goka", "text", strings.TrimSpace(fmt.Sprintf(format, args...)))
}
