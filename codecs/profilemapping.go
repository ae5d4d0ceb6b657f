package codecs

import (
	"regexp"
	"slices"

	"gopkg.in/yaml.v3"
)

// mapping reads where the fields of an event are.
func (r *profileReader) mapping(n *yaml.Node) *mapping {
	m := &mapping{}
	if n.Kind != yaml.MappingNode {
		r.fault(n.Line, "event is %s, not fields with paths", kindOf(n))
		return m
	}
	found := map[string]bool{}
	for _, k := range r.members(n, "event") {
		switch {
		case slices.Contains(mappedFields(), k.key):
			found[k.key] = true
			asText := k.key != "occurred_at" && k.key != "sequence"
			m.rules = append(m.rules, mappingRule{k.key, asText, r.paths(k.value, k.key)})
		case k.key == "zone":
			m.zone = r.zone(k.value)
		case k.key == "only":
			m.only = r.only(k.value)
		default:
			r.fault(k.line, "unknown key %q; an event has delivery_id, status, occurred_at, sequence, event_id, order_id, store_id, region, service, zone and only", k.key)
		}
	}
	for _, field := range []string{"delivery_id", "status", "occurred_at"} {
		if !found[field] {
			r.fault(n.Line, "event has no path for %s", field)
		}
	}
	return m
}

// paths reads one path, or a list of which the first counts that is there.
func (r *profileReader) paths(n *yaml.Node, field string) []path {
	var all []path
	for _, text := range r.texts(n, field) {
		p, err := parsePath(text)
		if err != nil {
			r.fault(n.Line, "%s: %v", field, err)
		}
		all = append(all, p)
	}
	return all
}

var zoneOffset = regexp.MustCompile(`^([+-]([01]\d|2[0-3]):[0-5]\d|Z)$`)

// zone reads an offset. The name of a zone would not do: what it means changes
// with the zone database, and twice a year an hour of it is no one time.
func (r *profileReader) zone(n *yaml.Node) string {
	zone, ok := r.text(n, "zone")
	if ok && !zoneOffset.MatchString(zone) {
		r.fault(n.Line, "zone %q is not an offset from UTC such as \"+09:00\" or Z", zone)
	}
	return zone
}

// only reads the values by which events are told from what else there is.
func (r *profileReader) only(n *yaml.Node) []mappingFilter {
	var filters []mappingFilter
	for _, k := range r.members(n, "only") {
		p, err := parsePath(k.key)
		if err != nil {
			r.fault(k.line, "only: %v", err)
		}
		filters = append(filters, mappingFilter{p, r.texts(k.value, "only "+k.key)})
	}
	return filters
}
