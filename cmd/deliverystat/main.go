// Command deliverystat counts deliveries per status, exactly once, from a topic
// of delivery events. See README.md, and deliverystat --help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	// The image has no files but the binary: the roots of TLS are in it, and used
	// where the system has none.
	_ "golang.org/x/crypto/x509roots/fallback"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second later its default is restored: another signal ends the process
	// at once. Not sooner, for one Ctrl-C may arrive twice, to the process and to
	// its group.
	context.AfterFunc(ctx, func() { time.AfterFunc(time.Second, stop) })
	os.Exit(run(ctx, process{
		args: os.Args[1:], env: os.Environ(),
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, owned: true,
	}))
}
