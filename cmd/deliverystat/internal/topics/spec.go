package topics

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"deliverystat/processors"
)

// Names of topic settings.
const (
	cleanupPolicy    = "cleanup.policy"
	retention        = "retention.ms"
	segmentBytes     = "segment.bytes"
	minCompactionLag = "min.compaction.lag.ms"
	deleteRetention  = "delete.retention.ms"
	minInsync        = "min.insync.replicas"
	uncleanElection  = "unclean.leader.election.enable"
	timestampType    = "message.timestamp.type"
	timestampAfter   = "message.timestamp.after.max.ms"
	maxMessageBytes  = "max.message.bytes"
)

// Bounds that the service relies on.
const (
	leastCompactionLag   = time.Hour      // a view may be so far behind and still see every progress row it needs
	leastDeleteRetention = 24 * time.Hour // a local copy of a table is used up to half this age
	leastTallyRetention  = time.Hour      // full tallies are repeated within a quarter of it
	mostTimestampAhead   = time.Hour      // a record's time says when it came, up to this
	leastMessageBytes    = 1_048_588      // Kafka's default; what we write is cut to fit it
)

// Kind is what a topic is for.
type Kind int

// The kinds of topics.
const (
	Input Kind = iota
	Table
	Stream
)

// Spec is one topic that a deployment needs.
type Spec struct {
	Name string
	Kind Kind
	// Partitions is the number of partitions, 0 for that of the input.
	Partitions int32
	// Needed is false for a topic that only features to come will use: it is
	// created, but its absence is no fault.
	Needed bool
	// Written says that the deployment writes to it.
	Written bool
	// Settings are the topic settings that Create gives.
	Settings map[string]string
}

// Window says how long the input must reach back.
type Window struct {
	Lateness     time.Duration
	AbandonAfter time.Duration // 0 means never
}

// InputRetention returns how long the input must be kept so that tables can be
// rebuilt from it exactly; 0 means for ever.
func (w Window) InputRetention() time.Duration {
	if w.AbandonAfter == 0 {
		return 0
	}
	return w.AbandonAfter + w.Lateness
}

// Specs returns the topics of a deployment, the input first. The replication
// factor decides how many replicas must have a record before it counts as
// written.
func Specs(names processors.Topics, window Window, replicationFactor int16) []Spec {
	common := map[string]string{
		minInsync:       strconv.Itoa(max(1, int(replicationFactor)-1)),
		uncleanElection: "false",
	}
	with := func(settings map[string]string) map[string]string {
		maps.Copy(settings, common)
		return settings
	}
	table := func() map[string]string {
		return with(map[string]string{
			cleanupPolicy:    "compact",
			minCompactionLag: ms(2 * leastCompactionLag),
			deleteRetention:  ms(7 * 24 * time.Hour),
			segmentBytes:     strconv.Itoa(128 << 20),
		})
	}
	stream := func(keep time.Duration) map[string]string {
		return with(map[string]string{cleanupPolicy: "delete", retention: ms(keep)})
	}
	input := stream(max(7*24*time.Hour, window.InputRetention()+24*time.Hour))
	if window.InputRetention() == 0 {
		input[retention] = "-1"
	}
	input[timestampAfter] = ms(mostTimestampAhead)
	return []Spec{
		{names.Events, Input, 0, true, false, input},
		{names.DeliveryTable, Table, 0, true, true, table()},
		{names.Tallies, Stream, 1, true, true, stream(24 * time.Hour)},
		{names.CountsTable, Table, 1, true, true, table()},
		{names.DeadLetters, Stream, 0, true, true, stream(30 * 24 * time.Hour)},
		{names.Summaries, Stream, 0, true, true, stream(7 * 24 * time.Hour)},
		{names.Control, Stream, 1, false, true, stream(24 * time.Hour)},
	}
}

func ms(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// WithSources returns the topics of a deployment that republishes sources, if
// there are any: it writes to its input too.
func WithSources(specs []Spec, sources []string) []Spec {
	specs = slices.Clone(specs)
	specs[0].Written = len(sources) > 0
	return specs
}

// ReadOnly returns those of the topics that a replica needs that only answers.
func ReadOnly(specs []Spec) []Spec {
	return slices.DeleteFunc(slices.Clone(specs), func(s Spec) bool { return s.Kind == Stream })
}
