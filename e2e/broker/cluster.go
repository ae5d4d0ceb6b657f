package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"deliverystat/e2e/process"
)

// stopTimeout is how long a node may take to shut down by itself.
const stopTimeout = 30 * time.Second

// Cluster is a Kafka cluster of this process.
type Cluster struct {
	jars      string
	nodes     []*node
	overrides []string // lines of server.properties
	jvm       []string // further arguments of java
	log4j     string
}

type node struct {
	dir                  string
	port, controllerPort int
	overrides            []string // lines of server.properties of this node only
	proc                 *process.Process
}

func (n *node) data() string    { return filepath.Join(n.dir, "data") }
func (n *node) conf() string    { return filepath.Join(n.dir, "conf") }
func (n *node) config() string  { return filepath.Join(n.conf(), "server.properties") }
func (n *node) address() string { return fmt.Sprintf("127.0.0.1:%d", n.port) }

// New prepares a cluster of n nodes with everything in dir. overrides are lines
// of server.properties that win over the defaults. Nothing runs yet.
func New(ctx context.Context, dir string, n int, overrides ...string) (*Cluster, error) {
	c, err := allocate(ctx, dir, n)
	if err != nil {
		return nil, err
	}
	c.overrides = overrides
	return c, c.formatAll(ctx)
}

// Start prepares a cluster as New does, starts all its nodes and waits until
// they serve.
func Start(ctx context.Context, dir string, n int, overrides ...string) (*Cluster, error) {
	c, err := New(ctx, dir, n, overrides...)
	if err != nil {
		return nil, err
	}
	return c, c.startAll(ctx)
}

// allocate gives the nodes of a cluster their folders and addresses.
func allocate(ctx context.Context, dir string, n int) (*Cluster, error) {
	jars, err := Jars(ctx)
	if err != nil {
		return nil, err
	}
	ports, err := process.FreePorts(2 * n)
	if err != nil {
		return nil, err
	}
	c := &Cluster{jars: jars, log4j: log4j}
	for i := range n {
		c.nodes = append(c.nodes, &node{
			dir:  filepath.Join(dir, fmt.Sprintf("kafka-%d", i+1)),
			port: ports[2*i], controllerPort: ports[2*i+1],
		})
	}
	return c, nil
}

func (c *Cluster) formatAll(ctx context.Context) error {
	id := clusterID()
	for i := range c.nodes {
		if err := c.format(ctx, i+1, id); err != nil {
			return err
		}
	}
	return nil
}

// startAll closes the cluster if it does not come up.
func (c *Cluster) startAll(ctx context.Context) error {
	for i := range c.nodes {
		if err := c.StartNode(i + 1); err != nil {
			return errors.Join(err, c.Close())
		}
	}
	if err := c.WaitReady(ctx); err != nil {
		return errors.Join(err, c.Close())
	}
	return nil
}

// Addresses returns the addresses of all nodes, running or not, as the flag
// --kafka-brokers takes them.
func (c *Cluster) Addresses() string {
	addresses := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		addresses[i] = n.address()
	}
	return strings.Join(addresses, ",")
}

// Process returns the running or last process of node id (from 1), nil if it
// was never started.
func (c *Cluster) Process(id int) *process.Process { return c.nodes[id-1].proc }

// LogFile returns the file with the output of node id (from 1).
func (c *Cluster) LogFile(id int) string { return filepath.Join(c.nodes[id-1].dir, "log") }

// StartNode starts node id (from 1), for the first time or again with its old
// data. It does not wait until the node serves: see WaitReady.
func (c *Cluster) StartNode(id int) error {
	n := c.nodes[id-1]
	argv := append([]string{"java", "-Xms256m", "-Xmx1g", "-XX:+UseG1GC"}, c.jvm...)
	argv = append(argv, "-Dlog4j2.configurationFile="+filepath.Join(n.conf(), "log4j2.properties"),
		"-cp", filepath.Join(c.jars, "*"), "kafka.Kafka", n.config())
	p, err := process.Start(c.LogFile(id), nil, argv...)
	if err != nil {
		return err
	}
	n.proc = p
	return nil
}

// KillNode ends node id (from 1) as kill -9 does.
func (c *Cluster) KillNode(id int) error {
	if p := c.nodes[id-1].proc; p != nil {
		return p.Kill()
	}
	return nil
}

// StopNode shuts node id (from 1) down cleanly.
func (c *Cluster) StopNode(id int) error {
	p := c.nodes[id-1].proc
	if p == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return p.Stop(ctx)
}

// Close kills all nodes. Their folders stay.
func (c *Cluster) Close() error {
	var errs []error
	for i := range c.nodes {
		errs = append(errs, c.KillNode(i+1))
	}
	return errors.Join(errs...)
}

// WaitReady waits until every node that was started has joined the cluster and
// answers clients. It returns early if one of them has ended.
func (c *Cluster) WaitReady(ctx context.Context) error {
	for i, n := range c.nodes {
		if n.proc == nil {
			continue
		}
		for {
			err := c.probe(ctx, n)
			if err == nil {
				break
			}
			select {
			case <-n.proc.Done():
				return fmt.Errorf("waiting for kafka node %d: it has ended:\n%s", i+1, c.logTail(i+1))
			case <-ctx.Done():
				return fmt.Errorf("waiting for kafka node %d: %w (last: %w):\n%s", i+1, ctx.Err(), err, c.logTail(i+1))
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	return nil
}

// probe asks n for the members of the cluster.
func (c *Cluster) probe(ctx context.Context, n *node) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(n.address()), kgo.RequestRetries(0), kgo.DialTimeout(time.Second))
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{} // none
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return fmt.Errorf("asking for metadata: %w", err)
	}
	want := 0
	for _, n := range c.nodes {
		if n.proc != nil && n.proc.Running() {
			want++
		}
	}
	if len(resp.Brokers) < want || resp.ControllerID < 0 {
		return fmt.Errorf("%d of %d nodes are registered", len(resp.Brokers), want)
	}
	return nil
}

func (c *Cluster) format(ctx context.Context, id int, cluster string) error {
	n := c.nodes[id-1]
	if err := os.MkdirAll(n.conf(), 0o750); err != nil {
		return fmt.Errorf("making the folder of kafka node %d: %w", id, err)
	}
	if err := os.WriteFile(n.config(), []byte(c.properties(id)), 0o600); err != nil {
		return fmt.Errorf("writing the configuration of kafka node %d: %w", id, err)
	}
	if err := os.WriteFile(filepath.Join(n.conf(), "log4j2.properties"), []byte(c.log4j), 0o600); err != nil {
		return fmt.Errorf("writing the log configuration of kafka node %d: %w", id, err)
	}
	cmd := exec.CommandContext(ctx, "java", "-XX:TieredStopAtLevel=1", "-cp", filepath.Join(c.jars, "*"),
		"kafka.tools.StorageTool", "format", "-t", cluster, "-c", n.config())
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("formatting kafka node %d: %w\n%s", id, err, out)
	}
	return nil
}

func (c *Cluster) logTail(id int) []byte {
	b, err := os.ReadFile(c.LogFile(id))
	if err != nil {
		return []byte(err.Error())
	}
	lines := bytes.SplitAfter(b, []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-20):], nil)
}
