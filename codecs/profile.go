package codecs

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

// BuiltinProfileName names the profile in force unless another is given: the
// built-in lifecycle, and the native event.
const BuiltinProfileName = "built-in"

// Profile says what the events of one deployment, or of one of its sources, look
// like: where their fields are, and which statuses there are. Either part may be
// missing: without a mapping, events are native ones; without a lifecycle, the
// built-in one is meant. It is immutable.
type Profile struct {
	name      string
	lifecycle *Lifecycle
	mapping   *mapping
}

// profiles are the built-in profiles, each in a file of its name.
//
//go:embed profiles/*.yaml
var profiles embed.FS

// BuiltinProfiles returns the names of the built-in profiles.
func BuiltinProfiles() []string {
	names := []string{BuiltinProfileName}
	files, _ := profiles.ReadDir("profiles") // it is part of the program
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".yaml"))
	}
	return names
}

// BuiltinProfile returns a built-in profile, false if there is none of that name.
func BuiltinProfile(name string) (*Profile, bool) {
	if name == BuiltinProfileName {
		return &Profile{name: name, lifecycle: BuiltinLifecycle()}, true
	}
	if !slices.Contains(BuiltinProfiles(), name) {
		return nil, false
	}
	text, err := profiles.ReadFile("profiles/" + name + ".yaml")
	if err != nil { // it is part of the program, as what it says is
		panic(err)
	}
	p, err := ParseProfile(text)
	if err != nil {
		panic(fmt.Errorf("built-in profile %s: %w", name, err))
	}
	return p, true
}

// Name returns the name of the profile.
func (p *Profile) Name() string { return p.name }

// Lifecycle returns the lifecycle that the profile gives, or the built-in one.
func (p *Profile) Lifecycle() *Lifecycle { return p.lifecycle }

// Maps reports whether the profile says where the fields of an event are. If
// not, events are native ones.
func (p *Profile) Maps() bool { return p.mapping != nil }

// NewDecoder returns a decoder of events as the profile describes them. The
// format, one of Formats, says what is around them.
//
// If the profile maps, an integer where it looks for an ID, an attribute or a
// status is taken as its digits; all else is as strict as for native events.
func (p *Profile) NewDecoder(format string) (*Decoder, error) {
	d, err := NewDecoder(format, p.lifecycle)
	if err != nil {
		return nil, err
	}
	d.mapping = p.mapping
	return d, nil
}

// NewSourceDecoder returns a decoder of one source among several, whose statuses
// are counted in the lifecycle of the deployment. The profile of a source only
// maps: a name that the source sends is what the deployment's lifecycle takes it
// for; if that does not know it, the status that the profile's own lifecycle
// gives, if the deployment has a status of that name; else UNKNOWN.
func (p *Profile) NewSourceDecoder(format string, deployment *Lifecycle) (*Decoder, error) {
	d, err := NewDecoder(format, deployment)
	if err != nil {
		return nil, err
	}
	d.mapping = p.mapping
	d.statuses = map[string]string{}
	for sent, status := range p.lifecycle.meaning {
		name := p.lifecycle.Name(status)
		_, known := deployment.Parse(sent)
		if _, counted := deployment.Parse(name); !known && counted {
			d.statuses[sent] = name
		}
	}
	return d, nil
}

// Describe returns the profile in a few lines: its statuses in rank order with
// the other names that are taken for them, and the paths of its mapping.
func (p *Profile) Describe() []string {
	lines := []string{"profile " + p.name + ", lifecycle " + p.lifecycle.Version()}
	for s := range p.lifecycle.statuses {
		info := p.lifecycle.Info(Status(s))
		line := fmt.Sprintf("  status %d %s", s, info.Name)
		if info.Terminal {
			line += ", terminal"
		}
		if len(info.Aliases) > 0 {
			line += ", also " + strings.Join(info.Aliases, ", ")
		}
		lines = append(lines, line)
	}
	if p.mapping == nil {
		return append(lines, "  events are native ones")
	}
	for _, line := range p.mapping.lines() {
		lines = append(lines, "  "+line)
	}
	return lines
}
