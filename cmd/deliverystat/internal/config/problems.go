package config

import (
	"fmt"
	"slices"
	"strings"
)

// Problems collects what is wrong with the settings of one invocation, so that
// all of it is reported at once. The zero value is ready to use.
type Problems struct {
	lines []string
	flags []string // flags that already have a line
}

// Add notes what is wrong with flag, named without its hyphens. The first
// problem of a flag stands; later ones usually follow from it.
func (p *Problems) Add(flag, format string, args ...any) {
	if slices.Contains(p.flags, flag) {
		return
	}
	p.flags = append(p.flags, flag)
	p.lines = append(p.lines, oneLine("--"+flag+": "+fmt.Sprintf(format, args...)))
}

// AddLine notes a problem that belongs to no flag.
func (p *Problems) AddLine(format string, args ...any) {
	p.lines = append(p.lines, oneLine(fmt.Sprintf(format, args...)))
}

// Err returns all problems as a [UsageError], or nil if there is none.
func (p *Problems) Err() error {
	if len(p.lines) == 0 {
		return nil
	}
	return &UsageError{Problems: p.lines}
}

// UsageError says that a command was called wrongly. Each of its problems is
// one line.
type UsageError struct{ Problems []string }

// Error implements error.
func (e *UsageError) Error() string { return strings.Join(e.Problems, "\n") }

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
