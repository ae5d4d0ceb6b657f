package codecs

import (
	"regexp"
	"slices"

	"gopkg.in/yaml.v3"
)

// lifecycle reads the statuses and the aliases of a profile; either may be nil.
// It returns nil if anything is wrong.
func (r *profileReader) lifecycle(list, aliases *yaml.Node) *Lifecycle {
	before := len(r.faults)
	statuses, lines := builtinStatuses(), []int(nil)
	if list != nil {
		statuses, lines = r.statuses(list)
	}
	aliasLines := map[string]int{}
	if aliases != nil {
		for _, m := range r.members(aliases, "aliases") {
			r.alias(m, statuses)
			aliasLines[m.key] = m.line
		}
	}
	if list != nil && statuses == nil && len(r.faults) > before {
		return nil // it can not be read, which was said
	}
	for _, f := range checkStatuses(statuses) {
		switch {
		case f.isAlias:
			r.fault(aliasLines[f.alias], "%s", f.text)
		case f.status >= 0:
			r.fault(lines[f.status], "%s", f.text)
		default:
			r.fault(list.Line, "%s", f.text)
		}
	}
	if len(r.faults) > before {
		return nil
	}
	return newLifecycle(statuses)
}

// alias adds a name that is sent to the status that it means.
func (r *profileReader) alias(m keyed, statuses []StatusInfo) {
	name, ok := r.text(m.value, "alias "+m.key)
	if !ok {
		return
	}
	i := slices.IndexFunc(statuses, func(s StatusInfo) bool { return s.Name == name })
	switch {
	case name == UnknownName:
		r.fault(m.line, "alias %s means UNKNOWN, as every name does that is not given", m.key)
	case name == AbandonedName:
		r.fault(m.line, "alias %s means ABANDONED, which nobody can send", m.key)
	case i >= 0:
		statuses[i].Aliases = append(statuses[i].Aliases, m.key)
	default:
		r.fault(m.line, "alias %s means %s, which is no status of the lifecycle", m.key, name)
	}
}

// statuses returns the statuses of a list and their lines.
func (r *profileReader) statuses(list *yaml.Node) (statuses []StatusInfo, lines []int) {
	if list.Kind != yaml.SequenceNode {
		r.fault(list.Line, "lifecycle is %s, not a list of statuses in rank order", kindOf(list))
		return nil, nil
	}
	for _, n := range list.Content {
		if n = resolve(n); n.Kind != yaml.MappingNode {
			r.fault(n.Line, "a status is %s, not names with values such as {name: CREATED}", kindOf(n))
			continue
		}
		var s StatusInfo
		named := false
		for _, m := range r.members(n, "a status") {
			switch m.key {
			case "name":
				s.Name, named = r.text(m.value, "name of a status")
			case "terminal":
				s.Terminal = r.truth(m.value, "terminal")
			case "labels":
				s.Labels = r.labels(m.value)
			case "aliases":
				r.fault(m.line, "aliases stand at the top of a profile, as \"name that is sent: STATUS\"")
			default:
				r.fault(m.line, "unknown key %q; a status has name, terminal and labels", m.key)
			}
		}
		if !named {
			r.fault(n.Line, "a status has no name")
			continue
		}
		statuses, lines = append(statuses, s), append(lines, n.Line)
	}
	return statuses, lines
}

var language = regexp.MustCompile(`^[a-z]{2,3}$`)

func (r *profileReader) labels(n *yaml.Node) map[string]string {
	labels := map[string]string{}
	for _, m := range r.members(n, "labels") {
		if !language.MatchString(m.key) {
			r.fault(m.line, "%q is not the code of a language, such as ko or en", m.key)
		}
		label, ok := r.text(m.value, "label "+m.key)
		if ok && (len(label) > maxText || !printable(label)) {
			r.fault(m.line, "label %s is not 1 to %d bytes without control characters", m.key, maxText)
		}
		labels[m.key] = label
	}
	return labels
}

func (r *profileReader) truth(n *yaml.Node, what string) bool {
	var v bool
	if n.Tag != "!!bool" || n.Decode(&v) != nil {
		r.fault(n.Line, "%s is not true or false", what)
	}
	return v
}
