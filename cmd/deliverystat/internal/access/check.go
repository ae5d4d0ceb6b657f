package access

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/IBM/sarama"
)

// MissingError names what a user is not allowed.
type MissingError struct{ Permissions []Permission }

// Error implements error.
func (e *MissingError) Error() string {
	names := make([]string, len(e.Permissions))
	for i, p := range e.Permissions {
		names[i] = p.String()
	}
	return "not allowed: " + strings.Join(names, ", ")
}

// Check asks the cluster which of the permissions the user of client has. It
// returns a *MissingError if one is missing. What the cluster does not tell
// (brokers before Kafka 2.3, transactional IDs, topics that do not exist) counts
// as allowed.
func Check(client sarama.Client, permissions []Permission) error {
	granted, err := grants(client, permissions)
	if err != nil {
		return err
	}
	var missing []Permission
	for _, p := range permissions {
		if allowed, known := granted[p.Resource]; known && !allowed.has(p.Operation) {
			missing = append(missing, p)
		}
	}
	if len(missing) > 0 {
		return &MissingError{missing}
	}
	return nil
}

// operations is a set of operations in Kafka's form: bit n is the operation
// with the code n (KIP-430).
type operations int32

// untold is what a broker says that was not asked, or does not know.
const untold operations = math.MinInt32

func (o operations) has(operation sarama.AclOperation) bool {
	return o == untold || o&(1<<operation) != 0
}

// grants returns what is allowed on those resources that the cluster tells of.
func grants(client sarama.Client, permissions []Permission) (map[Resource]operations, error) {
	granted := map[Resource]operations{}
	var topics []string
	for _, p := range permissions {
		r := p.Resource
		if _, known := granted[r]; known || r.Kind == sarama.AclResourceTransactionalID {
			continue
		}
		granted[r] = untold
		if r.Kind == sarama.AclResourceTopic {
			topics = append(topics, r.Name)
			continue
		}
		allowed, err := onGroup(client, r.Name)
		if err != nil {
			return nil, err
		}
		granted[r] = allowed
	}
	described, err := onTopics(client, topics)
	if err != nil {
		return nil, err
	}
	for name, allowed := range described {
		granted[Resource{sarama.AclResourceTopic, name}] = allowed
	}
	return granted, nil
}

func onTopics(client sarama.Client, topics []string) (map[string]operations, error) {
	broker, err := client.Controller()
	if err != nil {
		return nil, fmt.Errorf("asking what is allowed on topics: %w", err)
	}
	request := sarama.NewMetadataRequest(client.Config().Version, topics)
	request.IncludeTopicAuthorizedOperations = true
	response, err := broker.GetMetadata(request)
	if err != nil {
		return nil, fmt.Errorf("asking what is allowed on topics: %w", err)
	}
	allowed := map[string]operations{}
	for _, t := range response.Topics {
		switch {
		case errors.Is(t.Err, sarama.ErrTopicAuthorizationFailed):
			allowed[t.Name] = 0
		case errors.Is(t.Err, sarama.ErrNoError) && response.Version >= 8:
			allowed[t.Name] = operations(t.TopicAuthorizedOperations)
		default: // named by whoever needs the topic
		}
	}
	return allowed, nil
}

func onGroup(client sarama.Client, group string) (operations, error) {
	failed := func(err error) (operations, error) {
		return 0, fmt.Errorf("asking what is allowed on group %s: %w", group, err)
	}
	coordinator, err := client.Coordinator(group)
	if errors.Is(err, sarama.ErrGroupAuthorizationFailed) {
		return 0, nil
	}
	if err != nil {
		return failed(err)
	}
	response, err := coordinator.DescribeGroups(&sarama.DescribeGroupsRequest{
		Version: 4, Groups: []string{group}, IncludeAuthorizedOperations: true,
	})
	if err != nil {
		return failed(err)
	}
	for _, g := range response.Groups {
		switch {
		case g.GroupId != group:
		case errors.Is(g.Err, sarama.ErrGroupAuthorizationFailed):
			return 0, nil
		case errors.Is(g.Err, sarama.ErrNoError), errors.Is(g.Err, sarama.ErrGroupIDNotFound):
			return operations(g.AuthorizedOperations), nil
		default:
			return failed(g.Err)
		}
	}
	return untold, nil
}
