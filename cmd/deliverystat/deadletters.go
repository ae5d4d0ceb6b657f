package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"deliverystat/cmd/deliverystat/internal/config"
	"deliverystat/cmd/deliverystat/internal/deadletters"
	"deliverystat/cmd/deliverystat/internal/exit"
	"deliverystat/cmd/deliverystat/internal/kafka"
	"deliverystat/cmd/deliverystat/internal/topics"
	"deliverystat/codecs"
	"deliverystat/processors/exactlyonce"
)

// deadLettersCommand shows or sends back what was refused.
type deadLettersCommand struct {
	List   deadLettersListCommand   `cmd:"" help:"What was refused, and why."`
	Replay deadLettersReplayCommand `cmd:"" help:"Send refused records back to the input, with their keys, values and headers."`
}

// deadLettersOptions are the flags of both.
type deadLettersOptions struct {
	config.Kafka
	config.Naming
	config.Format
	config.Safety

	Reason     []string `help:"Only what was refused for one of these reasons." placeholder:"REASON,…"`
	Key        string   `help:"Only records with this key." placeholder:"KEY"`
	DeliveryID string   `help:"Only records with this key, or whose value names this delivery." placeholder:"ID"`
	Since      string   `help:"Only what was refused since then: a time in RFC 3339, or a duration before now." placeholder:"TIME|DURATION"`
	Partition  int32    `help:"Only records of this partition of the input; -1 for all." default:"-1"`
	Limit      int      `help:"At most so many, the oldest first; 0 for all." default:"0"`
}

// Check implements config.Checker.
func (o *deadLettersOptions) Check(problems *config.Problems) {
	o.Kafka.Check(problems)
	o.Naming.Check(problems)
	o.Format.Check(problems)
	for _, reason := range o.Reason {
		if !slices.Contains(codecs.Reasons(), codecs.Reason(reason)) {
			problems.Add("reason", "%q is not one of %v", reason, codecs.Reasons())
		}
	}
	if _, err := o.since(time.Now()); err != nil {
		problems.Add("since", "want a time in RFC 3339 or a duration such as 2h, got %q", o.Since)
	}
	if o.Partition < -1 {
		problems.Add("partition", "want 0 or more, or -1, got %d", o.Partition)
	}
	if o.Limit < 0 {
		problems.Add("limit", "want 0 or more, got %d", o.Limit)
	}
}

func (o *deadLettersOptions) since(now time.Time) (time.Time, error) {
	if o.Since == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(o.Since); err == nil {
		return now.Add(-d), nil
	}
	return time.Parse(time.RFC3339Nano, o.Since)
}

func (o *deadLettersOptions) filter() (*deadletters.Filter, error) {
	f := &deadletters.Filter{Key: o.Key, DeliveryID: o.DeliveryID, Partition: o.Partition}
	for _, reason := range o.Reason {
		f.Reasons = append(f.Reasons, codecs.Reason(reason))
	}
	var err error
	if f.Since, err = o.since(time.Now()); err != nil {
		return nil, err
	}
	f.Decoder, err = o.Decoder()
	return f, err
}

// choose calls take with the letters that the filter chooses until limit of
// them were taken; take reports whether one counts.
func (o *deadLettersOptions) choose(letters iter.Seq2[*deadletters.Letter, error], f *deadletters.Filter, take func(*deadletters.Letter) (bool, error)) error {
	taken := 0
	for l, err := range letters {
		if err != nil {
			return err
		}
		if !f.Match(l) {
			continue
		}
		counts, err := take(l)
		if err != nil {
			return err
		}
		if counts {
			taken++
		}
		if o.Limit > 0 && taken == o.Limit {
			return nil
		}
	}
	return nil
}

// connect connects, and requires topics to exist.
func (o *deadLettersOptions) connect(ctx context.Context, names ...string) (*kafka.Cluster, exactlyonce.ClientConfig, error) {
	client, err := o.Client("deliverystat-dead-letters", o.Hasher())
	if err != nil {
		return nil, client, exit.With(exit.Usage, err)
	}
	cluster, err := kafka.Connect(ctx, client)
	if err != nil {
		return nil, client, err
	}
	if err := topics.Require(cluster.Admin, names...); err != nil {
		cluster.Close()
		return nil, client, err
	}
	return cluster, client, nil
}

// deadLettersListCommand prints what was refused.
type deadLettersListCommand struct {
	deadLettersOptions

	Output string `help:"table for people, or json: one object a line, whole, as replay --from takes them." default:"table" oneof:"table,json"`
}

func (c *deadLettersListCommand) run(ctx context.Context, p *process) error {
	filter, err := c.filter()
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	topic := c.Topics().DeadLetters
	cluster, _, err := c.connect(ctx, topic)
	if err != nil {
		return err
	}
	defer cluster.Close()
	printer := deadletters.NewTable(p.stdout)
	if c.Output == "json" {
		printer = deadletters.NewJSON(p.stdout)
	}
	err = c.choose(deadletters.Read(ctx, cluster.Client, topic, filter.Since), filter, func(l *deadletters.Letter) (bool, error) {
		return true, printer.Print(l)
	})
	if err != nil {
		return err
	}
	return printer.Close()
}

// deadLettersReplayCommand sends refused records back.
type deadLettersReplayCommand struct {
	deadLettersOptions

	Sources    []string `help:"Topics that serve republishes to the input: what was refused there goes back there." placeholder:"TOPIC[=PROFILE],…"`
	From       string   `help:"Send these instead of those in the topic: JSON lines as list prints them, mended; - for stdin." placeholder:"FILE|-"`
	AcceptLate bool     `help:"Send late events too, marked to be applied all the same."`
	DryRun     bool     `help:"Print what would be sent, and send nothing."`
}

func (c *deadLettersReplayCommand) run(ctx context.Context, p *process) error {
	filter, err := c.filter()
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	mended, err := c.mended(p.stdin)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	names := c.Topics()
	replay := &deadletters.Replay{Topics: []string{names.Events}, AcceptLate: c.AcceptLate}
	for _, source := range c.Sources {
		topic, _, _ := strings.Cut(source, "=")
		replay.Topics = append(replay.Topics, topic)
	}
	cluster, client, err := c.connect(ctx, append(replay.Topics, names.DeadLetters)...)
	if err != nil {
		return err
	}
	defer cluster.Close()
	letters := mended
	if letters == nil {
		letters = deadletters.Read(ctx, cluster.Client, names.DeadLetters, filter.Since)
	}
	printer := deadletters.NewTable(p.stdout)
	if !c.DryRun {
		if err := replay.Connect(client); err != nil {
			return exit.With(exit.Unreachable, err)
		}
	}
	err = c.choose(letters, filter, func(l *deadletters.Letter) (bool, error) {
		chosen, err := replay.Offer(ctx, l)
		if chosen && c.DryRun {
			err = printer.Print(l)
		}
		return chosen, err
	})
	if err = replay.Close(ctx, err); err != nil {
		return fmt.Errorf("stopped after %d dead letters were sent: %w", replay.Sent, err)
	}
	if err := printer.Close(); err != nil {
		return err
	}
	return c.conclude(p.stdout, replay)
}

// mended reads --from; nil without that flag.
func (c *deadLettersReplayCommand) mended(stdin io.Reader) (iter.Seq2[*deadletters.Letter, error], error) {
	if c.From == "" {
		return nil, nil //nolint:nilnil // the topic is read instead
	}
	in := stdin
	if c.From != "-" {
		file, err := os.Open(c.From)
		if err != nil {
			return nil, fmt.Errorf("--from: %w", err)
		}
		defer func() { _ = file.Close() }() // only read from
		in = file
	}
	letters, err := deadletters.Parse(in)
	if err != nil {
		return nil, fmt.Errorf("--from=%s: %w", c.From, err)
	}
	return func(yield func(*deadletters.Letter, error) bool) {
		for _, l := range letters {
			if !yield(l, nil) {
				return
			}
		}
	}, nil
}

func (c *deadLettersReplayCommand) conclude(w io.Writer, replay *deadletters.Replay) error {
	did := "sent"
	if c.DryRun {
		did = "would be sent"
	}
	text := fmt.Sprintf("%d %s to %s", replay.Sent, did, strings.Join(replay.Topics, ", "))
	if left := replay.LeftOut(); left != "" {
		text += "; left out: " + left
	}
	if _, err := fmt.Fprintln(w, text); err != nil {
		return fmt.Errorf("printing result: %w", err)
	}
	if n := replay.Incomplete + replay.Elsewhere; n > 0 {
		return fmt.Errorf("%d dead letters can not be sent back", n)
	}
	return nil
}
