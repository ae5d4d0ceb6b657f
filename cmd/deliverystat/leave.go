package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"deliverystat/cmd/deliverystat/internal/config"
	"deliverystat/cmd/deliverystat/internal/exit"
	"deliverystat/cmd/deliverystat/internal/kafka"
	"deliverystat/processors/exactlyonce"
)

// leaveCommand takes a replica out of its groups.
type leaveCommand struct {
	config.Kafka
	config.Naming
	config.Sourcing

	InstanceID string `help:"Name of the replica that will not come back (required)." placeholder:"NAME"`
}

// Help says more about the command.
func (*leaveCommand) Help() string {
	return "Without it the partitions of a replica that was stopped or died stand still for --session-timeout, in which it may come back " +
		"without a rebalance. Kafka can not tell whether such a replica lives, so nothing is asked: one that does loses the epoch " +
		"that it is at, does it again, and is back in the groups within seconds. Give the --sources of serve."
}

// Check implements config.Checker.
func (c *leaveCommand) Check(problems *config.Problems) {
	c.Kafka.Check(problems)
	c.Naming.Check(problems)
	c.CheckSources(c.Topics(), problems)
	config.CheckInstance(c.InstanceID, problems)
}

// leaveTimeout bounds the whole command.
const leaveTimeout = 30 * time.Second

func (c *leaveCommand) run(ctx context.Context, p *process) error {
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	client, err := c.Client("deliverystat-leave", c.Hasher())
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	cluster, err := kafka.Connect(ctx, client)
	if err != nil {
		return err
	}
	defer cluster.Close()
	topics := c.Topics()
	groups := []string{topics.DeliveryGroup, topics.CountsGroup}
	for _, source := range c.Names() {
		groups = append(groups, topics.NormalizeGroup(source))
	}
	left := 0
	var errs []error
	for _, group := range groups {
		member, err := exactlyonce.Expel(ctx, cluster.Client, group, c.InstanceID)
		errs = append(errs, err)
		if member {
			left++
			_, _ = fmt.Fprintf(p.stdout, "%s has left %s\n", c.InstanceID, group) // that it has is what was asked for
		}
	}
	if err := errors.Join(errs...); err != nil || left > 0 {
		return err
	}
	return c.stranger(cluster, groups)
}

// stranger says that the instance is in no group, and who is.
func (c *leaveCommand) stranger(cluster *kafka.Cluster, groups []string) error {
	all := map[string]string{}
	for _, group := range groups {
		members, err := exactlyonce.Members(cluster.Admin, group)
		if err != nil {
			return err
		}
		maps.Copy(all, members)
	}
	names := "none has any member"
	if len(all) > 0 {
		names = "their members are " + strings.Join(slices.Sorted(maps.Keys(all)), ", ")
	}
	return fmt.Errorf("%s is in none of the groups %s; %s", c.InstanceID, strings.Join(groups, ", "), names)
}
