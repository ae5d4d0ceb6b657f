package exactlyonce

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// Expel takes an instance out of a group at once, as if its session had timed
// out, and aborts the transaction that it left open under the group's name: so
// its partitions move, and nobody waits for either. It reports whether the
// instance was a member.
//
// Kafka does not know whether a static member lives. One that does loses the
// epoch that it is at, which it does again, and joins again by itself.
func Expel(ctx context.Context, client sarama.Client, group, instance string) (member bool, err error) {
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return false, fmt.Errorf("preparing to administer: %w", err)
	}
	// The transaction first: offsets that are pending in it would keep the
	// others from joining.
	if err := abort(ctx, client, admin, transactionalID(group, instance)); err != nil {
		return false, err
	}
	left, err := admin.RemoveMemberFromConsumerGroup(group, []string{instance})
	if err == nil && len(left.Members) == 1 && left.Members[0].Err != sarama.ErrNoError {
		err = left.Members[0].Err
	}
	switch {
	case errors.Is(err, sarama.ErrUnknownMemberId), errors.Is(err, sarama.ErrGroupIDNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("taking %s out of group %s: %w", instance, group, err)
	}
	return true, nil
}

// errUnknownTransactionalID is TRANSACTIONAL_ID_NOT_FOUND, which sarama does not
// name: no producer of that name was ever open, or not for long.
const errUnknownTransactionalID = sarama.KError(105)

// abort ends the open transaction of an ID, if there is one, and waits for the
// end. A transaction that is being committed or aborted already ends by itself.
func abort(ctx context.Context, client sarama.Client, admin sarama.ClusterAdmin, id string) error {
	failed := func(err error) error { return fmt.Errorf("ending the open transaction of %s: %w", id, err) }
	transactions, ok := admin.(sarama.TransactionClusterAdmin)
	if !ok {
		return failed(errors.New("sarama's admin knows no transactions"))
	}
	for {
		states, err := transactions.DescribeTransactions([]string{id})
		if err != nil {
			return failed(err)
		}
		if code := states[id].ErrorCode; code != sarama.ErrNoError && code != errUnknownTransactionalID {
			return failed(code)
		}
		switch states[id].TransactionState {
		case "Ongoing":
			coordinator, err := client.TransactionCoordinator(id)
			if err != nil {
				return failed(err)
			}
			// Refused while a living producer commits: then there is a next time.
			if err := initProducerID(coordinator, id); err != nil {
				return failed(err)
			}
		case "PrepareCommit", "PrepareAbort", "PrepareEpochFence":
		default:
			return nil
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return failed(err)
		}
	}
}

// initProducerID makes every producer of a transactional ID a zombie, and aborts
// the transaction that it has open.
func initProducerID(coordinator *sarama.Broker, id string) error {
	// The timeout holds until the next producer of the name sets its own.
	response, err := coordinator.InitProducerID(&sarama.InitProducerIDRequest{
		Version: 4, TransactionalID: &id, TransactionTimeout: defaultCommitTimeout, ProducerID: -1, ProducerEpoch: -1,
	})
	switch {
	case err != nil:
		return err
	case errors.Is(response.Err, sarama.ErrNoError), errors.Is(response.Err, sarama.ErrConcurrentTransactions):
		return nil // the second is the first answer, but the abort has begun
	default:
		return response.Err
	}
}

// Members returns the static members of a group's present generation: their
// member IDs by instance ID. A group that does not exist has none.
func Members(admin sarama.ClusterAdmin, group string) (map[string]string, error) {
	groups, err := admin.DescribeConsumerGroups([]string{group})
	if err != nil {
		return nil, fmt.Errorf("describing group %s: %w", group, err)
	}
	if len(groups) != 1 {
		return nil, fmt.Errorf("describing group %s: %d answers", group, len(groups))
	}
	// A group that is not known at the moment is not one without members.
	if err := groups[0].Err; !errors.Is(err, sarama.ErrNoError) && !errors.Is(err, sarama.ErrGroupIDNotFound) {
		return nil, fmt.Errorf("describing group %s: %w", group, err)
	}
	present := map[string]string{}
	for _, m := range groups[0].Members {
		if m.GroupInstanceId != nil {
			present[*m.GroupInstanceId] = m.MemberId
		}
	}
	return present, nil
}
