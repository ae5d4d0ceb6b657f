package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"deliverystat/cmd/deliverystat/internal/config"
	"deliverystat/cmd/deliverystat/internal/exit"
	"deliverystat/cmd/deliverystat/internal/kafka"
	"deliverystat/cmd/deliverystat/internal/topics"
)

// topicsCommand creates or checks topics, or says who must be allowed what.
type topicsCommand struct {
	Create topicsCreateCommand `cmd:"" help:"Create the topics that do not exist. The tables take the partitions of an input that does."`
	Check  topicsCheckCommand  `cmd:"" help:"Name each topic that is missing, wrong or unsafe."`
	ACLs   topicsACLsCommand   `cmd:"" name:"acls" help:"Print what a user must be allowed, as lines for kafka-acls.sh. Talks to nobody."`
}

// topicsOptions are the flags of both.
type topicsOptions struct {
	config.Kafka
	config.Naming
	config.Format
	config.Window
	config.Safety
	config.Sourcing

	Partitions        int32 `help:"Partitions of a new input." default:"8"`
	ReplicationFactor int16 `help:"Replicas of each new topic." default:"3"`
}

// Check implements config.Checker.
func (o *topicsOptions) Check(problems *config.Problems) {
	o.Kafka.Check(problems)
	o.Naming.Check(problems)
	o.Format.Check(problems)
	o.Window.Check(problems)
	o.CheckSources(o.Topics(), problems)
	if o.Partitions < 1 || o.Partitions > 10_000 {
		problems.Add("partitions", "want 1 to 10000, got %d", o.Partitions)
	}
	if o.ReplicationFactor < 1 {
		problems.Add("replication-factor", "want at least 1, got %d", o.ReplicationFactor)
	}
}

// looked is what there is.
type looked struct {
	*kafka.Cluster

	specs    []topics.Spec
	existing map[string]topics.Topic
	missing  []string // sources
}

// look connects and describes the topics that exist.
func (o *topicsOptions) look(ctx context.Context) (*looked, error) {
	client, err := o.Client("deliverystat-topics", o.Hasher())
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	cluster, err := kafka.Connect(ctx, client)
	if err != nil {
		return nil, err
	}
	l := &looked{Cluster: cluster, specs: topics.WithSources(topics.Specs(o.Topics(), o.window(), o.ReplicationFactor), o.Names())}
	if l.existing, err = topics.Describe(cluster.Admin, l.specs); err == nil {
		l.missing, err = topics.Missing(cluster.Admin, o.Names())
	}
	if err != nil {
		cluster.Close()
		return nil, err
	}
	return l, nil
}

func (o *topicsOptions) window() topics.Window {
	return topics.Window{Lateness: o.AllowedLateness, AbandonAfter: o.AbandonAfter}
}

// appearTimeout is how long new topics may take until the brokers tell of them.
const appearTimeout = 30 * time.Second

// topicsCreateCommand creates the topics that do not exist.
type topicsCreateCommand struct{ topicsOptions }

func (c *topicsCreateCommand) run(ctx context.Context, p *process) error {
	l, err := c.look(ctx)
	if err != nil {
		return err
	}
	defer l.Close()
	created, err := topics.Create(l.Admin, l.specs, l.existing, c.Partitions, c.ReplicationFactor)
	for _, name := range created {
		_, _ = fmt.Fprintf(p.stdout, "created %s\n", name) // the topic is what was asked for
	}
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	appear, cancel := context.WithTimeout(ctx, appearTimeout)
	defer cancel()
	if err := topics.Appear(appear, l.Admin, l.specs); err != nil {
		return exit.With(exit.Unreachable, err)
	}
	for _, name := range l.missing {
		_, _ = fmt.Fprintf(p.stdout, "warning: source %s does not exist: who writes it makes it\n", name) // as above
	}
	var wrong []string
	for _, f := range topics.Inspect(l.specs, l.existing, c.window()) {
		switch {
		case f.Missing: // created above
		case f.Weight == topics.Broken:
			wrong = append(wrong, f.Text)
		default:
			_, _ = fmt.Fprintf(p.stdout, "warning: existing %s\n", f.Text) // as above
		}
	}
	if len(wrong) > 0 {
		return exit.With(exit.Usage, fmt.Errorf("existing topics are wrong: %s", strings.Join(wrong, "; ")))
	}
	return nil
}

// topicsCheckCommand names each fault.
type topicsCheckCommand struct{ topicsOptions }

func (c *topicsCheckCommand) run(ctx context.Context, p *process) error {
	l, err := c.look(ctx)
	if err != nil {
		return err
	}
	defer l.Close()
	findings := topics.Inspect(l.specs, l.existing, c.window())
	for _, name := range l.missing {
		findings = append(findings, topics.Finding{Topic: name, Weight: topics.Broken, Text: "source " + name + " does not exist"})
	}
	faults, missing := 0, false
	for _, f := range findings {
		accepted := f.Weight == topics.Warning || f.Weight == topics.Unsafe && c.AllowUnsafe
		label := map[topics.Weight]string{topics.Warning: "warning", topics.Unsafe: "unsafe", topics.Broken: "wrong"}[f.Weight]
		if !accepted {
			faults++
		}
		missing = missing || f.Missing
		if _, err := fmt.Fprintf(p.stdout, "%s: %s\n", label, f.Text); err != nil {
			return fmt.Errorf("printing findings: %w", err)
		}
	}
	switch {
	case faults == 0:
		_, err := fmt.Fprintf(p.stdout, "%d topics are as they must be\n", len(l.existing)+len(c.Names()))
		return err
	case missing:
		return fmt.Errorf("topics are not as they must be: %d faults; missing ones are made by: %s",
			faults, topics.CreateCommand(c.KafkaBrokers, c.TopicPrefix, c.EventsTopic))
	default:
		return fmt.Errorf("topics are not as they must be: %d faults", faults)
	}
}
