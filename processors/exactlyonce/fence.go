package exactlyonce

import (
	"errors"
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
	admin, err := a.transactionAdmin()
	if err != nil {
		a.cfg.Logger.Warn("looking for open transactions", "topic", topic, "partition", partition, "err", err)
		return
	}
	found, err := admin.DescribeProducers(map[string][]int32{topic: {partition}})
	if err != nil {
		a.cfg.Logger.Warn("describing producers", "topic", topic, "partition", partition, "err", err)
		return
	}
	var ids []int64
	for _, active := range found[topic][partition].ActiveProducers {
		if active.CurrentTxnStartOffset < 0 {
			continue
		}
		ids = append(ids, active.ProducerID)
		if tell {
			a.cfg.Logger.Warn("recovery waits for the end of an open transaction", "topic", topic, "partition", partition,
				"producer_id", active.ProducerID, "start_offset", active.CurrentTxnStartOffset)
		}
	}
	if len(ids) > 0 {
		a.fence(admin, ids)
	}
}

// fenceOffsetHolders aborts open transactions of this group while the offsets
// pending in them keep us from joining.
func (a *Attempt) fenceOffsetHolders(tell bool) {
	if tell {
		a.cfg.Logger.Warn("joining the group waits for the end of an open transaction that holds its offsets")
	}
	admin, err := a.transactionAdmin()
	if err != nil {
		a.cfg.Logger.Warn("looking for open transactions", "err", err)
		return
	}
	a.fence(admin, nil)
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

// fence aborts the transactions that are ours to abort: undecided, of this
// group, old, and of an instance that is no member any more. One that is
// preparing to commit must be left to finish.
func (a *Attempt) fence(admin sarama.TransactionClusterAdmin, producers []int64) {
	log := a.cfg.Logger
	open, err := admin.ListTransactions([]string{"Ongoing"}, producers, -1)
	if err != nil {
		log.Warn("listing transactions", "err", err)
		return
	}
	members, err := a.members()
	if err != nil {
		log.Warn("listing group members", "err", err)
		return
	}
	var gone []string
	for _, t := range open {
		instance, ours := strings.CutPrefix(t.TransactionalID, a.cfg.Group+"/")
		if _, member := members[instance]; ours && instance != a.cfg.Instance && !member {
			gone = append(gone, t.TransactionalID)
		}
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
		// Its first answer is CONCURRENT_TRANSACTIONS, but the abort has begun.
		_, err = coordinator.InitProducerID(&sarama.InitProducerIDRequest{
			Version: 4, TransactionalID: &id, TransactionTimeout: a.cfg.CommitTimeout, ProducerID: -1, ProducerEpoch: -1,
		})
		log.Warn("fenced the open transaction of a member that is gone", "transactional_id", id,
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
	groups, err := admin.DescribeConsumerGroups([]string{a.cfg.Group})
	if err != nil {
		return nil, err
	}
	if len(groups) != 1 {
		return nil, errors.New("no description of the group")
	}
	present := map[string]string{}
	for _, m := range groups[0].Members {
		if m.GroupInstanceId != nil {
			present[*m.GroupInstanceId] = m.MemberId
		}
	}
	return present, nil
}
