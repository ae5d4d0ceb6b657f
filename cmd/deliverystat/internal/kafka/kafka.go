// Package kafka connects to a cluster: at once or not at all for commands that
// end by themselves, patiently for the service.
package kafka

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"deliverystat/cmd/deliverystat/internal/exit"
	"deliverystat/processors/exactlyonce"
)

// Bounds of one attempt to reach one broker.
const (
	dialTimeout   = 3 * time.Second
	answerTimeout = 5 * time.Second
)

// dialer gives up when its context ends, so that nobody who stops has to wait
// for a broker that does not answer.
type dialer struct {
	ctx context.Context //nolint:containedctx // sarama's interface has none
}

// Dial implements proxy.Dialer.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	return (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext(d.ctx, network, address)
}

// Cluster is a connection for look-ups.
type Cluster struct {
	Client sarama.Client
	Admin  sarama.ClusterAdmin
}

// Close ends the connection.
func (c *Cluster) Close() { _ = c.Admin.Close() } // closes the client too; nothing is lost with it

// Connect connects, or returns an error with exit code exit.Unreachable that
// names the addresses.
func Connect(ctx context.Context, cfg exactlyonce.ClientConfig) (*Cluster, error) {
	c, err := connect(ctx, cfg)
	if err != nil {
		return nil, exit.With(exit.Unreachable, fmt.Errorf("reaching Kafka at %s: %w", strings.Join(cfg.Brokers, ","), err))
	}
	return c, nil
}

func connect(ctx context.Context, cfg exactlyonce.ClientConfig) (*Cluster, error) {
	s := cfg.Sarama()
	s.Net.ReadTimeout = answerTimeout
	s.Net.Proxy.Enable = true // the only way to dial with a context
	s.Net.Proxy.Dialer = dialer{ctx}
	s.Consumer.MaxWaitTime = 100 * time.Millisecond // small reads, and then it is closed
	s.Metadata.Retry.Max = 1
	s.Metadata.Retry.BackoffFunc = nil
	s.Metadata.Retry.Backoff = 100 * time.Millisecond
	client, err := sarama.NewClient(cfg.Brokers, s)
	if err != nil {
		return nil, err
	}
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		_ = client.Close() // the error that matters is at hand
		return nil, err
	}
	return &Cluster{client, admin}, nil
}

// Await connects as soon as a broker answers, and says that it waits. It
// returns an error only if ctx ends before.
func Await(ctx context.Context, cfg exactlyonce.ClientConfig, logger *slog.Logger) (*Cluster, error) {
	const pause, sayAgain = time.Second, 10 * time.Second
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	var said time.Time
	for {
		c, err := connect(ctx, cfg)
		if err == nil {
			if !said.IsZero() {
				logger.Info("kafka answers")
			}
			return c, nil
		}
		if time.Since(said) >= sayAgain {
			logger.Warn("waiting for Kafka", "brokers", strings.Join(cfg.Brokers, ","), "err", err)
			said = time.Now()
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
