package exactlyonce

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

// A transaction that a dead or stalled member left open hides everything behind
// it from read-committed readers until the coordinator times it out. The new
// owner of the partition may end it earlier: the old generation can no longer
// add its offsets to it, so it can never commit.

// patience says when to act on what has been in our way for a while, and when
// to tell of it as well: acting has not helped then. A transaction whose markers
// the brokers have lost, for one, is open for ever, and only an operator can
// end it.
type patience struct {
	every time.Duration
	next  time.Duration
}

// tellAfter is how many waits have been in vain when we begin to tell.
const tellAfter = 5

func (a *Attempt) patience() *patience {
	return &patience{every: a.cfg.FenceAfter, next: a.cfg.FenceAfter}
}

// after says what to do when it has lasted so long.
func (p *patience) after(waited time.Duration) (act, tell bool) {
	if waited <= p.next {
		return false, false
	}
	if tell = waited > tellAfter*p.every; tell {
		p.next = waited + tellAfter*p.every
	} else {
		p.next = waited + p.every
	}
	return true, tell
}

// fencePartitionHolders aborts the open transactions of this group that hold a
// table partition which we now own. If tell, it says which ones these are.
func (a *Attempt) fencePartitionHolders(topic string, partition int32, tell bool) {
	open, err := a.openTransactions(map[string][]int32{topic: {partition}})
	if err != nil {
		a.cfg.Logger.Warn("looking for open transactions", "topic", topic, "partition", partition, "err", err)
		return
	}
	var ids []int64
	for _, t := range open {
		ids = append(ids, t.producer)
		if tell {
			a.cfg.Logger.Warn("recovery waits for the end of an open transaction", "topic", topic, "partition", partition,
				"producer_id", t.producer, "start_offset", t.start)
		}
	}
	if len(ids) > 0 {
		a.fence(ids, a.gone)
	}
}

// fenceOffsetHolders aborts open transactions of this group while the offsets
// pending in them keep us from joining.
func (a *Attempt) fenceOffsetHolders(tell bool) {
	if tell {
		a.cfg.Logger.Warn("joining the group waits for the end of an open transaction that holds its offsets")
	}
	a.fence(nil, a.gone)
}

// fenceWriters aborts the transactions that hold back our inputs for longer than
// a transaction of our own would be let: those of a member of the groups in
// Config.InputWriters that died, or hangs, in the midst of an epoch. Whether such
// a member is gone cannot be asked: with static membership it stays a member for
// the session timeout. One that only hangs loses nothing by it but the epoch,
// which it does again; and the next time it is given twice as long.
func (s *session) fenceWriters() {
	a := s.a
	limit := map[int64]time.Duration{}       // by producer
	since := map[openTransaction]time.Time{} // when first seen
	for blind := false; pause(s.Context(), a.cfg.FenceAfter/4) == nil; {
		found, err := a.openTransactions(s.Claims())
		if err != nil {
			if !blind { // said once, not at each look
				a.cfg.Logger.Warn("cannot look for open transactions on the inputs, trying on", "err", err)
			}
			blind = true
			continue
		}
		blind = false
		now := time.Now()
		seen := map[openTransaction]time.Time{}
		var stalled []int64
		for _, t := range found {
			first, known := since[t]
			if !known {
				first = now
			}
			seen[t] = first
			if now.Sub(first) >= max(a.cfg.FenceAfter, limit[t.producer]) {
				stalled = append(stalled, t.producer)
			}
		}
		since = seen
		if len(stalled) == 0 {
			continue
		}
		a.fence(stalled, a.writers)
		for _, producer := range stalled {
			limit[producer] = 2 * max(a.cfg.FenceAfter, limit[producer])
		}
	}
}

// openTransaction is a transaction that holds back readers of a partition.
type openTransaction struct {
	topic     string
	partition int32
	producer  int64
	start     int64 // offset of its first record
}

// openTransactions returns those that hold back some partitions.
func (a *Attempt) openTransactions(partitions map[string][]int32) ([]openTransaction, error) {
	admin, err := a.transactionAdmin()
	if err != nil {
		return nil, err
	}
	found, err := admin.DescribeProducers(partitions)
	if err != nil {
		return nil, fmt.Errorf("describing producers: %w", err)
	}
	var open []openTransaction
	for topic, all := range found {
		for partition, producers := range all {
			for _, p := range producers.ActiveProducers {
				if p.CurrentTxnStartOffset >= 0 {
					open = append(open, openTransaction{topic, partition, p.ProducerID, p.CurrentTxnStartOffset})
				}
			}
		}
	}
	return open, nil
}

func (a *Attempt) transactionAdmin() (sarama.TransactionClusterAdmin, error) {
	admin, err := a.cluster.admin()
	if err != nil {
		return nil, err
	}
	t, ok := admin.(sarama.TransactionClusterAdmin)
	if !ok {
		return nil, errors.New("sarama's admin knows no transactions")
	}
	return t, nil
}

// gone picks the transactions of this group's instances that are no members any
// more: they can never commit.
func (a *Attempt) gone(open []string) ([]string, error) {
	members, err := a.members()
	if err != nil {
		return nil, fmt.Errorf("listing group members: %w", err)
	}
	var gone []string
	for _, id := range open {
		instance, ours := strings.CutPrefix(id, a.cfg.Group+"/")
		if _, member := members[instance]; ours && instance != a.cfg.Instance && !member {
			gone = append(gone, id)
		}
	}
	return gone, nil
}

// writers picks the transactions of the groups that write our inputs, but not
// those of this process.
func (a *Attempt) writers(open []string) ([]string, error) {
	var writers []string
	for _, id := range open {
		for _, group := range a.cfg.InputWriters {
			if instance, ok := strings.CutPrefix(id, group+"/"); ok && instance != a.cfg.Instance {
				writers = append(writers, id)
			}
		}
	}
	return writers, nil
}

// fence aborts the transactions that pick takes for ours to abort, if they are
// undecided and old. One that is preparing to commit must be left to finish.
func (a *Attempt) fence(producers []int64, pick func(transactionalIDs []string) ([]string, error)) {
	log := a.cfg.Logger
	admin, err := a.transactionAdmin()
	if err != nil {
		log.Warn("looking for open transactions", "err", err)
		return
	}
	open, err := admin.ListTransactions([]string{"Ongoing"}, producers, -1)
	if err != nil {
		log.Warn("listing transactions", "err", err)
		return
	}
	ids := make([]string, 0, len(open))
	for _, t := range open {
		ids = append(ids, t.TransactionalID)
	}
	gone, err := pick(ids)
	if err != nil {
		log.Warn("telling whose transactions are open", "err", err)
		return
	}
	if len(gone) == 0 {
		return
	}
	states, err := admin.DescribeTransactions(gone)
	if err != nil {
		log.Warn("describing transactions", "err", err)
		return
	}
	for id, st := range states {
		age := time.Since(time.UnixMilli(st.TransactionStartTime))
		if st.TransactionState != "Ongoing" || age < a.cfg.FenceAfter {
			continue
		}
		coordinator, err := a.cluster.TransactionCoordinator(id)
		if err != nil {
			log.Warn("finding the transaction coordinator", "transactional_id", id, "err", err)
			continue
		}
		err = initProducerID(coordinator, id)
		log.Warn("fenced the open transaction of a member that is gone or hangs", "transactional_id", id,
			"age", age.Round(time.Millisecond), "err", err)
	}
}

// hasTwin reports whether another live process has joined under our instance
// ID: that is what a fenced producer means if the group knows us by another
// member ID. If it does not know us at all, or still as ourselves, we were only
// slow.
func (a *Attempt) hasTwin(memberID string) bool {
	members, err := a.members()
	if err != nil {
		a.cfg.Logger.Warn("listing group members", "err", err)
		return false
	}
	id, present := members[a.cfg.Instance]
	return present && id != memberID
}

// members returns the member IDs of the current generation by instance ID.
func (a *Attempt) members() (map[string]string, error) {
	admin, err := a.cluster.admin()
	if err != nil {
		return nil, err
	}
	return Members(admin, a.cfg.Group)
}
