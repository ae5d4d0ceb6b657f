package api

import (
	"encoding/json"
	"sync"

	"deliverystat/codecs"
)

// maxBodies is how many bodies are kept of one snapshot. More queries than that
// are answered too, and encoded each time.
const maxBodies = 256

// bodyKind says what a body shows.
type bodyKind byte

// The kinds of bodies.
const (
	bodyOfScope  bodyKind = iota // the counts of a scope
	bodyOfGroups                 // the counts of every value of a dimension
	bodyOfStatus                 // one count of a scope
)

// noScope names a scope that no snapshot has, so that all values that nothing is
// counted of share one body.
const noScope = "\x00"

// bodyKey names a body of a snapshot.
type bodyKey struct {
	kind   bodyKind
	name   string // scope or dimension
	status codecs.Status
}

// body is an answer without its as_of object, which is new for each request.
type body struct {
	head []byte // an object without its closing brace
	etag string
}

// bodies are the answers made of one snapshot so far, each encoded once for all
// clients. They are safe for concurrent use.
type bodies struct {
	snapshot *codecs.Counts
	position string
	asOf     []byte // up to what is new for each answer

	mu     sync.Mutex
	byName map[bodyKey]*body
}

// bodiesOf returns the bodies of snapshot.
func (a *API) bodiesOf(snapshot *codecs.Counts) *bodies {
	if b := a.bodies.Load(); b != nil && b.snapshot == snapshot {
		return b
	}
	b := &bodies{snapshot: snapshot, position: snapshot.Position.String(), byName: map[bodyKey]*body{}}
	b.asOf = asOfHead(nil, b.position, snapshot.EventTime)
	// Two requests may do this at once, and the slower one may put back an
	// older snapshot: the next request mends it.
	a.bodies.Store(b)
	return b
}

// known returns key, or the one of the body that all scopes share of which
// nothing is counted.
func (b *bodies) known(key bodyKey) bodyKey {
	if key.kind != bodyOfGroups && key.name != "" {
		if _, ok := b.snapshot.Groups[key.name]; !ok {
			key.name = noScope
		}
	}
	return key
}

// get returns the body that key names.
func (b *bodies) get(a *API, key bodyKey) *body {
	key = b.known(key)
	b.mu.Lock()
	defer b.mu.Unlock()
	if made := b.byName[key]; made != nil {
		return made
	}
	// The content is part of the tag: after a restart with another lifecycle, the
	// same position has another answer.
	head := a.encode(b.snapshot, key)
	made := &body{head: head, etag: etagOf(b.snapshot.Position.TopicID, b.position, string(head))}
	if len(b.byName) < maxBodies {
		b.byName[key] = made
	}
	return made
}

// encode makes the head of a body.
func (a *API) encode(snapshot *codecs.Counts, key bodyKey) []byte {
	window := int64(a.options.ClosedWindow.Seconds())
	switch key.kind {
	case bodyOfGroups:
		out := []byte(`{"groups":[`)
		for i, value := range valuesOf(snapshot, key.name) {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, '{')
			out = append(out, jsonString(key.name)...)
			out = append(out, ':')
			out = append(out, jsonString(value)...)
			out = append(out, ',')
			out = append(out, members(talliesOf(a.options.Lifecycle, snapshot.Groups[key.name+"="+value]))...)
			out = append(out, '}')
		}
		out = append(out, `],`...)
		return append(out, members(struct {
			tallies
			Window int64 `json:"closed_window_seconds"`
		}{talliesOf(a.options.Lifecycle, snapshot.All), window})...)
	case bodyOfStatus:
		return append([]byte{'{'}, members(struct {
			Status string `json:"status"`
			Count  int64  `json:"count"`
		}{a.options.Lifecycle.Name(key.status), countOf(a.options.Lifecycle, scopeOf(snapshot, key.name), key.status)})...)
	default:
		return append([]byte{'{'}, members(struct {
			tallies
			Window int64 `json:"closed_window_seconds"`
		}{talliesOf(a.options.Lifecycle, scopeOf(snapshot, key.name)), window})...)
	}
}

// scopeOf returns the counts of a scope, none if nothing is counted of it.
func scopeOf(snapshot *codecs.Counts, scope string) codecs.ScopeCounts {
	if scope == "" {
		return snapshot.All
	}
	return snapshot.Groups[scope]
}

// members encodes an object and returns it without its braces.
func members(object any) []byte {
	b, err := json.Marshal(object)
	if err != nil { // names and numbers always have an encoding
		panic(err)
	}
	return b[1 : len(b)-1]
}
