//go:build unix && !linux

package process

import (
	"errors"
	"time"
)

// Usage is what a running process has used so far.
type Usage struct {
	CPU     time.Duration // user and system time, with that of ended children
	PeakRSS int64         // greatest resident set size, bytes
}

// Usage reads the usage of a running process, which is only known on Linux.
func (p *Process) Usage() (Usage, error) {
	return Usage{}, errors.New("reading the usage of a process: only known on linux")
}

// PeakRSS returns the greatest resident set size that an ended process has had,
// bytes, which is only known on Linux.
func (p *Process) PeakRSS() int64 { return 0 }
