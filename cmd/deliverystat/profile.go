package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"deliverystat/cmd/deliverystat/internal/config"
	"deliverystat/cmd/deliverystat/internal/exit"
	"deliverystat/codecs"
)

// profileCommand is about profiles.
type profileCommand struct {
	Check profileCheckCommand `cmd:"" help:"Name all faults of a profile, or show what it says."`
}

// profileCheckCommand checks a profile.
type profileCheckCommand struct {
	File   string `arg:"" help:"A YAML file, or the name of a built-in profile: ${profiles}." placeholder:"FILE|NAME"`
	Sample string `help:"Show what the events of this file are read as: JSON lines, - for stdin." placeholder:"FILE"`
}

func (c *profileCheckCommand) run(_ context.Context, p *process) error {
	profile, err := config.ReadProfile(c.File)
	if err != nil {
		return c.faults(p.stdout, err)
	}
	if _, err := fmt.Fprintln(p.stdout, strings.Join(profile.Describe(), "\n")); err != nil {
		return fmt.Errorf("printing profile: %w", err)
	}
	switch c.Sample {
	case "":
		return nil
	case "-":
		return showSample(p.stdout, p.stdin, profile)
	}
	file, err := os.Open(c.Sample)
	if err != nil {
		return exit.With(exit.Usage, fmt.Errorf("--sample: %w", err))
	}
	defer func() { _ = file.Close() }() // only read from
	return showSample(p.stdout, file, profile)
}

// faults prints what is wrong, a line each.
func (c *profileCheckCommand) faults(w io.Writer, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.As(err, new(*fs.PathError)) {
		return exit.With(exit.Usage, err)
	}
	if _, printing := fmt.Fprintln(w, err); printing != nil {
		return fmt.Errorf("printing faults: %w", printing)
	}
	return fmt.Errorf("profile %s is not as it must be: %d faults", c.File, strings.Count(err.Error(), "\n")+1)
}

// maxSampleLine bounds one line: about what a record may be.
const maxSampleLine = 1 << 20

// showSample prints what the lines of r are read as, each as a record whose key
// is the delivery ID that it names. It returns an error if one is refused.
func showSample(w io.Writer, r io.Reader, profile *codecs.Profile) error {
	decoder, err := profile.NewDecoder(codecs.FormatAuto)
	if err != nil {
		return err
	}
	refused, number := 0, 0
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, maxSampleLine)
	for scanner.Scan() {
		number++
		line := strings.TrimSpace(scanner.Text())
		if line == "" {
			continue
		}
		id, _ := decoder.DeliveryID([]byte(line)) // without one, decoding says why
		var out codecs.Decoded
		decoder.Decode(&codecs.Record{Key: id, Value: []byte(line)}, &out)
		if out.Outcome == codecs.IsRefused {
			refused++
		}
		if _, err := fmt.Fprintf(w, "line %d: %s\n", number, sampled(&out, profile.Lifecycle())); err != nil {
			return fmt.Errorf("printing sample: %w", err)
		}
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("reading sample: %w", err)
	}
	if refused > 0 {
		return fmt.Errorf("%d of %d lines are refused", refused, number)
	}
	return nil
}

// sampled says in one line what a record was read as.
func sampled(out *codecs.Decoded, l *codecs.Lifecycle) string {
	switch out.Outcome {
	case codecs.IsIgnored:
		return "ignored"
	case codecs.IsRefused:
		return fmt.Sprintf("refused, %s: %s", out.Reason, out.Detail)
	case codecs.IsEvent:
	}
	e := &out.Event
	text := fmt.Sprintf("%s %s at %s", e.DeliveryID, l.Name(e.Status), time.Unix(0, e.OccurredAt).UTC().Format(time.RFC3339Nano))
	add := func(name, value string) {
		if value != "" {
			text += ", " + name + " " + value
		}
	}
	add("sent as", e.RawStatus)
	add("event_id", e.EventID)
	if e.Sequenced {
		add("sequence", strconv.FormatInt(e.Sequence, 10))
	}
	for a, value := range e.Attributes {
		add(codecs.Attribute(a).String(), value)
	}
	return text
}
