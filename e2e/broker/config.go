package broker

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

// properties writes the configuration of node id of a cluster.
func (c *Cluster) properties(id int) string {
	n := c.nodes[id-1]
	voters := make([]string, len(c.nodes))
	for i, v := range c.nodes {
		voters[i] = fmt.Sprintf("%d@127.0.0.1:%d", i+1, v.controllerPort)
	}
	replicas := min(3, len(c.nodes))
	lines := []string{
		"process.roles=broker,controller",
		fmt.Sprintf("node.id=%d", id),
		"controller.quorum.voters=" + strings.Join(voters, ","),
		fmt.Sprintf("listeners=PLAINTEXT://127.0.0.1:%d,CONTROLLER://127.0.0.1:%d", n.port, n.controllerPort),
		fmt.Sprintf("advertised.listeners=PLAINTEXT://127.0.0.1:%d", n.port),
		"controller.listener.names=CONTROLLER",
		"inter.broker.listener.name=PLAINTEXT",
		"log.dirs=" + n.data(),
		// A killed node may only register again when its former session is over.
		"broker.session.timeout.ms=6000",
		// A typo in a topic name must show.
		"auto.create.topics.enable=false",
		// The first member of a group should not wait three seconds for others.
		"group.initial.rebalance.delay.ms=0",
		fmt.Sprintf("offsets.topic.replication.factor=%d", replicas),
		"offsets.topic.num.partitions=8",
		fmt.Sprintf("transaction.state.log.replication.factor=%d", replicas),
		fmt.Sprintf("transaction.state.log.min.isr=%d", max(1, replicas-1)),
		"transaction.state.log.num.partitions=8",
		// Small buffers: the broker shares two cores and little memory with
		// what is tested.
		"log.cleaner.dedupe.buffer.size=16777216",
		"log.cleaner.threads=1",
	}
	return strings.Join(slices.Concat(lines, c.overrides, n.overrides), "\n") + "\n"
}

// log4j sends what the broker has to say to its output, which goes to a file.
const log4j = `rootLogger.level = INFO
rootLogger.appenderRef.out.ref = OUT
appender.out.type = Console
appender.out.name = OUT
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ABSOLUTE} %p %c{1} %m%n
`

// clusterID makes an ID in Kafka's form: 16 bytes in URL-safe base64.
func clusterID() string {
	for {
		id := base64.RawURLEncoding.EncodeToString([]byte(rand.Text())[:16])
		if !strings.HasPrefix(id, "-") { // the tool would take it for a flag
			return id
		}
	}
}
