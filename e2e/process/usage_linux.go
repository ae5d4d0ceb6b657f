package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// clockTick is the unit of the times in /proc: USER_HZ, 100 on every
// architecture that Go supports.
const clockTick = 10 * time.Millisecond

// Usage is what a running process has used so far.
type Usage struct {
	CPU     time.Duration // user and system time, with that of ended children
	PeakRSS int64         // greatest resident set size, bytes
}

// Usage reads the usage of a running process.
func (p *Process) Usage() (Usage, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		return Usage{}, fmt.Errorf("reading the usage of process %d: %w", p.PID(), err)
	}
	// The second field is the command in parentheses and may hold blanks.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	var ticks int64
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return Usage{}, fmt.Errorf("reading the usage of process %d: %w", p.PID(), err)
		}
		ticks += n
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return Usage{}, fmt.Errorf("reading the usage of process %d: %w", p.PID(), err)
	}
	u := Usage{CPU: time.Duration(ticks) * clockTick}
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte("VmHWM:")); ok {
			kb, err := strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64)
			if err != nil {
				return Usage{}, fmt.Errorf("reading the usage of process %d: %w", p.PID(), err)
			}
			u.PeakRSS = kb << 10
		}
	}
	return u, nil
}

// PeakRSS returns the greatest resident set size that an ended process has had,
// bytes.
func (p *Process) PeakRSS() int64 {
	if p.Running() {
		return 0
	}
	usage, ok := p.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return usage.Maxrss << 10
}
