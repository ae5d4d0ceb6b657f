package codecs

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/cespare/xxhash/v2"
)

// The names of the two statuses that every lifecycle has.
const (
	UnknownName   = "UNKNOWN"
	AbandonedName = "ABANDONED"
)

// maxStatuses is how many statuses fit a Status, UNKNOWN and ABANDONED included.
const maxStatuses = 256

// Lifecycle is the ordered set of statuses of one deployment. It is immutable.
type Lifecycle struct {
	statuses []StatusInfo
	byName   map[string]Status // canonical names
	meaning  map[string]Status // what producers send: names and aliases, not ABANDONED
	version  string
}

// BuiltinLifecycle returns the lifecycle used unless a profile gives another.
func BuiltinLifecycle() *Lifecycle { return newLifecycle(builtinStatuses()) }

// NewLifecycle makes a lifecycle of statuses in rank order. UNKNOWN is put first
// and the synthetic terminal ABANDONED last. All faults are reported at once.
func NewLifecycle(statuses []StatusInfo) (*Lifecycle, error) {
	var faults []error
	for _, f := range checkStatuses(statuses) {
		faults = append(faults, errors.New(f.text))
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return newLifecycle(statuses), nil
}

func newLifecycle(statuses []StatusInfo) *Lifecycle {
	l := &Lifecycle{
		statuses: make([]StatusInfo, 0, len(statuses)+2),
		byName:   make(map[string]Status, len(statuses)+2),
		meaning:  make(map[string]Status, len(statuses)+1),
	}
	l.add(StatusInfo{Name: UnknownName, Labels: map[string]string{"ko": "알 수 없음", "en": "Unknown"}})
	for _, s := range statuses {
		l.add(s)
	}
	l.add(StatusInfo{Name: AbandonedName, Terminal: true, Labels: map[string]string{"ko": "방치됨", "en": "Abandoned"}})
	delete(l.meaning, AbandonedName)
	l.version = l.hash()
	return l
}

func (l *Lifecycle) add(info StatusInfo) {
	s := Status(len(l.statuses))
	info.Aliases = slices.Clone(info.Aliases)
	info.Labels = maps.Clone(info.Labels)
	l.statuses = append(l.statuses, info)
	l.byName[info.Name] = s
	l.meaning[info.Name] = s
	for _, alias := range info.Aliases {
		l.meaning[alias] = s
	}
}

func (l *Lifecycle) hash() string {
	h := xxhash.New()
	write := func(s string) {
		_, _ = h.WriteString(strconv.Itoa(len(s)) + ":" + s)
	}
	for _, s := range l.statuses {
		write(s.Name)
		write(strconv.FormatBool(s.Terminal))
		write(strconv.Itoa(len(s.Aliases)))
		for _, alias := range slices.Sorted(slices.Values(s.Aliases)) {
			write(alias)
		}
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// statusFault is one fault of a list of statuses.
type statusFault struct {
	status  int    // index of the status that has it, -1 for the whole list
	alias   string // the alias that has it, if isAlias
	isAlias bool
	text    string
}

// checkStatuses returns all faults of statuses in their order, those of aliases
// last.
func checkStatuses(statuses []StatusInfo) []statusFault {
	var faults []statusFault
	fault := func(i int, format string, args ...any) {
		faults = append(faults, statusFault{status: i, text: fmt.Sprintf(format, args...)})
	}
	if len(statuses) == 0 {
		fault(-1, "lifecycle has no statuses")
	}
	if len(statuses) > maxStatuses-2 {
		fault(-1, "lifecycle has %d statuses, more than %d", len(statuses), maxStatuses-2)
	}
	names := map[string]bool{UnknownName: true, AbandonedName: true}
	for i, s := range statuses {
		switch {
		case s.Name == UnknownName || s.Name == AbandonedName:
			fault(i, "status %s is part of every lifecycle and can not be defined", s.Name)
		case s.Name == ReopenedName:
			fault(i, "status %s can not be defined: summaries say so of a delivery that re-opens", s.Name)
		case !validStatusName(s.Name):
			fault(i, "status name %q is not 1 to %d bytes of [A-Z][A-Z0-9_]*", s.Name, maxText)
		case names[s.Name]:
			fault(i, "status %s is defined twice", s.Name)
		}
		names[s.Name] = true
	}
	return append(faults, checkAliases(statuses, names)...)
}

func checkAliases(statuses []StatusInfo, names map[string]bool) []statusFault {
	var faults []statusFault
	owner := map[string]string{}
	for i, s := range statuses {
		for _, alias := range s.Aliases {
			fault := func(format string, args ...any) {
				faults = append(faults, statusFault{i, alias, true, fmt.Sprintf(format, args...)})
			}
			other, taken := owner[alias]
			switch {
			case alias == "" || len(alias) > maxText || !printable(alias):
				fault("alias %q of %s is not 1 to %d bytes of UTF-8 without control characters", alias, s.Name, maxText)
			case names[alias]:
				fault("alias %s of %s is the name of a status", alias, s.Name)
			case taken:
				fault("alias %s of %s is already an alias of %s", alias, s.Name, other)
			}
			owner[alias] = s.Name
		}
	}
	return faults
}

func validStatusName(s string) bool {
	if s == "" || len(s) > maxText || s[0] < 'A' || s[0] > 'Z' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}

// Len returns the number of statuses, UNKNOWN and ABANDONED included.
func (l *Lifecycle) Len() int { return len(l.statuses) }

// Info describes s. Its aliases and labels must not be changed.
func (l *Lifecycle) Info(s Status) StatusInfo { return l.statuses[s] }

// Name returns the canonical name of s.
func (l *Lifecycle) Name(s Status) string { return l.statuses[s].Name }

// Terminal reports whether s closes a delivery.
func (l *Lifecycle) Terminal(s Status) bool { return l.statuses[s].Terminal }

// Abandoned returns the synthetic terminal status.
func (l *Lifecycle) Abandoned() Status { return Status(len(l.statuses) - 1) }

// Lookup finds a status by its canonical name, ABANDONED included.
func (l *Lifecycle) Lookup(name string) (Status, bool) {
	s, ok := l.byName[name]
	return s, ok
}

// Parse finds the status that a producer means: a canonical name or an alias,
// never ABANDONED.
func (l *Lifecycle) Parse(name string) (Status, bool) {
	s, ok := l.meaning[name]
	return s, ok
}

// Version identifies the lifecycle: equal versions mean equal names, ranks,
// terminal marks and aliases. Labels do not matter.
func (l *Lifecycle) Version() string { return l.version }
