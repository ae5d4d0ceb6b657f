package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"deliverystat/cmd/deliverystat/internal/access"
	"deliverystat/cmd/deliverystat/internal/config"
)

//go:generate sh -c "go run . topics acls > ../../deploy/kafka/acls.txt"

// topicsACLsCommand prints the permissions of a deployment.
type topicsACLsCommand struct {
	config.Naming

	Principal    string   `help:"Who is to be allowed." default:"User:deliverystat" placeholder:"User:NAME"`
	Roles        []string `help:"What the user's replicas do: processors, api." default:"processors,api" oneof:"processors,api"`
	Sources      []string `help:"Topics that are republished, as serve takes them." placeholder:"TOPIC[=PROFILE],…"`
	KafkaBrokers []string `help:"Broker that the printed lines name." default:"localhost:9092" placeholder:"HOST:PORT,…"`
}

// Check implements config.Checker.
func (c *topicsACLsCommand) Check(problems *config.Problems) {
	c.Naming.Check(problems)
	if kind, name, ok := strings.Cut(c.Principal, ":"); !ok || kind == "" || name == "" {
		problems.Add("principal", "want a kind and a name, such as User:deliverystat, got %q", c.Principal)
	}
}

func (c *topicsACLsCommand) run(_ context.Context, p *process) error {
	d := access.Deployment{
		Topics:     c.Topics(),
		Processors: slices.Contains(c.Roles, config.RoleProcessors),
		API:        slices.Contains(c.Roles, config.RoleAPI),
	}
	for _, source := range c.Sources {
		topic, _, _ := strings.Cut(source, "=")
		d.Sources = append(d.Sources, topic)
	}
	for _, line := range access.Commands(access.Required(d), strings.Join(c.KafkaBrokers, ","), c.Principal) {
		if _, err := fmt.Fprintln(p.stdout, line); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
	}
	return nil
}
