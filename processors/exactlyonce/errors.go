package exactlyonce

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/IBM/sarama"
)

// ErrFencedInstance ends Run: another live process has this instance ID. To
// start again would fence that one in turn.
var ErrFencedInstance = errors.New("another process has the same instance ID")

// errUnknownOutcome marks a commit that may or may not have happened.
var errUnknownOutcome = errors.New("transaction outcome unknown")

// Permanent marks an error that another attempt cannot mend: Run returns it.
func Permanent(err error) error { return &permanentError{err} }

type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

func isPermanent(err error) bool {
	var p *permanentError
	return errors.As(err, &p) || errors.Is(err, ErrFencedInstance)
}

// recordTooLargeError is a mistake of the State.
type recordTooLargeError struct {
	topic string
	size  int
}

func (e *recordTooLargeError) Error() string {
	return fmt.Sprintf("record for %s is %d bytes, at most %d are allowed", e.topic, e.size, MaxRecordBytes)
}

// Reasons are the values that Observer.AttemptEnded is given.
func Reasons() []string {
	return []string{"fenced", "unknown_outcome", "recovery", "callback", "group", "broker", "state", "stalled", "other"}
}

// stageError says which part of an attempt an error comes from.
type stageError struct {
	stage string // one of Reasons
	error
}

func (e *stageError) Unwrap() error { return e.error }

func at(stage string, err error) error {
	if err == nil {
		return nil
	}
	return &stageError{stage, err}
}

func reason(err error) string {
	var stage *stageError
	var network net.Error
	switch {
	case err == nil:
		return "other"
	case errors.Is(err, ErrFencedInstance), errors.Is(err, sarama.ErrProducerFenced),
		errors.Is(err, sarama.ErrInvalidProducerEpoch), errors.Is(err, sarama.ErrFencedInstancedId),
		errors.Is(err, sarama.ErrUnknownMemberId), errors.Is(err, sarama.ErrIllegalGeneration):
		return "fenced"
	case errors.Is(err, errUnknownOutcome):
		return "unknown_outcome"
	case errors.As(err, &stage):
		return stage.stage
	case errors.Is(err, sarama.ErrOutOfBrokers), errors.As(err, &network), errors.Is(err, context.DeadlineExceeded):
		return "broker"
	default:
		return "other"
	}
}
