package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Binary is the path of a built deliverystat.
type Binary string

// Build builds the binary of this module into dir. With race it watches for
// data races, and a race found makes the process exit with code 66.
func Build(ctx context.Context, dir string, race bool) (Binary, error) {
	path := filepath.Join(dir, "deliverystat")
	args := []string{"build", "-o", path}
	if race {
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "deliverystat/cmd/deliverystat")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building deliverystat: %w\n%s", err, out)
	}
	return Binary(path), nil
}

// Result is how a command ended.
type Result struct {
	Stdout, Stderr string
	ExitCode       int // 0 done, 1 a check failed, 2 wrong usage, configuration or topics, 3 no Kafka
}

// Run runs a command to its end. An exit code other than 0 is no error. The
// environment holds no DELIVERYSTAT_ variables but those in env.
func (b Binary) Run(ctx context.Context, env []string, args ...string) (Result, error) {
	cmd := exec.CommandContext(ctx, string(b), args...)
	cmd.Env = append(clean(os.Environ()), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || ctx.Err() != nil) {
		return Result{}, fmt.Errorf("running deliverystat %s: %w\n%s%s", strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return Result{Stdout: stdout.String(), Stderr: stderr.String(), ExitCode: cmd.ProcessState.ExitCode()}, nil
}

func clean(env []string) []string {
	kept := env[:0:0]
	for _, e := range env {
		if !strings.HasPrefix(e, "DELIVERYSTAT_") {
			kept = append(kept, e)
		}
	}
	return kept
}
