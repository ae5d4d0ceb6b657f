package codecs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// ProfileFault is one thing that is wrong with a profile.
type ProfileFault struct {
	Line int // of the file, from 1; 0 if it is not in one place
	Text string
}

// ProfileError says all that is wrong with a profile, from top to bottom.
type ProfileError struct{ Faults []ProfileFault }

// Error implements error, with a line for each fault.
func (e *ProfileError) Error() string {
	lines := make([]string, 0, len(e.Faults))
	for _, f := range e.Faults {
		if f.Line > 0 {
			f.Text = fmt.Sprintf("line %d: %s", f.Line, f.Text)
		}
		lines = append(lines, f.Text)
	}
	return strings.Join(lines, "\n")
}

// ParseProfile reads a profile from YAML:
//
//	name: acme            # [a-z][a-z0-9-]*
//	lifecycle:            # in rank order; without it, the built-in lifecycle
//	  - {name: NEW, labels: {ko: 접수, en: New}}
//	  - {name: GONE, terminal: true}
//	aliases:              # other names that are sent
//	  배달완료: GONE
//	event:                # without it, events are native ones
//	  delivery_id: data.id
//	  status: [data.state, state]       # the first that is there
//	  occurred_at: data.at
//	  sequence: data.version            # this and what follows may be missing
//	  event_id: id
//	  order_id: data.order
//	  store_id: data.shop
//	  region: data.area
//	  service: carrier
//	  zone: "+09:00"                    # of times that have none
//	  only: {type: [delivery.changed]}  # what else there is, is ignored
//
// Every fault is found at once: see [ProfileError].
func ParseProfile(text []byte) (*Profile, error) {
	r := profileReader{}
	root := r.document(text)
	p := &Profile{}
	if root != nil {
		r.profile(root, p)
	}
	if len(r.faults) > 0 {
		slices.SortStableFunc(r.faults, func(a, b ProfileFault) int { return cmp.Compare(a.Line, b.Line) })
		return nil, &ProfileError{r.faults}
	}
	return p, nil
}

// profileReader reads the nodes of a profile and collects what is wrong.
type profileReader struct{ faults []ProfileFault }

func (r *profileReader) fault(line int, format string, args ...any) {
	r.faults = append(r.faults, ProfileFault{line, fmt.Sprintf(format, args...)})
}

// document returns the one document of text, nil if there is none.
func (r *profileReader) document(text []byte) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, more yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		r.fault(0, "profile is empty")
		return nil
	case err != nil:
		r.syntax(err)
		return nil
	}
	if err := decoder.Decode(&more); err == nil {
		r.fault(more.Line, "a second document begins here; a profile is one")
	} else if !errors.Is(err, io.EOF) {
		r.syntax(err)
	}
	return document.Content[0]
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// syntax notes an error of the YAML library, which knows the line.
func (r *profileReader) syntax(err error) {
	text, line := err.Error(), 0
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1]) // 0 if the library does not say
		text = text[len(m[0]):]
	}
	r.fault(line, "not YAML: %s", text)
}

func (r *profileReader) profile(root *yaml.Node, p *Profile) {
	var lifecycle, aliases, event *yaml.Node
	for _, m := range r.members(root, "the profile") {
		switch m.key {
		case "name":
			p.name = r.name(m.value)
		case "lifecycle":
			lifecycle = m.value
		case "aliases":
			aliases = m.value
		case "event":
			event = m.value
		default:
			r.fault(m.line, "unknown key %q; a profile has name, lifecycle, aliases and event", m.key)
		}
	}
	if root.Kind == yaml.MappingNode && p.name == "" {
		r.fault(root.Line, "name is missing")
	}
	if root.Kind == yaml.MappingNode && lifecycle == nil && aliases == nil && event == nil {
		r.fault(root.Line, "none of lifecycle, aliases and event is there: the profile says nothing")
	}
	p.lifecycle = r.lifecycle(lifecycle, aliases)
	if event != nil {
		p.mapping = r.mapping(event)
	}
}

var profileName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)

func (r *profileReader) name(n *yaml.Node) string {
	name, ok := r.text(n, "name")
	if ok && !profileName.MatchString(name) {
		r.fault(n.Line, "name %q is not 1 to 64 characters of [a-z][a-z0-9-]*", name)
	}
	return cmp.Or(name, "?") // it is there, so nobody misses it
}

// keyed is one member of a YAML mapping.
type keyed struct {
	key   string
	line  int
	value *yaml.Node
}

// members returns the members of n, without those that repeat a key.
func (r *profileReader) members(n *yaml.Node, what string) []keyed {
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		r.fault(n.Line, "%s is %s, not names with values", what, kindOf(n))
		return nil
	}
	var all []keyed
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolve(n.Content[i+1])
		if key.Kind != yaml.ScalarNode {
			r.fault(key.Line, "a key of %s is %s, not a plain value", what, kindOf(key))
			continue
		}
		if j := slices.IndexFunc(all, func(k keyed) bool { return k.key == key.Value }); j >= 0 {
			r.fault(key.Line, "%s of %s is already in line %d", key.Value, what, all[j].line)
			continue
		}
		all = append(all, keyed{key.Value, key.Line, value})
	}
	return all
}

// texts returns the items of a list, or the one plain value that n is.
func (r *profileReader) texts(n *yaml.Node, what string) []string {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	if len(items) == 0 {
		r.fault(n.Line, "%s is an empty list", what)
	}
	var all []string
	for _, item := range items {
		if text, ok := r.text(item, what); ok {
			all = append(all, text)
		}
	}
	return all
}

// text returns what a plain value says, as written.
func (r *profileReader) text(n *yaml.Node, what string) (string, bool) {
	n = resolve(n)
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Value == "" {
		r.fault(n.Line, "%s is %s, not a text", what, kindOf(n))
		return "", false
	}
	return n.Value, true
}

// resolve follows a YAML alias.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func kindOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "names with values"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null" || n.Value == "":
		return "empty"
	default:
		return "a plain value"
	}
}
