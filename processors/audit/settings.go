package audit

import (
	"fmt"
	"strings"
	"time"

	"deliverystat/codecs"
	"deliverystat/processors"
)

// ParseSettings undoes Settings.Values: it returns the settings that a table
// was written with. The lifecycle is only known by its version, so it must be
// given, and be of that version.
func ParseSettings(stored []codecs.Setting, lifecycle *codecs.Lifecycle) (*processors.Settings, error) {
	s := &processors.Settings{Lifecycle: lifecycle}
	durations := map[string]*time.Duration{
		"abandon-after":    &s.AbandonAfter,
		"allowed-lateness": &s.Lateness,
		"max-future":       &s.MaxFuture,
		"terminal-skew":    &s.TerminalSkew,
	}
	for _, v := range stored {
		var err error
		if d := durations[v.Name]; d != nil {
			*d, err = time.ParseDuration(v.Value)
		}
		switch v.Name {
		case "mapping":
			s.Mapping = v.Value
		case "order-by":
			s.OrderBy = processors.Order(v.Value)
		case "dimensions":
			if v.Value != "" {
				s.Dimensions, err = processors.ParseDimensions(strings.Split(v.Value, ","))
			}
		}
		if err != nil {
			return nil, fmt.Errorf("reading setting %s of the table: %w", v.Name, err)
		}
	}
	// Whatever was not understood above differs now.
	if err := s.CheckSettings(stored); err != nil {
		return nil, fmt.Errorf("reading settings of the table: %w", err)
	}
	return s, nil
}
