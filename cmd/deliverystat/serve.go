package main

import (
	"context"

	"deliverystat/cmd/deliverystat/internal/config"
	"deliverystat/cmd/deliverystat/internal/exit"
	"deliverystat/cmd/deliverystat/internal/service"
)

// serveCommand runs the service against a real Kafka.
type serveCommand struct {
	config.Kafka
	config.Serve
	config.Instance
	config.Listen
}

// Check implements config.Checker.
func (c *serveCommand) Check(problems *config.Problems) {
	c.Kafka.Check(problems)
	c.Serve.Check(problems)
	c.Instance.Check(problems)
	c.Listen.Check(problems)
}

func (c *serveCommand) run(ctx context.Context, p *process) error {
	client, err := c.Client("deliverystat-"+c.Name(), c.Hasher())
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	s, err := service.New(ctx, service.Options{
		Serve: c.Serve, Instance: c.Instance, Listen: c.Listen,
		Client: client, Effective: p.parsed.Effective(), Build: serviceBuild(), Logger: p.logger,
	})
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

func serviceBuild() service.Build {
	b := readBuild()
	return service.Build{Version: b.version, Revision: b.revision, GoVersion: b.goVersion}
}
