package processors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"deliverystat/codecs"
)

// Order says which component of the order key comes first.
type Order string

// The orders of contract flag --order-by.
const (
	ByEventTime Order = "event-time"
	BySequence  Order = "sequence"
)

// Settings are the values that decide what an event means. Two replicas with
// different settings must not work on the same tables. Settings are not changed
// once they are in use.
type Settings struct {
	Lifecycle    *codecs.Lifecycle
	OrderBy      Order
	Lateness     time.Duration // --allowed-lateness
	AbandonAfter time.Duration // --abandon-after; 0 = never
	MaxFuture    time.Duration // --max-future
	TerminalSkew time.Duration // --terminal-skew
	Dimensions   []codecs.Attribute
	Mapping      string // Decoder.Mapping of the input, "" for native events
}

// DefaultSettings returns the settings of a deployment that gives none.
func DefaultSettings() *Settings {
	return &Settings{
		Lifecycle:    codecs.BuiltinLifecycle(),
		OrderBy:      ByEventTime,
		Lateness:     24 * time.Hour,
		AbandonAfter: 168 * time.Hour,
		MaxFuture:    10 * time.Minute,
	}
}

// futureMargin is how far a record's timestamp may be ahead of the true time:
// the broker's bound that the topic check demands.
const futureMargin = time.Hour

// Validate reports everything that is wrong with s, joined. allowUnsafe accepts
// a lateness so short that an event in good faith could count as late, which is
// for tests and demonstrations.
func (s *Settings) Validate(allowUnsafe bool) error {
	var errs []error
	fault := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	fault(s.Lifecycle == nil, "lifecycle: missing")
	fault(s.OrderBy != ByEventTime && s.OrderBy != BySequence, "order-by: %q is neither %q nor %q", s.OrderBy, ByEventTime, BySequence)
	fault(s.Lateness <= 0, "allowed-lateness: %s is not positive", s.Lateness)
	fault(s.AbandonAfter < 0, "abandon-after: %s is negative", s.AbandonAfter)
	fault(s.MaxFuture < 0, "max-future: %s is negative", s.MaxFuture)
	fault(s.TerminalSkew < 0, "terminal-skew: %s is negative", s.TerminalSkew)
	if !allowUnsafe {
		fault(s.Lateness > 0 && s.Lateness <= s.TerminalSkew,
			"allowed-lateness: %s does not exceed terminal-skew %s (allow-unsafe accepts it)", s.Lateness, s.TerminalSkew)
		fault(s.Lateness > 0 && s.Lateness <= s.MaxFuture+futureMargin,
			"allowed-lateness: %s does not exceed max-future %s + %s (allow-unsafe accepts it)", s.Lateness, s.MaxFuture, futureMargin)
	}
	seen := map[codecs.Attribute]bool{}
	for _, d := range s.Dimensions {
		fault(d >= codecs.NumAttributes, "dimensions: no attribute number %d", d)
		fault(seen[d], "dimensions: %s is named twice", d)
		seen[d] = true
	}
	return errors.Join(errs...)
}

// ParseDimensions finds the attributes that names stand for. All faults are
// reported at once.
func ParseDimensions(names []string) ([]codecs.Attribute, error) {
	var dimensions []codecs.Attribute
	var errs []error
	for _, name := range names {
		d, ok := codecs.ParseAttribute(name)
		if !ok {
			errs = append(errs, fmt.Errorf("dimensions: %q is not an attribute of the native event", name))
			continue
		}
		dimensions = append(dimensions, d)
	}
	return dimensions, errors.Join(errs...)
}

// Values returns the settings by name and value, in a fixed order, as progress
// rows keep them. The mapping is among them only if there is one.
func (s *Settings) Values() []codecs.Setting {
	dimensions := make([]string, len(s.Dimensions))
	for i, d := range s.Dimensions {
		dimensions[i] = d.String()
	}
	values := []codecs.Setting{
		{Name: "abandon-after", Value: s.AbandonAfter.String()},
		{Name: "allowed-lateness", Value: s.Lateness.String()},
		{Name: "dimensions", Value: strings.Join(dimensions, ",")},
		{Name: "lifecycle", Value: s.Lifecycle.Version()},
		{Name: "max-future", Value: s.MaxFuture.String()},
		{Name: "order-by", Value: string(s.OrderBy)},
		{Name: "terminal-skew", Value: s.TerminalSkew.String()},
	}
	if s.Mapping != "" {
		values = append(values, codecs.Setting{Name: "mapping", Value: s.Mapping})
	}
	return values
}

// Hash returns a hash of Values: equal hashes mean equal settings.
func (s *Settings) Hash() uint64 {
	var b []byte
	for _, v := range s.Values() {
		b = binary.AppendUvarint(b, uint64(len(v.Name)))
		b = append(b, v.Name...)
		b = binary.AppendUvarint(b, uint64(len(v.Value)))
		b = append(b, v.Value...)
	}
	return xxhash.Sum64(b)
}

// SettingDifference is a setting whose value in a table differs from the
// configured one. A value is "" where the setting is not known at all.
type SettingDifference struct{ Name, Stored, Configured string }

// SettingsError says that a table was written with other settings than those
// configured.
type SettingsError struct{ Differences []SettingDifference }

// Error names each differing setting with both values.
func (e *SettingsError) Error() string {
	parts := make([]string, len(e.Differences))
	for i, d := range e.Differences {
		parts[i] = fmt.Sprintf("%s is %q in the table and %q here", d.Name, d.Stored, d.Configured)
	}
	return "settings differ from those the table was written with: " + strings.Join(parts, "; ")
}

// CheckSettings compares the settings that a progress row keeps with s. It
// returns a *SettingsError, or nil.
func (s *Settings) CheckSettings(stored []codecs.Setting) error {
	var differences []SettingDifference
	known := map[string]string{}
	for _, v := range stored {
		known[v.Name] = v.Value
	}
	for _, v := range s.Values() {
		if known[v.Name] != v.Value {
			differences = append(differences, SettingDifference{v.Name, known[v.Name], v.Value})
		}
		delete(known, v.Name)
	}
	for _, v := range stored {
		if value, unknown := known[v.Name]; unknown {
			differences = append(differences, SettingDifference{v.Name, value, ""})
		}
	}
	if len(differences) == 0 {
		return nil
	}
	return &SettingsError{differences}
}
