package exactlyonce

import (
	"sync"
	"sync/atomic"

	"github.com/IBM/sarama"
)

// shard is one partition during one session. Its lock is held by a callback of
// the partition, or by the commit loop while callbacks stand still.
type shard struct {
	id    int32
	limit int // events that fill an epoch
	store *store

	mu      sync.Mutex
	room    sync.Cond // signalled when an epoch was cut or the session ended
	state   State
	inputs  []Input // Start is the next offset to consume
	events  int     // in the running epoch
	waiting int64   // records of the log behind the last one taken
	owed    bool    // offsets are to be committed even if nothing is written
	ended   bool    // the session is over: nobody cuts any more
	record  Record  // of the running callback

	next    atomic.Int64 // committed next offset of the first input
	target  atomic.Int64 // end of the changelog to recover
	running atomic.Bool
}

func newShard(id int32, limit int, st *store) *shard {
	sh := &shard{id: id, limit: limit, store: st}
	sh.room.L = &sh.mu
	return sh
}

// lockForEvent takes the lock for a callback. It waits while the epoch is far
// too large, but not beyond the session, or goka could not stop the partition.
func (sh *shard) lockForEvent() {
	sh.mu.Lock()
	for sh.overfull() && !sh.ended {
		sh.room.Wait()
	}
}

// overfull reports whether the running epoch is far too large.
func (sh *shard) overfull() bool { return sh.events >= 2*sh.limit }

// consumed says that the callback for a record has finished. It reports that
// the epoch has just become full.
func (sh *shard) consumed(topic string, offset int64) bool {
	for i := range sh.inputs {
		if in := &sh.inputs[i]; in.Topic == topic {
			in.Start = offset + 1
			break
		}
	}
	sh.events++
	sh.owed = true
	return sh.events == sh.limit
}

// backlog returns how many events the running epoch has, and whether at least a
// whole epoch waits behind them. What waits behind an open transaction does not
// count: nothing of it is taken.
func (sh *shard) backlog() (events int, far bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.events, sh.events > 0 && sh.waiting >= int64(sh.limit)
}

func (sh *shard) end() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.ended = true
	sh.room.Broadcast()
}

// cut ends the shard's running epoch. ok is false if there is nothing to
// commit.
func (sh *shard) cut() (p part, ok bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	epoch := sh.state.Cut()
	if epoch == nil && !sh.owed {
		return part{}, false
	}
	p = part{shard: sh, epoch: epoch, events: sh.events, offsets: make([]int64, len(sh.inputs))}
	for i, in := range sh.inputs {
		p.offsets[i] = in.Start
	}
	sh.events, sh.owed = 0, false
	sh.room.Broadcast()
	return p, true
}

// committed takes over what the transaction made durable.
func (sh *shard) committed(owner any, p *part, offset int64) error {
	if err := sh.store.put(owner, p.rows, offset); err != nil {
		return err
	}
	if len(p.offsets) > 0 {
		sh.next.Store(p.offsets[0])
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.state.Committed()
	return nil
}

// part is one shard's share of a transaction.
type part struct {
	shard   *shard
	epoch   Epoch // may be nil: offsets only
	events  int
	offsets []int64 // next offset of each input
	rows    []Change
	records []record
}

// transaction is what one Kafka transaction holds.
type transaction struct{ parts []part }

// write collects the rows and records of all parts.
func (t *transaction) write() error {
	for i := range t.parts {
		p := &t.parts[i]
		if p.epoch == nil {
			continue
		}
		var w Writer
		if err := p.epoch.Write(&w); err != nil {
			return err
		}
		p.rows, p.records = w.rows, w.records
	}
	return nil
}

func (t *transaction) records() (n int) {
	for i := range t.parts {
		n += len(t.parts[i].rows) + len(t.parts[i].records)
	}
	return n
}

func (t *transaction) events() (n int) {
	for i := range t.parts {
		n += t.parts[i].events
	}
	return n
}

// offsets has one for every partition whose rows or records the transaction
// carries, also if nothing new was consumed: only the offset commit is checked
// against the group's generation, so a transaction without one is not fenced.
func (t *transaction) offsets() map[string][]*sarama.PartitionOffsetMetadata {
	out := map[string][]*sarama.PartitionOffsetMetadata{}
	for i := range t.parts {
		p := &t.parts[i]
		for j := range p.shard.inputs {
			topic := p.shard.inputs[j].Topic // nothing else: Start moves on
			out[topic] = append(out[topic], &sarama.PartitionOffsetMetadata{
				Partition: p.shard.id, Offset: p.offsets[j], LeaderEpoch: -1,
			})
		}
	}
	return out
}
