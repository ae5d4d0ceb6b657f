// Command deliverystat counts deliveries per status, exactly once, from a topic
// of delivery events. See README.md, and deliverystat --help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal its default is restored: a second one ends the
	// process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, process{
		args: os.Args[1:], env: os.Environ(),
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
	}))
}
