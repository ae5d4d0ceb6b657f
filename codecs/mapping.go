package codecs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/tidwall/gjson"
)

// mapping says where the fields of an event are in a JSON object that is no
// native event.
type mapping struct {
	rules []mappingRule
	only  []mappingFilter
	zone  string // of event times that have none, "Z" or "+09:00"; "" if those are refused
}

// mappingRule says where one field is: at the first of paths that is there.
type mappingRule struct {
	field  string // as the native event calls it
	asText bool   // an integer is taken as its digits
	paths  []path
}

// mappingFilter ignores objects with another value than one of wanted at path.
// An object without any is not ignored: it may be an event that is broken.
type mappingFilter struct {
	path   path
	wanted []string
}

// mappedFields are the fields that a mapping may place, in the order in which
// they are shown.
func mappedFields() []string {
	all := []string{"delivery_id", "status", "occurred_at", "sequence", "event_id"}
	for a := range NumAttributes {
		all = append(all, a.String())
	}
	return all
}

// read notes the fields of object.
func (m *mapping) read(object gjson.Result, f *fields) {
	for i := range m.rules {
		r := &m.rules[i]
		v := findFirst(object, r.paths)
		if r.asText {
			v = v.integerAsText()
		}
		*f.named(r.field) = v
	}
	f.unwanted = slices.ContainsFunc(m.only, func(filter mappingFilter) bool { return !filter.admits(object) })
}

func (filter *mappingFilter) admits(object gjson.Result) bool {
	v := filter.path.find(object)
	return v.absent() || slices.Contains(filter.wanted, v.text)
}

// lines describes the mapping, one line each: where the fields are, in the order
// of mappedFields, then what else there is to it.
func (m *mapping) lines() []string {
	var lines []string
	for _, field := range mappedFields() {
		if paths := m.paths(field); len(paths) > 0 {
			lines = append(lines, field+" at "+strings.Join(paths, ", else "))
		}
	}
	if m.zone != "" {
		lines = append(lines, "times without zone are of zone "+m.zone)
	}
	for _, f := range m.only {
		wanted := make([]string, 0, len(f.wanted))
		for _, w := range f.wanted {
			wanted = append(wanted, strconv.Quote(w))
		}
		lines = append(lines, "only with "+strings.Join(wanted, " or ")+" at "+f.path.String())
	}
	return lines
}

func (m *mapping) paths(field string) []string {
	i := slices.IndexFunc(m.rules, func(r mappingRule) bool { return r.field == field })
	if i < 0 {
		return nil
	}
	return pathStrings(m.rules[i].paths)
}

// version identifies the mapping: what is described in other lines is another.
func (m *mapping) version() string {
	h := xxhash.New()
	for _, line := range m.lines() {
		_, _ = fmt.Fprintf(h, "%d:%s", len(line), line) // a hash takes all
	}
	return fmt.Sprintf("%016x", h.Sum64())
}
