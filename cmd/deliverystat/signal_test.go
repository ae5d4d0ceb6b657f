package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The first signal stops a service in good order, which may take long. Another
// one, when a second has passed, ends the process at once.
func TestASecondSignalEndsTheProcess(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"SIGINT": syscall.SIGINT, "SIGTERM": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := "--kafka-brokers=" + startBroker(t)
			require.Equal(t, 0, invoke(t, "topics", "create", broker, "--partitions=1", "--replication-factor=1").code)
			self, err := os.Executable()
			require.NoError(t, err)
			admin := freeAddress(t)
			command := exec.CommandContext(t.Context(), self, "serve", broker, "--allow-unsafe", "--state-dir="+t.TempDir(),
				"--http-address=127.0.0.1:0", "--admin-address="+admin, "--drain-delay=30s")
			command.Env = append(os.Environ(), asProgram+"=1")
			var log buffer
			command.Stderr = &log
			require.NoError(t, command.Start())
			exited := make(chan struct{})
			go func() {
				defer close(exited)
				_ = command.Wait() // how it ended is asked for below
			}()
			t.Cleanup(func() {
				_ = command.Process.Kill()
				<-exited
			})
			awaitReady(t, admin)

			require.NoError(t, command.Process.Signal(signal))
			eventually(t, "it stops", func() (string, bool) { return log.String(), strings.Contains(log.String(), `"msg":"stopping"`) })
			again := time.NewTicker(100 * time.Millisecond)
			defer again.Stop()
			for ended := false; !ended; {
				select {
				case <-exited:
					ended = true
				case <-again.C:
					_ = command.Process.Signal(signal) // it may just have ended
				}
			}

			status := command.ProcessState.Sys().(syscall.WaitStatus)
			require.True(t, status.Signaled(), "it ended with code %d instead, after its drain delay", status.ExitStatus())
			require.Equal(t, signal, status.Signal())
		})
	}
}
