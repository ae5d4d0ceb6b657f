package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"
	"golang.org/x/sync/errgroup"

	"deliverystat/cmd/deliverystat/internal/config"
	"deliverystat/cmd/deliverystat/internal/kafka"
	"deliverystat/cmd/deliverystat/internal/service"
	"deliverystat/cmd/deliverystat/internal/simulation"
	"deliverystat/cmd/deliverystat/internal/topics"
	"deliverystat/processors/exactlyonce"
	"deliverystat/processors/market"
)

// Partitions of the demo's input: enough to show that there are several.
const partitions = 4

// instance is the name of the demo's only replica.
const instance = "demo"

// Options say what to show.
type Options struct {
	config.Serve
	config.Listen

	Rate      float64   // events a second; 0 for as fast as possible
	Seed      uint64    // of the simulated market
	Events    io.Reader // JSON lines to produce instead of the simulated market; nil for none
	Out       io.Writer // what to open, and what became of Events
	Effective map[string]string
	Build     service.Build
	Logger    *slog.Logger

	// Started, if not nil, is called once everything is ready.
	Started func(*service.Service, exactlyonce.ClientConfig)
}

// Run shows the demo until ctx ends.
func Run(ctx context.Context, o Options) (err error) {
	dir, err := os.MkdirTemp("", "deliverystat-demo-")
	if err != nil {
		return fmt.Errorf("making a directory for the demo: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		return fmt.Errorf("starting the embedded broker: %w", err)
	}
	defer broker.Close()
	client := exactlyonce.ClientConfig{Brokers: broker.ListenAddrs(), ClientID: instance, Hasher: o.Hasher()}
	if err := createTopics(ctx, client, &o.Serve); err != nil {
		return err
	}
	o.AllowUnsafe = true // one broker, in memory
	s, err := service.New(ctx, service.Options{
		Serve: o.Serve, Instance: config.Instance{InstanceID: instance, StateDir: dir}, Listen: o.Listen,
		Client: client, Effective: o.Effective, Build: o.Build, Logger: o.Logger,
	})
	if err != nil {
		return err
	}
	return o.show(ctx, s, client)
}

// show runs the service and produces events. The producer ends first, so that
// the service stops with nothing under way.
func (o *Options) show(ctx context.Context, s *service.Service, client exactlyonce.ClientConfig) error {
	group, ctx := errgroup.WithContext(ctx)
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	group.Go(func() error {
		defer stopServing()
		if err := o.produce(ctx, s, client); err != nil && ctx.Err() == nil {
			return err
		}
		<-ctx.Done()
		return nil
	})
	group.Go(func() error {
		if err := s.Run(serving); err != nil {
			return err // ends the producer too
		}
		return nil
	})
	return group.Wait()
}

func (o *Options) produce(ctx context.Context, s *service.Service, client exactlyonce.ClientConfig) error {
	if err := await(ctx, s.Ready); err != nil {
		return err
	}
	if err := o.welcome(s); err != nil {
		return err
	}
	if o.Started != nil {
		o.Started(s, client)
	}
	if o.Events != nil {
		return o.produceLines(ctx, s, client)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return o.simulate(ctx, client) })
	group.Go(func() error { return o.pointOut(ctx, s) })
	return group.Wait()
}

// simulate produces a market until ctx ends.
func (o *Options) simulate(ctx context.Context, client exactlyonce.ClientConfig) error {
	live, err := market.NewLive(market.LiveOptions{
		Seed: o.Seed, Duplicates: 0.02, OutOfOrder: 0.03, Malformed: 0.002, UnknownStatus: 0.002,
	}, o.Lifecycle())
	if err != nil {
		return err
	}
	producer, err := simulation.NewProducer(client, o.Topics().Events, nil)
	if err != nil {
		return err
	}
	return errors.Join(simulation.ProduceLive(ctx, live, producer, o.Rate), producer.Close())
}

// root is where the API is.
func (o *Options) root(s *service.Service) string {
	if o.HTTPTLSCertFile != "" {
		return "https://" + s.HTTPAddress()
	}
	return "http://" + s.HTTPAddress()
}

// welcome says what to open.
func (o *Options) welcome(s *service.Service) error {
	root := o.root(s)
	_, err := fmt.Fprintf(o.Out, "deliverystat demo is ready; Ctrl-C ends it and leaves nothing behind\n"+
		"  board    %s/\n  counts   curl -s %s/v1/counts\n  live     curl -sN %s/v1/counts/stream\n  metrics  http://%s/metrics\n",
		root, root, root, s.AdminAddress())
	if err != nil {
		return fmt.Errorf("printing addresses: %w", err)
	}
	return nil
}

// pointOut names the first delivery that comes, so that there is one to ask for.
func (o *Options) pointOut(ctx context.Context, s *service.Service) error {
	var id string
	seen := func() (ok bool) {
		id, ok = s.FirstDelivery(ctx)
		return ok
	}
	if err := await(ctx, seen); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(o.Out, "  one      curl -s %s/v1/deliveries/%s\n", o.root(s), id); err != nil {
		return fmt.Errorf("printing a delivery: %w", err)
	}
	return nil
}

func createTopics(ctx context.Context, client exactlyonce.ClientConfig, serve *config.Serve) error {
	cluster, err := kafka.Connect(ctx, client)
	if err != nil {
		return err
	}
	defer cluster.Close()
	specs := topics.Specs(serve.Topics(), topics.Window{Lateness: serve.AllowedLateness, AbandonAfter: serve.AbandonAfter}, 1)
	if _, err := topics.Create(cluster.Admin, specs, nil, partitions, 1); err != nil {
		return err
	}
	return nil
}

// await returns once condition holds, or the error of ctx.
func await(ctx context.Context, condition func() bool) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !condition() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// readAll returns all committed records of a topic, partition by partition.
func readAll(ctx context.Context, client exactlyonce.ClientConfig, topic string) ([]*sarama.ConsumerMessage, error) {
	cluster, err := kafka.Connect(ctx, client)
	if err != nil {
		return nil, err
	}
	defer cluster.Close()
	consumer, err := sarama.NewConsumerFromClient(cluster.Client)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", topic, err)
	}
	defer func() { _ = consumer.Close() }() // only read from
	ids, err := cluster.Client.Partitions(topic)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", topic, err)
	}
	var all []*sarama.ConsumerMessage
	for _, p := range ids {
		records, err := readPartition(ctx, cluster.Client, consumer, topic, p)
		if err != nil {
			return nil, fmt.Errorf("reading %s/%d: %w", topic, p, err)
		}
		all = append(all, records...)
	}
	return all, nil
}

func readPartition(ctx context.Context, client sarama.Client, consumer sarama.Consumer, topic string, p int32) ([]*sarama.ConsumerMessage, error) {
	newest, err := client.GetOffset(topic, p, sarama.OffsetNewest)
	if err != nil {
		return nil, err
	}
	end, err := exactlyonce.VisibleEnd(ctx, client, topic, p, 0, newest)
	if err != nil || end == 0 {
		return nil, err
	}
	records, err := consumer.ConsumePartition(topic, p, sarama.OffsetOldest)
	if err != nil {
		return nil, err
	}
	defer func() { _ = records.Close() }() // only read from
	var all []*sarama.ConsumerMessage
	for {
		select {
		case m := <-records.Messages():
			all = append(all, m)
			if m.Offset >= end-1 {
				return all, nil
			}
		case err := <-records.Errors():
			return nil, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
