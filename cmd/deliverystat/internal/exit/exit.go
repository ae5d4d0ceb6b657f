// Package exit gives errors the exit code that the process ends with.
package exit

import "errors"

// The exit codes.
const (
	OK          = 0
	CheckFailed = 1 // a check failed, or an unexpected error
	Usage       = 2 // wrong usage, configuration or topics
	Unreachable = 3 // Kafka could not be reached
)

type coded struct {
	error
	code int
}

func (c coded) Unwrap() error { return c.error }

// With gives err an exit code; nil stays nil.
func With(code int, err error) error {
	if err == nil {
		return nil
	}
	return coded{err, code}
}

// Code returns the exit code of err: OK if it is nil, CheckFailed if it was
// given none.
func Code(err error) int {
	var c coded
	switch {
	case err == nil:
		return OK
	case errors.As(err, &c):
		return c.code
	default:
		return CheckFailed
	}
}
