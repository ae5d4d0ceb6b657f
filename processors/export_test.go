package processors

import (
	"github.com/lovoo/goka"

	"deliverystat/processors/exactlyonce"
)

// NewDeliveryState is the state that NewLatestDelivery gives the runtime.
func NewDeliveryState(cfg LatestDeliveryConfig) (exactlyonce.State, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	return newDeliveryState(&cfg), nil
}

// NewCountsState is the state that NewCountPerStatus gives the runtime.
func NewCountsState(cfg CountPerStatusConfig) (exactlyonce.State, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	return newCountsState(&cfg), nil
}

// Consume is the callback of a state.
func Consume(ctx goka.Context, s exactlyonce.State, value []byte) {
	switch s := s.(type) {
	case *deliveryState:
		onEvent(ctx, s, value)
	case *countsState:
		onTally(ctx, s, value)
	}
}

// MaxValueBytes is the limit for what is written of a record.
const MaxValueBytes = maxValueBytes
