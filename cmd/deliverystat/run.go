package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"strings"

	"github.com/IBM/sarama"
	"github.com/alecthomas/kong"

	"deliverystat/cmd/deliverystat/internal/config"
	"deliverystat/cmd/deliverystat/internal/exit"
)

// commands is the grammar of the command line.
type commands struct {
	config.Common

	Demo        demoCommand        `kong:"cmd,set='http_address=127.0.0.1:8080',set='admin_address=127.0.0.1:8081',help='Everything in one process, with simulated deliveries or your own events.'"`
	Serve       serveCommand       `kong:"cmd,set='http_address=:8080',set='admin_address=:8081',help='Count the deliveries of a Kafka topic and answer over HTTP.'"`
	Simulate    simulateCommand    `cmd:"" help:"Produce simulated delivery events, and the truth about them."`
	Topics      topicsCommand      `cmd:"" help:"Create or check the topics that are needed."`
	Verify      verifyCommand      `cmd:"" help:"Count again and compare."`
	Explain     explainCommand     `cmd:"" help:"Tell what became of one delivery, event by event, and why."`
	DeadLetters deadLettersCommand `cmd:"" help:"What was refused, and why; send it back."`
	Leave       leaveCommand       `cmd:"" help:"Take a replica that will not come back out of the groups, so that its partitions move at once."`
	Profile     profileCommand     `cmd:"" help:"Check a profile: where the fields of an event are, and which statuses there are."`
	Version     versionCommand     `cmd:"" help:"Print the version of the program and its libraries."`
}

// process is what a command has of its surroundings.
type process struct {
	args, env      []string
	stdin          io.Reader
	stdout, stderr io.Writer

	owned bool // nobody else lives in it: what libraries have one of per process is ours

	parsed *config.Parsed
	logger *slog.Logger
}

// command is implemented by all commands.
type command interface {
	run(ctx context.Context, p *process) error
}

// run executes one invocation and returns its exit code. Each error is one line
// on stderr; several faults of the command line are one line each.
func run(ctx context.Context, p process) int {
	var grammar commands
	parsed, err := config.Parse(&grammar, config.Invocation{Args: p.args, Env: p.env, Stdout: p.stdout, Stderr: p.stderr},
		kong.Description("Exact live counts of deliveries per status, from Kafka."))
	if errors.Is(err, config.ErrHelp) {
		return exit.OK
	}
	if err == nil {
		p.parsed = parsed
		p.logger = newLogger(p.stderr, &grammar.Common)
		if p.owned {
			sarama.Logger = slog.NewLogLogger(p.logger.Handler(), slog.LevelDebug)
		}
		for _, name := range parsed.UnknownVariables {
			p.logger.Warn("unknown environment variable has no effect", "variable", name)
		}
		selected, ok := reflect.TypeAssert[command](parsed.Context.Selected().Target.Addr())
		if !ok {
			err = fmt.Errorf("command %s can not be run", parsed.Context.Command())
		} else {
			err = selected.run(ctx, &p)
		}
	}
	return report(p.stderr, err)
}

// report prints err and returns its exit code.
func report(w io.Writer, err error) int {
	if err == nil {
		return exit.OK
	}
	if usage, ok := errors.AsType[*config.UsageError](err); ok {
		for _, problem := range usage.Problems {
			_, _ = fmt.Fprintln(w, "deliverystat: "+problem) // nobody is left to tell
		}
		return exit.Usage
	}
	_, _ = fmt.Fprintln(w, "deliverystat: "+oneLine(err)) // as above
	return exit.Code(err)
}

// oneLine returns the text of err; joined errors are set apart.
func oneLine(err error) string {
	text := strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")
	return strings.Join(strings.Fields(text), " ")
}

// newLogger makes the logger of the process.
func newLogger(w io.Writer, c *config.Common) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.LogLevel)) // its four values were checked
	options := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "text" || c.LogFormat == "auto" && isTerminal(w) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

// isTerminal reports whether w is shown to somebody.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
