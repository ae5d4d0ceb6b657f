package topics

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Weight says what a finding means for the service.
type Weight int

// The weights.
const (
	Warning Weight = iota // worth knowing
	Unsafe                // may lose data in an accident; accepted on request
	Broken                // the service would be wrong, or can not run
)

// Finding is one thing that is not as it must be.
type Finding struct {
	Topic   string
	Weight  Weight
	Missing bool   // the topic does not exist
	Text    string // one line, beginning with the topic
}

// Topic is a topic as the cluster describes it.
type Topic struct {
	Partitions        int32
	ReplicationFactor int16 // of its least replicated partition
	Settings          map[string]string
}

// Inspect compares what is needed with what exists, by topic name. It returns
// no finding if all is well.
func Inspect(specs []Spec, existing map[string]Topic, window Window) []Finding {
	i := inspection{window: window}
	input, haveInput := existing[specs[0].Name]
	for _, spec := range specs {
		topic, ok := existing[spec.Name]
		if !ok {
			if spec.Needed {
				i.findings = append(i.findings, Finding{spec.Name, Broken, true, "topic " + spec.Name + " does not exist"})
			}
			continue
		}
		i.spec, i.topic = spec, topic
		want := spec.Partitions
		if want == 0 && haveInput {
			want = input.Partitions
		}
		if want != 0 && spec.Kind != Input && topic.Partitions != want && mustMatch(spec) {
			i.add(Broken, "has %s, want %d", count(int64(topic.Partitions), "partition"), want)
		}
		i.policy()
		i.replication()
		i.size()
		switch spec.Kind {
		case Input:
			i.input()
		case Table:
			i.table()
		case Stream:
			if spec.Partitions == 1 && spec.Needed {
				i.atLeast(Unsafe, retention, leastTallyRetention)
			}
		}
	}
	return i.findings
}

// mustMatch reports whether the number of partitions matters: any number of
// dead letter partitions is right.
func mustMatch(spec Spec) bool { return spec.Kind == Table || spec.Partitions != 0 }

// inspection looks at one topic after another.
type inspection struct {
	window   Window
	spec     Spec
	topic    Topic
	findings []Finding
}

func (i *inspection) add(w Weight, format string, args ...any) {
	text := "topic " + i.spec.Name + " " + fmt.Sprintf(format, args...)
	i.findings = append(i.findings, Finding{Topic: i.spec.Name, Weight: w, Text: text})
}

func (i *inspection) policy() {
	got, want := i.topic.Settings[cleanupPolicy], i.spec.Settings[cleanupPolicy]
	if got == "" || got == want {
		return
	}
	weight := Broken
	if i.spec.Kind == Input {
		// Rows are made before a record is compacted away, but can not be made
		// from it again: compaction keeps the last record, not the newest event.
		weight = Unsafe
	}
	i.add(weight, "has %s=%s, want %s", cleanupPolicy, got, want)
}

func (i *inspection) replication() {
	factor := i.topic.ReplicationFactor
	if factor < 2 {
		i.add(Unsafe, "has replication factor %d: the loss of one broker loses its records", factor)
	}
	if insync, ok := i.number(minInsync); ok && factor >= 2 {
		switch {
		case insync < 2:
			weight := Unsafe
			if factor == 2 { // the alternative is below
				weight = Warning
			}
			i.add(weight, "has %s=%d with replication factor %d: a record on one broker counts as written", minInsync, insync, factor)
		case insync >= int64(factor):
			i.add(Warning, "has %s=%d with replication factor %d: writes stop when one broker does", minInsync, insync, factor)
		}
	}
	if i.topic.Settings[uncleanElection] == "true" {
		i.add(Unsafe, "has %s=true: an election may lose written records", uncleanElection)
	}
}

// size checks that a topic takes what we write to it. A transaction with a batch
// that is too large would fail again and again.
func (i *inspection) size() {
	if got, ok := i.number(maxMessageBytes); ok && i.spec.Written && got < leastMessageBytes {
		i.add(Broken, "has %s=%d, want at least %d", maxMessageBytes, got, leastMessageBytes)
	}
}

func (i *inspection) input() {
	if i.topic.Settings[timestampType] != "LogAppendTime" {
		ahead, ok := i.number(timestampAfter)
		if ok && ahead > mostTimestampAhead.Milliseconds() || !ok && i.topic.Settings[timestampType] != "" {
			i.add(Unsafe, "does not bound record timestamps: want %s=LogAppendTime, or %s of at most %s",
				timestampType, timestampAfter, ms(mostTimestampAhead))
		}
	}
	keep, ok := i.number(retention)
	need := i.window.InputRetention()
	switch {
	case !ok || keep < 0:
	case need == 0:
		i.add(Warning, "has %s=%d: deliveries older than that can not be rebuilt from it, and with --abandon-after=0 none is ever dropped", retention, keep)
	case keep < need.Milliseconds():
		i.add(Warning, "has %s=%d, less than --abandon-after + --allowed-lateness (%s): tables can not be rebuilt from it exactly", retention, keep, ms(need))
	}
}

func (i *inspection) table() {
	i.atLeast(Unsafe, minCompactionLag, leastCompactionLag)
	i.atLeast(Unsafe, deleteRetention, leastDeleteRetention)
}

// atLeast checks a duration in milliseconds; a negative one has no end.
func (i *inspection) atLeast(w Weight, name string, least time.Duration) {
	if got, ok := i.number(name); ok && got >= 0 && got < least.Milliseconds() {
		i.add(w, "has %s=%d, want at least %s", name, got, ms(least))
	}
}

// number returns a setting; ok is false if the cluster does not have it.
func (i *inspection) number(name string) (value int64, ok bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(i.topic.Settings[name]), 10, 64)
	return n, err == nil
}

func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
