package topics_test

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/cmd/deliverystat/internal/topics"
	"deliverystat/processors"
)

var window = topics.Window{Lateness: 24 * time.Hour, AbandonAfter: 168 * time.Hour}

// asCreated are the topics of a deployment of 8 partitions as Create makes them.
func asCreated() ([]topics.Spec, map[string]topics.Topic) {
	const partitions, factor = 8, 3
	specs := topics.Specs(processors.NewTopics("", ""), window, factor)
	existing := map[string]topics.Topic{}
	for _, s := range specs {
		n := s.Partitions
		if n == 0 {
			n = partitions
		}
		existing[s.Name] = topics.Topic{Partitions: n, ReplicationFactor: factor, Settings: maps.Clone(s.Settings)}
	}
	return specs, existing
}

func TestTopicsAsCreatedAreRight(t *testing.T) {
	specs, existing := asCreated()

	require.Empty(t, topics.Inspect(specs, existing, window))
}

func TestEachFaultIsFound(t *testing.T) {
	const events, table, counts, tallies, letters = "delivery-events", "latest-delivery-table", "count-per-status-table", "status-tallies", "delivery-events-dead-letter"
	set := func(name, value string) func(*topics.Topic) {
		return func(topic *topics.Topic) { topic.Settings[name] = value }
	}
	for _, test := range []struct {
		topic  string
		change func(*topics.Topic)
		weight topics.Weight
		text   string
	}{
		{table, func(topic *topics.Topic) { topic.Partitions = 7 }, topics.Broken, "has 7 partitions, want 8"},
		{counts, func(topic *topics.Topic) { topic.Partitions = 8 }, topics.Broken, "has 8 partitions, want 1"},
		{tallies, func(topic *topics.Topic) { topic.Partitions = 2 }, topics.Broken, "has 2 partitions, want 1"},
		{table, set("cleanup.policy", "delete"), topics.Broken, "has cleanup.policy=delete, want compact"},
		{table, set("cleanup.policy", "compact,delete"), topics.Broken, "has cleanup.policy=compact,delete, want compact"},
		{tallies, set("cleanup.policy", "compact"), topics.Broken, "has cleanup.policy=compact, want delete"},
		{events, set("cleanup.policy", "compact"), topics.Unsafe, "has cleanup.policy=compact, want delete"},
		{table, set("min.compaction.lag.ms", "0"), topics.Unsafe, "has min.compaction.lag.ms=0, want at least 3600000"},
		{table, set("delete.retention.ms", "60000"), topics.Unsafe, "has delete.retention.ms=60000, want at least 86400000"},
		{tallies, set("retention.ms", "1000"), topics.Unsafe, "has retention.ms=1000, want at least 3600000"},
		{letters, set("max.message.bytes", "1048587"), topics.Broken, "has max.message.bytes=1048587, want at least 1048588"},
		{letters, func(topic *topics.Topic) { topic.ReplicationFactor = 1 }, topics.Unsafe, "has replication factor 1: the loss of one broker loses its records"},
		{table, set("min.insync.replicas", "1"), topics.Unsafe, "has min.insync.replicas=1 with replication factor 3: a record on one broker counts as written"},
		{table, set("min.insync.replicas", "3"), topics.Warning, "has min.insync.replicas=3 with replication factor 3: writes stop when one broker does"},
		{table, func(topic *topics.Topic) { topic.ReplicationFactor, topic.Settings["min.insync.replicas"] = 2, "1" }, topics.Warning, "has min.insync.replicas=1 with replication factor 2: a record on one broker counts as written"},
		{table, set("unclean.leader.election.enable", "true"), topics.Unsafe, "has unclean.leader.election.enable=true: an election may lose written records"},
		{events, set("message.timestamp.after.max.ms", "9223372036854775807"), topics.Unsafe, "does not bound record timestamps: want message.timestamp.type=LogAppendTime, or message.timestamp.after.max.ms of at most 3600000"},
		{events, set("retention.ms", "604800000"), topics.Warning, "has retention.ms=604800000, less than --abandon-after + --allowed-lateness (691200000): tables can not be rebuilt from it exactly"},
	} {
		t.Run(test.topic+" "+test.text, func(t *testing.T) {
			specs, existing := asCreated()
			topic := existing[test.topic]
			test.change(&topic)
			existing[test.topic] = topic

			require.Equal(t, []topics.Finding{{Topic: test.topic, Weight: test.weight, Text: "topic " + test.topic + " " + test.text}},
				topics.Inspect(specs, existing, window))
		})
	}
}

func TestWhatIsNoFault(t *testing.T) {
	specs, existing := asCreated()
	// Any number of dead letter partitions will do, and the topic of features
	// to come may be absent. A broker's clock bounds timestamps by itself, and
	// an input without end can be read from its beginning.
	letters := existing["delivery-events-dead-letter"]
	letters.Partitions = 3
	existing["delivery-events-dead-letter"] = letters
	delete(existing, "deliverystat-control")
	events := existing["delivery-events"]
	events.Settings["message.timestamp.type"] = "LogAppendTime"
	events.Settings["message.timestamp.after.max.ms"] = "9223372036854775807"
	events.Settings["retention.ms"] = "-1"
	events.Settings["max.message.bytes"] = "1000" // we do not write to it
	letters.Settings["max.message.bytes"] = "1048588"

	require.Empty(t, topics.Inspect(specs, existing, window))
}

func TestMissingTopics(t *testing.T) {
	specs, _ := asCreated()

	findings := topics.Inspect(specs, nil, window)

	require.Len(t, findings, 6)
	require.Equal(t, topics.Finding{Topic: "delivery-events", Weight: topics.Broken, Missing: true, Text: "topic delivery-events does not exist"}, findings[0])
}

// Rows can be rebuilt from the input only as long as it reaches back beyond
// everything that still matters.
func TestTheInputIsKeptLongEnough(t *testing.T) {
	for want, window := range map[string]topics.Window{
		"777600000": window, // 168h + 24h, and a day to spare
		"604800000": {Lateness: time.Hour, AbandonAfter: time.Hour},
		"-1":        {Lateness: time.Hour}, // never abandoned, never forgotten
	} {
		specs := topics.Specs(processors.NewTopics("", ""), window, 3)
		require.Equal(t, want, specs[0].Settings["retention.ms"])
	}
}

// Who republishes sources writes to the input.
func TestABatchForTheInputMustFitIfThereAreSources(t *testing.T) {
	specs, existing := asCreated()
	existing["delivery-events"].Settings["max.message.bytes"] = "1000"

	require.Empty(t, topics.Inspect(topics.WithSources(specs, nil), existing, window))
	require.Equal(t, []topics.Finding{{
		Topic: "delivery-events", Weight: topics.Broken, Text: "topic delivery-events has max.message.bytes=1000, want at least 1048588",
	}}, topics.Inspect(topics.WithSources(specs, []string{"orders"}), existing, window))
}

// A replica that only answers reads the input and the tables.
func TestReadOnlyLeavesOutWhatIsWrittenOnly(t *testing.T) {
	specs, _ := asCreated()

	var names []string
	for _, s := range topics.ReadOnly(specs) {
		names = append(names, s.Name)
	}

	require.Equal(t, []string{"delivery-events", "latest-delivery-table", "count-per-status-table"}, names)
}
