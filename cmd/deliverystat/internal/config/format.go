package config

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"deliverystat/codecs"
)

// Format says how the input is written and what its statuses are.
type Format struct {
	EventsFormat string `help:"Format of the input: auto, native, debezium-outbox, debezium-change, cloudevents." default:"auto"`
	Profile      string `help:"Where the fields of an event are, and which statuses there are: a YAML file, or one of ${profiles}." default:"built-in" placeholder:"FILE|NAME"`

	profile *codecs.Profile // once it was read
}

// Check implements [Checker].
func (f *Format) Check(problems *Problems) {
	p, err := f.read()
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			problems.AddLine("--profile: %s", line)
		}
		p, _ = codecs.BuiltinProfile(codecs.BuiltinProfileName)
	}
	if _, err := p.NewDecoder(f.EventsFormat); err != nil {
		problems.Add("events-format", "%v", err)
	}
}

// CheckSimulated notes if simulated events, which are native ones with the
// statuses of the built-in lifecycle, would not mean what they say.
func (f *Format) CheckSimulated(problems *Problems) {
	p, err := f.read()
	if err != nil {
		return // noted by Check
	}
	if p.Maps() || !sameStatuses(p.Lifecycle(), codecs.BuiltinLifecycle()) {
		problems.Add("profile", "%s is not for simulated events: they are native ones with the built-in statuses", f.Profile)
	}
}

func sameStatuses(a, b *codecs.Lifecycle) bool {
	if a.Len() != b.Len() {
		return false
	}
	for i := range a.Len() {
		if s := codecs.Status(i); a.Name(s) != b.Name(s) || a.Terminal(s) != b.Terminal(s) {
			return false
		}
	}
	return true
}

// read returns the profile. It is read once, so that all parts of the process
// have the same.
func (f *Format) read() (*codecs.Profile, error) {
	if f.profile == nil {
		p, err := ReadProfile(f.Profile)
		if err != nil {
			return nil, err
		}
		f.profile = p
	}
	return f.profile, nil
}

// Lifecycle returns the lifecycle of the profile; call it after Check. It is the
// built-in one if there is no such profile.
func (f *Format) Lifecycle() *codecs.Lifecycle {
	p, err := f.read()
	if err != nil {
		return codecs.BuiltinLifecycle()
	}
	return p.Lifecycle()
}

// Decoder returns a decoder of the input.
func (f *Format) Decoder() (*codecs.Decoder, error) {
	p, err := f.read()
	if err != nil {
		return nil, err
	}
	d, err := p.NewDecoder(f.EventsFormat)
	if err != nil {
		return nil, fmt.Errorf("choosing decoder: %w", err)
	}
	return d, nil
}

// ReadProfile reads the profile that name means: a built-in one, else a file.
// Every fault of the file has a line of the error, which begins with the name of
// the file and the number of its line.
func ReadProfile(name string) (*codecs.Profile, error) {
	if p, ok := codecs.BuiltinProfile(name); ok {
		return p, nil
	}
	text, err := os.ReadFile(name) //nolint:gosec // G304: the operator names the file
	if err != nil {
		return nil, fmt.Errorf("%q is none of the built-in profiles %s, and no file: %w",
			name, strings.Join(codecs.BuiltinProfiles(), ", "), err)
	}
	p, err := codecs.ParseProfile(text)
	if faults, ok := errors.AsType[*codecs.ProfileError](err); ok {
		lines := make([]error, 0, len(faults.Faults))
		for _, fault := range faults.Faults {
			if fault.Line > 0 {
				lines = append(lines, fmt.Errorf("%s:%d: %s", name, fault.Line, fault.Text))
			} else {
				lines = append(lines, fmt.Errorf("%s: %s", name, fault.Text))
			}
		}
		return nil, errors.Join(lines...)
	}
	return p, err
}
