package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
)

// members returns how many members a group has.
func members(t *testing.T, broker, group string) int {
	t.Helper()
	admin, err := sarama.NewClusterAdmin([]string{broker}, sarama.NewConfig())
	require.NoError(t, err)
	defer func() { require.NoError(t, admin.Close()) }()
	groups, err := admin.DescribeConsumerGroups([]string{group})
	require.NoError(t, err)
	require.Len(t, groups, 1)
	return len(groups[0].Members)
}

// A stopped replica stays a member, for it may come back; leave ends that, in
// every group, also of the sources.
func TestAReplicaThatLeftIsInNoGroup(t *testing.T) {
	t.Parallel()
	address := startBroker(t)
	broker := "--kafka-brokers=" + address
	makeTopic(t, address, "orders", 1, nil)
	require.Equal(t, 0, invoke(t, "topics", "create", broker, "--partitions=2", "--replication-factor=1").code)
	httpAddress, admin := freeAddress(t), freeAddress(t)
	serve := []string{
		"serve", broker, "--allow-unsafe", "--instance-id=one", "--sources=orders", "--session-timeout=60s",
		"--state-dir=" + t.TempDir(), "--http-address=" + httpAddress, "--admin-address=" + admin,
	}
	groups := []string{"latest-delivery", "count-per-status", "normalize-orders"}
	_, stop := background(t, serve...)
	awaitReady(t, admin)
	eventually(t, "the source is read", func() (string, bool) {
		_, body := get(t, "http://"+admin+"/partitions")
		return body, strings.Contains(body, `"normalize-orders"`)
	})
	require.Equal(t, 0, stop().code)
	for _, group := range groups {
		require.Equal(t, 1, members(t, address, group), group)
	}

	other := invoke(t, "leave", broker, "--sources=orders", "--instance-id=two")
	left := invoke(t, "leave", broker, "--sources=orders", "--instance-id=one")
	again := invoke(t, "leave", broker, "--sources=orders", "--instance-id=one")

	require.Equal(t, 1, other.code)
	require.Equal(t, []string{"deliverystat: two is in none of the groups latest-delivery, count-per-status, normalize-orders; their members are one"}, other.lines())
	require.Equal(t, 0, left.code, left.stderr)
	require.Equal(t, "one has left latest-delivery\none has left count-per-status\none has left normalize-orders\n", left.stdout)
	for _, group := range groups {
		require.Zero(t, members(t, address, group), group)
	}
	require.Equal(t, 1, again.code)
	require.Equal(t, []string{"deliverystat: one is in none of the groups latest-delivery, count-per-status, normalize-orders; none has any member"}, again.lines())

	_, stop = background(t, serve...)
	awaitReady(t, admin)
	require.Equal(t, 0, stop().code)
}

// A replica that lives is back within seconds: nobody needs to be asked whether
// it does.
func TestAReplicaThatLivesComesBack(t *testing.T) {
	t.Parallel()
	address := startBroker(t)
	broker := "--kafka-brokers=" + address
	require.Equal(t, 0, invoke(t, "topics", "create", broker, "--partitions=2", "--replication-factor=1").code)
	httpAddress, admin := freeAddress(t), freeAddress(t)
	_, stop := background(t, "serve", broker, "--allow-unsafe", "--instance-id=one", "--session-timeout=6s",
		"--state-dir="+t.TempDir(), "--http-address="+httpAddress, "--admin-address="+admin)
	awaitReady(t, admin)
	require.Equal(t, 0, invoke(t, "simulate", broker, "--events=2000", "--deliveries=400").code)

	left := invoke(t, "leave", broker, "--instance-id=one")

	require.Equal(t, 0, left.code, left.stderr)
	eventually(t, "it has joined again", func() (string, bool) {
		_, metrics := get(t, "http://"+admin+"/metrics")
		return metrics, strings.Contains(metrics, `deliverystat_rebalances_total{group="latest-delivery"} 2`) &&
			strings.Contains(metrics, `deliverystat_rebalances_total{group="count-per-status"} 2`)
	})
	require.Equal(t, 0, invoke(t, "simulate", broker, "--events=2000", "--deliveries=400", "--seed=2").code)
	eventually(t, "nothing is behind", func() (string, bool) {
		code, body := get(t, "http://"+httpAddress+"/v1/counts")
		return body, code == http.StatusOK && strings.Contains(body, `"lag_records":0`)
	})
	require.Equal(t, 0, stop().code)
	require.Equal(t, 0, invoke(t, "verify", broker, "--from=events").code)
}

func TestLeaveNeedsAName(t *testing.T) {
	got := invoke(t, "leave", "--sources=delivery-events")

	require.Equal(t, 2, got.code)
	require.Equal(t, []string{
		"deliverystat: --kafka-brokers: required: give at least one broker as host:port",
		"deliverystat: --sources: delivery-events is the input itself; --events-topic names another topic to republish to",
		"deliverystat: --instance-id: required",
	}, got.lines())
}
