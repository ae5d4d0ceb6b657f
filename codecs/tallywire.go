package codecs

import "google.golang.org/protobuf/encoding/protowire"

// Fields of the messages Tally, ScopeCounts, StatusCount and StatusCounts.
const (
	tallyPartition    protowire.Number = 2
	tallyTopicID      protowire.Number = 3
	tallyFull         protowire.Number = 4
	tallyPart         protowire.Number = 5
	tallyParts        protowire.Number = 6
	tallyPosition     protowire.Number = 7
	tallyClock        protowire.Number = 8
	tallyHorizon      protowire.Number = 9
	tallySettingsHash protowire.Number = 10
	tallyScopes       protowire.Number = 11
	tallyCheck        protowire.Number = 12
	tallyAudited      protowire.Number = 13
	tallyDrift        protowire.Number = 14

	scopeName   protowire.Number = 1
	scopeCounts protowire.Number = 2

	countStatus protowire.Number = 1
	countLive   protowire.Number = 2
	countClosed protowire.Number = 3

	statusCounts protowire.Number = 2
)

// AppendTally appends the bytes of t.
func AppendTally(b []byte, t *Tally) []byte {
	b = appendVersion(b)
	b = appendInt(b, tallyPartition, int64(t.Partition))
	b = appendText(b, tallyTopicID, t.TopicID)
	b = appendBool(b, tallyFull, t.Full)
	b = appendInt(b, tallyPart, int64(t.Part))
	b = appendInt(b, tallyParts, int64(t.Parts))
	b = appendInt(b, tallyPosition, t.Position)
	b = appendOptionalTime(b, tallyClock, t.Clock)
	b = appendOptionalTime(b, tallyHorizon, t.Horizon)
	b = appendHash(b, tallySettingsHash, t.SettingsHash)
	for i := range t.Scopes {
		b = beginMessage(b, tallyScopes)
		start := len(b)
		b = appendText(b, scopeName, t.Scopes[i].Scope)
		b = appendStatusCounts(b, scopeCounts, t.Scopes[i].Counts)
		b = endMessage(b, start)
	}
	b = appendBool(b, tallyCheck, t.Check)
	b = appendOptionalTime(b, tallyAudited, t.Audited)
	return appendStatusCounts(b, tallyDrift, t.Drift)
}

func appendStatusCounts(b []byte, field protowire.Number, counts []StatusCount) []byte {
	for i := range counts {
		b = beginMessage(b, field)
		start := len(b)
		b = appendText(b, countStatus, counts[i].Status)
		b = appendInt(b, countLive, counts[i].Live)
		b = appendInt(b, countClosed, counts[i].Closed)
		b = endMessage(b, start)
	}
	return b
}

// ReadTally reads the bytes of a tally.
func ReadTally(b []byte) (*Tally, error) {
	t := &Tally{Clock: None, Horizon: None, Audited: None}
	var version uint64
	var names nameSet
	m := newMessage(b)
	for m.next() {
		switch m.field {
		case fieldVersion:
			version = m.version()
		case tallyPartition:
			t.Partition = m.int32()
		case tallyTopicID:
			t.TopicID = string(m.bytes())
		case tallyFull:
			t.Full = m.bool()
		case tallyPart:
			t.Part = m.int32()
		case tallyParts:
			t.Parts = m.int32()
		case tallyPosition:
			t.Position = m.int()
		case tallyClock:
			t.Clock = m.time()
		case tallyHorizon:
			t.Horizon = m.time()
		case tallySettingsHash:
			t.SettingsHash = m.hash()
		case tallyScopes:
			t.Scopes = append(t.Scopes, readScope(&m, &names))
		case tallyCheck:
			t.Check = m.bool()
		case tallyAudited:
			t.Audited = m.time()
		case tallyDrift:
			t.Drift = append(t.Drift, readStatusCount(&m, &names))
		default:
			m.skip()
		}
	}
	if err := m.finish("tally", version); err != nil {
		return nil, err
	}
	return t, nil
}

func readScope(m *message, names *nameSet) ScopeCounts {
	var s ScopeCounts
	outer := m.enter()
	for m.next() {
		switch m.field {
		case scopeName:
			s.Scope = string(m.bytes())
		case scopeCounts:
			s.Counts = append(s.Counts, readStatusCount(m, names))
		default:
			m.skip()
		}
	}
	m.leave(outer)
	return s
}

func readStatusCount(m *message, names *nameSet) StatusCount {
	var c StatusCount
	outer := m.enter()
	for m.next() {
		switch m.field {
		case countStatus:
			c.Status = names.get(m.bytes())
		case countLive:
			c.Live = m.int()
		case countClosed:
			c.Closed = m.int()
		default:
			m.skip()
		}
	}
	m.leave(outer)
	return c
}

// nameSet makes one string of equal status names: a tally has few of them, each
// in many scopes.
type nameSet struct{ names []string }

func (s *nameSet) get(b []byte) string {
	for _, name := range s.names {
		if name == string(b) {
			return name
		}
	}
	name := string(b)
	if len(s.names) < maxStatuses {
		s.names = append(s.names, name)
	}
	return name
}

// AppendCounts appends the bytes of a contribution or total row: the counts of
// one scope.
func AppendCounts(b []byte, c []StatusCount) []byte {
	return appendStatusCounts(appendVersion(b), statusCounts, c)
}

// ReadCounts reads the bytes of a contribution or total row.
func ReadCounts(b []byte) ([]StatusCount, error) {
	var counts []StatusCount
	var version uint64
	var names nameSet
	m := newMessage(b)
	for m.next() {
		switch m.field {
		case fieldVersion:
			version = m.version()
		case statusCounts:
			counts = append(counts, readStatusCount(&m, &names))
		default:
			m.skip()
		}
	}
	if err := m.finish("counts row", version); err != nil {
		return nil, err
	}
	return counts, nil
}
