package broker

import (
	"context"
	"fmt"
	"strings"

	"deliverystat/e2e/process"
	"deliverystat/e2e/proxy"
)

// Proxied is a cluster that clients reach through one proxy for each node, by
// ClientAddresses. The nodes themselves, and who uses Addresses, talk directly.
type Proxied struct {
	*Cluster
	Proxies []*proxy.Proxy // by node, the first is that of node 1
}

// StartProxied starts n nodes with everything in dir, behind proxies. overrides
// are as for [New].
func StartProxied(ctx context.Context, dir string, n int, overrides ...string) (*Proxied, error) {
	c, err := allocate(ctx, dir, n)
	if err != nil {
		return nil, err
	}
	ports, err := process.FreePorts(n)
	if err != nil {
		return nil, err
	}
	p := &Proxied{Cluster: c}
	for i, node := range c.nodes {
		behind := fmt.Sprintf("127.0.0.1:%d", ports[i])
		front, err := proxy.Listen(ctx, behind)
		if err != nil {
			return nil, err
		}
		p.Proxies = append(p.Proxies, front)
		node.overrides = []string{
			fmt.Sprintf("listeners=PLAINTEXT://%s,CLIENTS://%s,CONTROLLER://127.0.0.1:%d", node.address(), behind, node.controllerPort),
			fmt.Sprintf("advertised.listeners=PLAINTEXT://%s,CLIENTS://%s", node.address(), front.Address()),
			"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT",
		}
	}
	c.overrides = overrides
	if err := c.formatAll(ctx); err != nil {
		return nil, err
	}
	return p, c.startAll(ctx)
}

// ClientAddresses returns the addresses of the proxies, as the flag
// --kafka-brokers takes them.
func (p *Proxied) ClientAddresses() string {
	addresses := make([]string, len(p.Proxies))
	for i, front := range p.Proxies {
		addresses[i] = front.Address()
	}
	return strings.Join(addresses, ",")
}

// Close ends nodes and proxies.
func (p *Proxied) Close() error {
	err := p.Cluster.Close()
	for _, front := range p.Proxies {
		_ = front.Close() // only a listener
	}
	return err
}
