package api

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"deliverystat/codecs"
)

// The query parameters that are not dimensions.
const (
	paramBy           = "by"
	paramMinPosition  = "min_position"
	paramWait         = "wait"
	paramMaxStaleness = "max_staleness"

	// Of lists of deliveries.
	paramStatus    = "status"
	paramOrderID   = "order_id"
	paramOlderThan = "older_than"
	paramLimit     = "limit"
	paramCursor    = "cursor"
)

// How many deliveries a list has at once: unless the request says so, and at most.
const (
	defaultLimit = 50
	maxLimit     = 500
)

// query is what the query string of a request asks for.
type query struct {
	dimension string // one value of this dimension, if not ""
	value     string
	by        string // groups by this dimension, if not ""

	status    *codecs.Status // live deliveries with this status, if not nil
	orderID   string         // and of this order, if not ""
	olderThan time.Duration  // and longer in their status; negative: any
	limit     int
	cursor    string

	position    codecs.Position // min_position
	hasPosition bool
	wait        time.Duration
	// maxStaleness is the oldest answer wanted; negative: any.
	maxStaleness time.Duration
}

// scope names what is counted together.
func (q *query) scope() string {
	if q.dimension == "" {
		return ""
	}
	return q.dimension + "=" + q.value
}

// grouped reports whether q asks for other than the totals of all deliveries.
func (q *query) grouped() bool { return q.dimension != "" || q.by != "" }

// countsKey names the body that has the counts that q asks for.
func (q *query) countsKey() bodyKey {
	if q.by != "" {
		return bodyKey{kind: bodyOfGroups, name: q.by}
	}
	return bodyKey{kind: bodyOfScope, name: q.scope()}
}

// accepts says which parameters a path takes.
type accepts struct {
	dimensions []string
	params     []string
	lifecycle  *codecs.Lifecycle // for paramStatus
}

// listing are the parameters of lists, beside dimensions and consistency.
func listing() []string {
	return []string{paramStatus, paramOrderID, paramOlderThan, paramLimit, paramCursor}
}

// consistency are the parameters of every read that has one position.
func consistency() []string { return []string{paramMinPosition, paramWait, paramMaxStaleness} }

// parseQuery reads the query string of a read of an input of n partitions (0 if
// that is not known yet). It finds all faults at once, ordered by parameter.
func parseQuery(raw string, n int, accept accepts) (query, []fault) {
	q := query{maxStaleness: -1, olderThan: -1, limit: defaultLimit}
	var faults []fault
	add := func(parameter, format string, args ...any) {
		faults = append(faults, fault{parameter, fmt.Sprintf(format, args...)})
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		add("", "the query string is malformed: %s", clip(err.Error()))
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if len(values[name]) > 1 {
			add(clip(name), "given %d times", len(values[name]))
			continue
		}
		value := values[name][0]
		switch {
		case slices.Contains(accept.dimensions, name):
			if q.dimension != "" {
				add(name, "cannot be combined with %s", q.dimension)
			}
			q.dimension, q.value = name, value
		case !slices.Contains(accept.params, name):
			add(clip(name), "unknown parameter; known here: %s", listOf(slices.Concat(accept.dimensions, accept.params)))
		case name == paramBy:
			if !slices.Contains(accept.dimensions, value) {
				add(name, "%q is no counted dimension; these are: %s", clip(value), listOf(accept.dimensions))
			}
			q.by = value
		case name == paramMinPosition:
			q.hasPosition = true
			if value == "" {
				add(name, "must be like 3:1043 or 0:17,3:1043")
			} else if q.position, err = codecs.ParsePosition(value, n); err != nil {
				add(name, "%s", clip(err.Error()))
			}
		case name == paramWait:
			if q.wait, err = time.ParseDuration(value); err != nil || q.wait < 0 || q.wait > MaxWait {
				add(name, "must be a duration between 0s and %s, like 500ms", MaxWait)
			}
		case name == paramMaxStaleness:
			if q.maxStaleness, err = time.ParseDuration(value); err != nil || q.maxStaleness < 0 {
				add(name, "must be a duration of at least 0s, like 10s")
			}
		case name == paramStatus:
			status, known := accept.lifecycle.Lookup(value)
			if !known || accept.lifecycle.Terminal(status) {
				add(name, "%q is no live status: see /v1/statuses", clip(value))
			}
			q.status = &status
		case name == paramOrderID:
			if q.orderID = value; value == "" {
				add(name, "must not be empty")
			}
		case name == paramOlderThan:
			if q.olderThan, err = time.ParseDuration(value); err != nil || q.olderThan < 0 {
				add(name, "must be a duration of at least 0s, like 30m")
			}
		case name == paramLimit:
			if n, err := strconv.ParseUint(value, 10, 32); err != nil || n < 1 || n > maxLimit {
				add(name, "must be a number from 1 to %d", maxLimit)
			} else {
				q.limit = int(n)
			}
		case name == paramCursor:
			if q.cursor = value; value == "" {
				add(name, detailCursor)
			}
		}
	}
	if q.dimension != "" && q.by != "" {
		add(paramBy, "cannot be combined with %s", q.dimension)
	}
	if values.Has(paramWait) && !q.hasPosition {
		add(paramWait, "needs %s", paramMinPosition)
	}
	sortFaults(faults)
	return q, faults
}

// sortFaults orders faults by parameter: what a map yields has no order.
func sortFaults(faults []fault) {
	slices.SortStableFunc(faults, func(x, y fault) int { return strings.Compare(x.Parameter, y.Parameter) })
}

func listOf(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// clip shortens what a client sent to what fits into a sentence.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
