package processors

import (
	"cmp"
	"slices"
	"strings"

	"deliverystat/codecs"
)

// AllScope is the scope of all deliveries.
const AllScope = ""

// DimensionScope names the scope of the deliveries with value in dimension;
// value is "" for those that have none.
func DimensionScope(dimension codecs.Attribute, value string) string {
	return dimension.String() + "=" + value
}

// Scopes names every scope in which row is counted: all, and one per dimension.
func (s *Settings) Scopes(row *codecs.Row) []string {
	scopes := make([]string, 0, 1+len(s.Dimensions))
	scopes = append(scopes, AllScope)
	for _, d := range s.Dimensions {
		scopes = append(scopes, DimensionScope(d, row.Attributes[d].Value))
	}
	return scopes
}

// tally holds the counts of one partition by scope, moved by -1 and +1 with each
// transition, so that no row is read to tell them.
type tally struct {
	settings *Settings
	scopes   map[string]*scopeTally
	sets     map[[codecs.NumAttributes]string]*scopeSet
	changed  []*scopeTally // since the last cut
}

// scopeTally is what one scope counts.
type scopeTally struct {
	scope   string
	live    []int64 // by status
	closed  []int64
	rows    int64 // sum of both
	changed bool
}

// scopeSet is the scopes of one combination of dimension values, shared by all
// rows that have it.
type scopeSet struct {
	values [codecs.NumAttributes]string // "" for attributes that are no dimension
	scopes []*scopeTally
	rows   int64
}

func newTally(s *Settings) *tally {
	t := &tally{settings: s, scopes: map[string]*scopeTally{}, sets: map[[codecs.NumAttributes]string]*scopeSet{}}
	t.scope(AllScope)
	return t
}

// setOf returns the scopes of row. It prefers near, the set the row had before,
// since attributes rarely change.
func (t *tally) setOf(row *codecs.Row, near *scopeSet) *scopeSet {
	if near != nil && t.matches(near, row) {
		return near
	}
	var values [codecs.NumAttributes]string
	for _, d := range t.settings.Dimensions {
		values[d] = row.Attributes[d].Value
	}
	set := t.sets[values]
	if set == nil {
		for a := range values {
			values[a] = strings.Clone(values[a]) // a part of a record, or of a row
		}
		set = &scopeSet{values: values}
		for _, scope := range t.settings.Scopes(row) {
			set.scopes = append(set.scopes, t.scope(scope))
		}
		t.sets[values] = set
	}
	return set
}

func (t *tally) matches(set *scopeSet, row *codecs.Row) bool {
	for _, d := range t.settings.Dimensions {
		if set.values[d] != row.Attributes[d].Value {
			return false
		}
	}
	return true
}

func (t *tally) scope(name string) *scopeTally {
	sc := t.scopes[name]
	if sc == nil {
		n := t.settings.Lifecycle.Len()
		counts := make([]int64, 2*n)
		sc = &scopeTally{scope: name, live: counts[:n:n], closed: counts[n:]}
		t.scopes[name] = sc
	}
	return sc
}

// add counts n more rows of the set's scopes in status.
func (t *tally) add(set *scopeSet, status codecs.Status, closed bool, n int64) {
	for _, sc := range set.scopes {
		if closed {
			sc.closed[status] += n
		} else {
			sc.live[status] += n
		}
		sc.rows += n
		if !sc.changed {
			sc.changed = true
			t.changed = append(t.changed, sc)
		}
	}
	set.rows += n
	if set.rows == 0 {
		delete(t.sets, set.values)
	} else if set.rows == n {
		t.sets[set.values] = set
	}
}

// cut returns the counts of the scopes that changed since the last cut, or of
// all if full, and forgets the empty ones. A changed scope that became empty is
// told without counts.
func (t *tally) cut(full bool) []codecs.ScopeCounts {
	told := make([]codecs.ScopeCounts, 0, len(t.changed))
	if full {
		told = make([]codecs.ScopeCounts, 0, len(t.scopes))
		for _, sc := range t.scopes {
			if sc.rows != 0 || sc.scope == AllScope {
				told = append(told, t.tell(sc))
			}
		}
	}
	for _, sc := range t.changed {
		sc.changed = false
		if !full {
			told = append(told, t.tell(sc))
		}
		if sc.rows == 0 && sc.scope != AllScope {
			delete(t.scopes, sc.scope)
		}
	}
	t.changed = t.changed[:0]
	return told
}

// tell returns what sc counts, statuses in order of rank.
func (t *tally) tell(sc *scopeTally) codecs.ScopeCounts {
	told := codecs.ScopeCounts{Scope: sc.scope}
	for status := range sc.live {
		if sc.live[status] != 0 || sc.closed[status] != 0 {
			told.Counts = append(told.Counts, codecs.StatusCount{
				Status: t.settings.Lifecycle.Name(codecs.Status(status)),
				Live:   sc.live[status],
				Closed: sc.closed[status],
			})
		}
	}
	return told
}

// SplitTally divides t into parts of which none has more than limit bytes,
// unless a single scope has. Scopes and statuses are put in order of name.
func SplitTally(t *codecs.Tally, limit int) []*codecs.Tally {
	slices.SortFunc(t.Scopes, func(a, b codecs.ScopeCounts) int { return cmp.Compare(a.Scope, b.Scope) })
	for _, sc := range t.Scopes {
		slices.SortFunc(sc.Counts, func(a, b codecs.StatusCount) int { return cmp.Compare(a.Status, b.Status) })
	}
	const rest = 256 // what a tally takes besides its scopes, at most
	var parts []*codecs.Tally
	size, from := rest, 0
	end := func(to int) {
		part := *t
		part.Scopes = t.Scopes[from:to:to]
		parts = append(parts, &part)
		size, from = rest, to
	}
	for i, sc := range t.Scopes {
		n := scopeBytes(sc)
		if i > from && size+n > limit {
			end(i)
		}
		size += n
	}
	end(len(t.Scopes))
	for i, part := range parts {
		part.Part, part.Parts = int32(i), int32(len(parts))
	}
	return parts
}

// scopeBytes is the most that a scope takes in a tally record: tags and lengths
// and two counts of ten bytes each per status.
func scopeBytes(sc codecs.ScopeCounts) int {
	n := 16 + len(sc.Scope)
	for _, c := range sc.Counts {
		n += 32 + len(c.Status)
	}
	return n
}
