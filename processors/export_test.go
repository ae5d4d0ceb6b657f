package processors

import (
	"log/slog"
	"time"

	"deliverystat/codecs"
	"deliverystat/processors/exactlyonce"
)

// NewDeliveryState is the state that NewLatestDelivery gives the runtime.
func NewDeliveryState(cfg LatestDeliveryConfig) (exactlyonce.State, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	return newDeliveryState(&cfg), nil
}

// ShareDrifts lets all states of cfg know what audits found, as those of one
// process do.
func ShareDrifts(cfg *LatestDeliveryConfig) { cfg.drifts = newDrifts() }

// AwaitRecount waits for the recount of the rows that is under way.
func AwaitRecount(s exactlyonce.State) {
	if done := s.(*deliveryState).audit.done; done != nil {
		<-done
	}
}

// Spoil makes the running counts of the first stage wrong by n.
func Spoil(s exactlyonce.State, scope string, status codecs.Status, n int64) {
	s.(*deliveryState).tally.scope(scope).live[status] += n
}

// NewCountsState is the state that NewCountPerStatus gives the runtime.
func NewCountsState(cfg CountPerStatusConfig) (exactlyonce.State, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	return newCountsState(&cfg), nil
}

// NewNormalizeState is the state that NewNormalize gives the runtime.
func NewNormalizeState(cfg NormalizeConfig) exactlyonce.State {
	if cfg.Metrics == nil {
		cfg.Metrics = NewSourceMetrics(nil, nil)
	}
	cfg.Runtime.Logger, cfg.Now = slog.New(slog.DiscardHandler), time.Now
	return newNormalizeState(&cfg)
}

// Consume is the callback of a state.
func Consume(s exactlyonce.State, r *exactlyonce.Record) error {
	switch s := s.(type) {
	case *deliveryState:
		return s.consume(r)
	case *countsState:
		return s.consume(r)
	case *normalizeState:
		return s.consume(r)
	}
	panic("unknown state")
}

// MaxValueBytes is the limit for what is written of a record.
const MaxValueBytes = maxValueBytes
