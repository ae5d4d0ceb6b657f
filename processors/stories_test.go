package processors_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/processors/market"
	"deliverystat/processors/processorstest"
)

var rewrite = flag.Bool("rewrite", false, "write what the stories in testdata tell now")

// TestStories tells the stories in testdata: what one partition makes of records
// that come one after the other. Each is also told to the reference model, which
// has to agree at every step.
//
// If this test fails after a change that is meant to change a story, run
//
//	go test ./processors -run TestStories -rewrite
//
// and inspect the diff of testdata. Commit it only if you can explain each line.
//
// A story is a sequence of commands, each with its input up to "----" and what
// it says up to the next empty line:
//
//	rules [lateness=10s] [abandon-after=60s] [terminal-skew=2s] [order=sequence] [dimensions=region,service]
//	    begins anew, with an empty partition under these settings
//	read
//	    takes in one record a line: TIME DELIVERY STATUS [arrives=TIME] [sequence=N] [event=ID] [region=R] [service=S];
//	    a record arrives at its event time or with the one before, whichever is later, unless it says when
//	rows
//	    lists the deliveries that are known
//	counts [SCOPE]
//	    lists the counts of a scope, of all deliveries by default
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			written, err := os.ReadFile(file)
			require.NoError(t, err)
			told := tell(t, string(written))
			if *rewrite {
				require.NoError(t, os.WriteFile(file, []byte(told), 0o644))
				return
			}
			if diff := cmp.Diff(strings.Split(string(written), "\n"), strings.Split(told, "\n")); diff != "" {
				t.Fatalf("%s (-written +told):\n%s", file, diff)
			}
		})
	}
}

// tell returns the story with what each command says now.
func tell(t *testing.T, story string) string {
	var out bytes.Buffer
	n := &narrator{t: t}
	n.begin(market.Rules{})
	lines := strings.Split(strings.TrimRight(story, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		fmt.Fprintln(&out, lines[i])
		if lines[i] == "" || strings.HasPrefix(lines[i], "#") {
			continue
		}
		command := strings.Fields(lines[i])
		var input []string
		for i++; i < len(lines) && lines[i] != "----"; i++ {
			fmt.Fprintln(&out, lines[i])
			input = append(input, lines[i])
		}
		require.Less(t, i, len(lines), "command %v has no ----", command)
		fmt.Fprintln(&out, "----")
		for i+1 < len(lines) && lines[i+1] != "" {
			i++ // what it said before
		}
		for _, said := range n.run(command, input) {
			fmt.Fprintln(&out, said)
		}
	}
	return out.String()
}

// narrator runs the commands of one story.
type narrator struct {
	t     *testing.T
	rules market.Rules
	*reader
	model   *market.Model
	decoder *codecs.Decoder
	arrived time.Time // timestamp of the last record
}

func (n *narrator) begin(rules market.Rules) {
	rules.Lifecycle = codecs.BuiltinLifecycle()
	if rules.Lateness == 0 {
		rules.Lateness = 24 * time.Hour
	}
	rules.MaxFuture = 10 * time.Minute
	n.rules = rules
	n.reader = newReader(settingsOf(rules))
	n.model = market.NewModel(rules)
	n.arrived = time.Time{}
}

func (n *narrator) run(command, input []string) []string {
	switch command[0] {
	case "rules":
		n.begin(n.parseRules(command[1:]))
		return []string{"ok"}
	case "read":
		var said []string
		for _, line := range input {
			said = append(said, n.tellRecord(line))
		}
		at := n.Stream()
		return append(said, fmt.Sprintf("clock %s, horizon %s", clockTime(at.Clock), clockTime(at.Horizon)))
	case "rows":
		return n.tellRows()
	case "counts":
		return n.tellCounts(strings.Join(command[1:], ""))
	}
	n.t.Fatalf("unknown command %v", command)
	return nil
}

func (n *narrator) parseRules(fields []string) market.Rules {
	var r market.Rules
	for _, f := range fields {
		name, value, _ := strings.Cut(f, "=")
		switch name {
		case "lateness":
			r.Lateness = n.parseDuration(value)
		case "abandon-after":
			r.AbandonAfter = n.parseDuration(value)
		case "terminal-skew":
			r.TerminalSkew = n.parseDuration(value)
		case "order":
			r.BySequence = value == "sequence"
		case "dimensions":
			for name := range strings.SplitSeq(value, ",") {
				d, ok := codecs.ParseAttribute(name)
				require.True(n.t, ok, f)
				r.Dimensions = append(r.Dimensions, d)
			}
		default:
			n.t.Fatalf("unknown rule %s", f)
		}
	}
	return r
}

func (n *narrator) parseDuration(s string) time.Duration {
	d, err := time.ParseDuration(s)
	require.NoError(n.t, err)
	return d
}

// parseTime reads a time of the day on which all stories happen.
func (n *narrator) parseTime(s string) time.Time {
	at, err := time.Parse(time.DateOnly+" "+time.TimeOnly, "2026-11-30 "+s)
	require.NoError(n.t, err)
	return at
}

func clockTime(at int64) string {
	if at == codecs.None {
		return "none"
	}
	return time.Unix(0, at).UTC().Format(time.TimeOnly)
}

// tellRecord takes in the record of a line, and says what became of it and of
// every delivery that it moved.
func (n *narrator) tellRecord(line string) string {
	fields := strings.Fields(line)
	require.GreaterOrEqual(n.t, len(fields), 3, "line %q", line)
	at := n.parseTime(fields[0])
	e := codecs.Event{DeliveryID: fields[1], RawStatus: fields[2], OccurredAt: at.UnixNano()}
	if at.After(n.arrived) {
		n.arrived = at
	}
	for _, f := range fields[3:] {
		name, value, _ := strings.Cut(f, "=")
		var err error
		switch name {
		case "arrives":
			n.arrived = n.parseTime(value)
		case "sequence":
			e.Sequence, err = strconv.ParseInt(value, 10, 64)
			e.Sequenced = true
		case "event":
			e.EventID = value
		default:
			a, ok := codecs.ParseAttribute(name)
			require.True(n.t, ok, "line %q", line)
			e.Attributes[a] = value
		}
		require.NoError(n.t, err, "line %q", line)
	}
	record := processorstest.Record{
		Key: e.DeliveryID, Value: market.Encode(&e, n.rules.Lifecycle), Timestamp: n.arrived,
	}
	before := n.statuses()
	verdict := n.read(record)[0]
	after := n.statuses()
	n.askModel(record, verdict.Result.String(), verdict.Reason, line)

	became := verdict.Result.String()
	if verdict.Reason != "" {
		became += " " + string(verdict.Reason)
	}
	said := fmt.Sprintf("%s %s %s: %s", fields[0], fields[1], fields[2], became)
	ids := map[string]bool{}
	for _, statuses := range []map[string]string{before, after} {
		for id := range statuses {
			ids[id] = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		switch from, to := before[id], after[id]; {
		case from == to:
		case from == "":
			said += fmt.Sprintf("; %s is %s", id, to)
		case to == "":
			said += fmt.Sprintf("; %s was %s and is forgotten", id, from)
		default:
			said += fmt.Sprintf("; %s was %s and is %s", id, from, to)
		}
	}
	return said
}

// statuses are those of all known deliveries.
func (n *narrator) statuses() map[string]string {
	state := n.state()
	statuses := map[string]string{}
	for id, scopes := range state.contributions(n.settings) {
		statuses[id] = scopes[""]
	}
	return statuses
}

// askModel tells the model of the record, and compares all it knows.
func (n *narrator) askModel(record processorstest.Record, result string, reason codecs.Reason, line string) {
	if n.decoder == nil {
		var err error
		n.decoder, err = codecs.NewDecoder(codecs.FormatAuto, n.rules.Lifecycle)
		require.NoError(n.t, err)
	}
	want := n.model.Apply(processorstest.Entries(n.decoder, []processorstest.Record{record})[0])
	require.Equal(n.t, string(want.Result), result, "line %q", line)
	require.Equal(n.t, want.Reason, reason, "line %q", line)
	require.Equal(n.t, n.model.Horizon, n.Stream().Horizon, "line %q", line)
	if diff := cmp.Diff(n.model.Rows(), n.deliveries()); diff != "" {
		n.t.Fatalf("after %q (-model +processors):\n%s", line, diff)
	}
}

func (n *narrator) deliveries() map[string]codecs.Delivery {
	at := n.Stream()
	progress := codecs.Progress{Clock: at.Clock, Horizon: at.Horizon, FirstRecord: at.FirstRecord, LastRecord: at.LastRecord}
	all := map[string]codecs.Delivery{}
	for id, row := range n.Rows() {
		if d, ok := n.settings.Deliver(id, row, &progress); ok {
			all[id] = d
		}
	}
	return all
}

func (n *narrator) tellRows() []string {
	var said []string
	all := n.deliveries()
	for _, id := range slices.Sorted(maps.Keys(all)) {
		d := all[id]
		s := fmt.Sprintf("%s %s since %s", id, n.rules.Lifecycle.Name(d.Status), clockTime(d.Since))
		if d.RawStatus != "" {
			s += " sent as " + d.RawStatus
		}
		for a, value := range d.Attributes {
			if value != "" {
				s += fmt.Sprintf(" %s=%s", codecs.Attribute(a), value)
			}
		}
		if d.Closed {
			s += " closed " + clockTime(d.ClosedAt)
		}
		s += ";"
		for _, times := range d.Timeline {
			s += fmt.Sprintf(" %s %s", n.rules.Lifecycle.Name(times.Status), clockTime(times.First))
			if times.Last != times.First {
				s += ".." + clockTime(times.Last)
			}
		}
		said = append(said, s)
	}
	if len(said) == 0 {
		return []string{"none"}
	}
	return said
}

func (n *narrator) tellCounts(scope string) []string {
	counts := n.state().Counts[scope]
	var live, closed []string
	for s := range n.rules.Lifecycle.Len() {
		info := n.rules.Lifecycle.Info(codecs.Status(s))
		if count := counts[info.Name]; count == 0 {
			continue
		} else if said := fmt.Sprintf("%s %d", info.Name, count); info.Terminal {
			closed = append(closed, said)
		} else {
			live = append(live, said)
		}
	}
	said := func(list []string) string {
		if len(list) == 0 {
			return "none"
		}
		return strings.Join(list, ", ")
	}
	return []string{"live: " + said(live), "closed: " + said(closed)}
}
