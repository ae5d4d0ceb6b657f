package access

import (
	"fmt"
	"slices"
	"strings"

	"github.com/IBM/sarama"

	"deliverystat/processors"
)

// Permission is an operation on a resource.
type Permission struct {
	Resource Resource
	// Operation is what must be allowed. Read and Write include Describe.
	Operation sarama.AclOperation
}

// String names the permission as an operator would: "Read on topic orders".
func (p Permission) String() string {
	return fmt.Sprintf("%s on %s", p.Operation.String(), p.Resource)
}

// Resource is a topic, a group, or the transactional IDs that begin with a text.
type Resource struct {
	Kind sarama.AclResourceType
	Name string // for transactional IDs what they begin with
}

// String implements fmt.Stringer.
func (r Resource) String() string {
	switch r.Kind {
	case sarama.AclResourceTopic:
		return "topic " + r.Name
	case sarama.AclResourceGroup:
		return "group " + r.Name
	default:
		return "transactional IDs " + r.Name + "*"
	}
}

// Deployment is what the list depends on.
type Deployment struct {
	Topics     processors.Topics
	Processors bool // the role of that name
	API        bool // the role of that name
	Sources    []string
}

// Required returns what the user of a deployment must be allowed, each once, in
// the order in which the records flow.
func Required(d Deployment) []Permission {
	t := d.Topics
	l := &list{}
	if d.Processors {
		for _, source := range d.Sources {
			l.topic(source, sarama.AclOperationRead)
			l.member(t.NormalizeGroup(source))
			l.topic(t.Events, sarama.AclOperationWrite)
		}
		l.topic(t.Events, sarama.AclOperationRead, sarama.AclOperationDescribeConfigs)
		l.member(t.DeliveryGroup)
		// Recovery reads a table, also that of a former owner.
		l.topic(t.DeliveryTable, sarama.AclOperationRead, sarama.AclOperationWrite, sarama.AclOperationDescribeConfigs)
		l.topic(t.DeadLetters, sarama.AclOperationWrite, sarama.AclOperationDescribeConfigs)
		l.topic(t.Summaries, sarama.AclOperationWrite, sarama.AclOperationDescribeConfigs)
		l.topic(t.Tallies, sarama.AclOperationRead, sarama.AclOperationWrite, sarama.AclOperationDescribeConfigs)
		l.member(t.CountsGroup)
		l.topic(t.CountsTable, sarama.AclOperationRead, sarama.AclOperationWrite, sarama.AclOperationDescribeConfigs)
	}
	if d.API {
		for _, read := range []string{t.Events, t.DeliveryTable, t.CountsTable} {
			l.topic(read, sarama.AclOperationRead, sarama.AclOperationDescribeConfigs)
		}
	}
	return l.permissions
}

// list gathers permissions, each once.
type list struct{ permissions []Permission }

func (l *list) add(r Resource, operations ...sarama.AclOperation) {
	for _, operation := range operations {
		if p := (Permission{r, operation}); !slices.Contains(l.permissions, p) {
			l.permissions = append(l.permissions, p)
		}
	}
}

func (l *list) topic(name string, operations ...sarama.AclOperation) {
	l.add(Resource{sarama.AclResourceTopic, name}, operations...)
}

// member adds what a member of a group needs that writes in transactions. The
// transactional IDs of all its instances have the group in front; a member also
// ends those that dead ones have left open.
func (l *list) member(group string) {
	l.add(Resource{sarama.AclResourceGroup, group}, sarama.AclOperationRead)
	l.add(Resource{sarama.AclResourceTransactionalID, group + "/"}, sarama.AclOperationWrite)
}

// Commands returns the lines that grant permissions to a principal such as
// "User:deliverystat", one for each resource.
func Commands(permissions []Permission, broker, principal string) []string {
	var order []Resource
	operations := map[Resource][]string{}
	for _, p := range permissions {
		if _, known := operations[p.Resource]; !known {
			order = append(order, p.Resource)
		}
		operations[p.Resource] = append(operations[p.Resource], " --operation "+p.Operation.String())
	}
	lines := make([]string, 0, len(order))
	for _, r := range order {
		lines = append(lines, fmt.Sprintf("kafka-acls.sh --bootstrap-server %s --add --allow-principal %s%s %s",
			broker, principal, strings.Join(operations[r], ""), r.option()))
	}
	return lines
}

// option is how kafka-acls.sh takes the resource.
func (r Resource) option() string {
	switch r.Kind {
	case sarama.AclResourceTopic:
		return "--topic " + r.Name
	case sarama.AclResourceGroup:
		return "--group " + r.Name
	default:
		return "--resource-pattern-type prefixed --transactional-id " + r.Name
	}
}
