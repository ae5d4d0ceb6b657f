package codecs

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// path says where in a JSON value something is: "data.courier.id". A number
// picks an element of an array, from its end if it is negative; a backslash
// takes the next character as it is. That is the plain part of gjson's paths;
// what may compute, search or rewrite is refused, for a profile says where a
// value is and nothing more.
type path []step

type step struct {
	name    string
	index   int // if isIndex
	isIndex bool
}

// notInPaths are the characters that mean something in gjson's paths, in
// JSONPath or in JSON Pointer.
const notInPaths = `*?#|@!{}[]()<>=%~^$&,;:/"'` + "`"

// parsePath reads a path.
func parsePath(s string) (path, error) {
	if s == "" {
		return nil, errors.New("path is empty")
	}
	if !printable(s) {
		return nil, fmt.Errorf("path %q has control characters", s)
	}
	var p path
	var name strings.Builder
	end := func() error {
		if name.Len() == 0 {
			return fmt.Errorf("path %q has an empty name in it", s)
		}
		p = append(p, newStep(name.String()))
		name.Reset()
		return nil
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '.':
			if err := end(); err != nil {
				return nil, err
			}
		case c == '\\' && i+1 == len(s):
			return nil, fmt.Errorf("path %q ends in a backslash", s)
		case c == '\\':
			i++
			name.WriteByte(s[i])
		case strings.IndexByte(notInPaths, c) >= 0:
			return nil, fmt.Errorf("path %q has %q in it: a path is names with dots between them, as in data.items.0.id; a backslash before it makes it part of a name", s, c)
		default:
			name.WriteByte(c)
		}
	}
	if err := end(); err != nil {
		return nil, err
	}
	return p, nil
}

func newStep(name string) step {
	n, err := strconv.ParseInt(name, 10, 32)
	return step{name: name, index: int(n), isIndex: err == nil && name[0] != '+'}
}

// find returns what is at p in v, or null. If an object has a key twice, the
// last one counts, as everywhere.
func (p path) find(v gjson.Result) field {
	for i := range p {
		switch s := &p[i]; {
		case v.IsObject():
			v = member(v, s.name)
		case v.IsArray() && s.isIndex:
			v = element(v, s.index)
		default:
			return field{}
		}
	}
	return fieldOf(v)
}

func member(object gjson.Result, name string) (found gjson.Result) {
	object.ForEach(func(key, value gjson.Result) bool {
		if key.Str == name {
			found = value
		}
		return true
	})
	return found
}

// element returns one element of array. Its elements are counted, not kept: there
// may be millions.
func element(array gjson.Result, index int) (found gjson.Result) {
	if index < 0 {
		array.ForEach(func(_, _ gjson.Result) bool {
			index++
			return true
		})
		if index < 0 {
			return found
		}
	}
	array.ForEach(func(_, value gjson.Result) bool {
		if index == 0 {
			found = value
		}
		index--
		return index >= 0
	})
	return found
}

// findFirst returns the first thing that is at one of paths, or null.
func findFirst(v gjson.Result, paths []path) field {
	for _, p := range paths {
		if found := p.find(v); !found.absent() {
			return found
		}
	}
	return field{}
}

// String returns p as it is written.
func (p path) String() string {
	names := make([]string, len(p))
	for i, s := range p {
		var b strings.Builder
		for _, c := range []byte(s.name) {
			if c == '.' || c == '\\' || strings.IndexByte(notInPaths, c) >= 0 {
				b.WriteByte('\\')
			}
			b.WriteByte(c)
		}
		names[i] = b.String()
	}
	return strings.Join(names, ".")
}

func pathStrings(paths []path) []string {
	all := make([]string, 0, len(paths))
	for _, p := range paths {
		all = append(all, p.String())
	}
	return all
}
