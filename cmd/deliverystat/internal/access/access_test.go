package access_test

import (
	"strings"
	"testing"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"deliverystat/cmd/deliverystat/internal/access"
	"deliverystat/processors"
)

func names(permissions []access.Permission) string {
	lines := make([]string, len(permissions))
	for i, p := range permissions {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

func TestAReplicaThatOnlyAnswersWritesNothing(t *testing.T) {
	got := access.Required(access.Deployment{Topics: processors.NewTopics("x-", "orders"), API: true})

	require.Equal(t, `Read on topic orders
DescribeConfigs on topic orders
Read on topic x-latest-delivery-table
DescribeConfigs on topic x-latest-delivery-table
Read on topic x-count-per-status-table
DescribeConfigs on topic x-count-per-status-table`, names(got))
}

// Both roles together need nothing beyond the processors.
func TestEachPermissionIsNamedOnce(t *testing.T) {
	d := access.Deployment{Topics: processors.NewTopics("", ""), Processors: true, Sources: []string{"a", "b"}}
	alone := access.Required(d)
	d.API = true

	require.ElementsMatch(t, alone, access.Required(d))
}

// The input is written only by who republishes sources to it.
func TestSourcesAddWhatRepublishingNeeds(t *testing.T) {
	d := access.Deployment{Topics: processors.NewTopics("", ""), Processors: true}
	without := access.Required(d)
	d.Sources = []string{"a"}

	var added []access.Permission
	for _, p := range access.Required(d) {
		found := false
		for _, w := range without {
			found = found || w == p
		}
		if !found {
			added = append(added, p)
		}
	}

	require.Equal(t, "Read on topic a\nRead on group normalize-a\nWrite on transactional IDs normalize-a/*\nWrite on topic delivery-events", names(added))
}

func TestCommandsGrantAllOfAResourceAtOnce(t *testing.T) {
	topic := access.Resource{Kind: sarama.AclResourceTopic, Name: "t"}
	permissions := []access.Permission{
		{Resource: topic, Operation: sarama.AclOperationRead},
		{Resource: access.Resource{Kind: sarama.AclResourceTransactionalID, Name: "g/"}, Operation: sarama.AclOperationWrite},
		{Resource: topic, Operation: sarama.AclOperationWrite},
		{Resource: access.Resource{Kind: sarama.AclResourceGroup, Name: "g"}, Operation: sarama.AclOperationRead},
	}

	require.Equal(t, []string{
		"kafka-acls.sh --bootstrap-server b:1 --add --allow-principal User:u --operation Read --operation Write --topic t",
		"kafka-acls.sh --bootstrap-server b:1 --add --allow-principal User:u --operation Write --resource-pattern-type prefixed --transactional-id g/",
		"kafka-acls.sh --bootstrap-server b:1 --add --allow-principal User:u --operation Read --group g",
	}, access.Commands(permissions, "b:1", "User:u"))
}
