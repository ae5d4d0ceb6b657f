package replica

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"deliverystat/e2e/process"
)

// stopTimeout is how long a replica may take to end after SIGTERM.
const stopTimeout = 60 * time.Second

// Options say which replica to run.
type Options struct {
	Binary  Binary
	Brokers string   // --kafka-brokers
	Prefix  string   // --topic-prefix
	Name    string   // --instance-id, and the name of its folder in Dir
	Dir     string   // holds the state and the log
	Flags   []string // further flags of serve
	Env     []string // added to the environment of this program
}

// Replica is one `deliverystat serve`. It keeps its addresses, name and disk
// over restarts.
type Replica struct {
	Name string
	HTTP string // host:port of the API

	Admin string // host:port of the admin server

	options Options
	proc    *process.Process
	client  *http.Client
}

// New prepares a replica on free ports. It does not run yet.
func New(o Options) (*Replica, error) {
	ports, err := process.FreePorts(2)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(o.Dir, o.Name), 0o750); err != nil {
		return nil, fmt.Errorf("making the folder of replica %s: %w", o.Name, err)
	}
	return &Replica{
		Name: o.Name, options: o,
		HTTP: fmt.Sprintf("127.0.0.1:%d", ports[0]), Admin: fmt.Sprintf("127.0.0.1:%d", ports[1]),
		client: &http.Client{Timeout: 40 * time.Second},
	}, nil
}

// Start runs the replica, for the first time or again on the disk it has.
func (r *Replica) Start() error {
	o := r.options
	argv := []string{
		string(o.Binary), "serve",
		"--kafka-brokers=" + o.Brokers, "--topic-prefix=" + o.Prefix, "--instance-id=" + o.Name,
		"--state-dir=" + r.stateDir(), "--http-address=" + r.HTTP, "--admin-address=" + r.Admin,
		"--log-format=json",
	}
	p, err := process.Start(r.LogFile(), o.Env, append(argv, o.Flags...)...)
	if err != nil {
		return err
	}
	r.proc = p
	return nil
}

// Process returns the running or last process, nil before the first start.
func (r *Replica) Process() *process.Process { return r.proc }

// LogFile returns the file with all that the replica has printed.
func (r *Replica) LogFile() string { return filepath.Join(r.options.Dir, r.Name, "log") }

func (r *Replica) stateDir() string { return filepath.Join(r.options.Dir, r.Name, "state") }

// Kill ends the replica as kill -9 does.
func (r *Replica) Kill() error {
	if r.proc == nil {
		return nil
	}
	return r.proc.Kill()
}

// Stop asks the replica to end, waits for it and returns its exit code.
func (r *Replica) Stop() (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := r.proc.Stop(ctx); err != nil {
		return -1, err
	}
	return r.proc.ExitCode(), nil
}

// Pause freezes the replica, as a long garbage collection or a suspended
// machine does.
func (r *Replica) Pause() error { return r.proc.Signal(syscall.SIGSTOP) }

// Resume lets a paused replica go on.
func (r *Replica) Resume() error { return r.proc.Signal(syscall.SIGCONT) }

// WipeDisk deletes the state of a replica that does not run.
func (r *Replica) WipeDisk() error {
	if err := os.RemoveAll(r.stateDir()); err != nil {
		return fmt.Errorf("wiping the disk of replica %s: %w", r.Name, err)
	}
	return nil
}

// DiskBytes returns the size of all files of the state directory.
func (r *Replica) DiskBytes() (total int64, err error) {
	err = filepath.WalkDir(r.stateDir(), func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) { // LevelDB has merged it away
			return nil
		}
		if err == nil {
			total += info.Size()
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("measuring the disk of replica %s: %w", r.Name, err)
	}
	return total, nil
}
