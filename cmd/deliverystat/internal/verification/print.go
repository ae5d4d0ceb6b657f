package verification

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"deliverystat/codecs"
	"deliverystat/processors/audit"
)

// Print writes x for people: a table of what happened, the row, and whether the
// table agrees.
func (x *Explained) Print(w io.Writer) error {
	var b bytes.Buffer // writing to it does not fail
	fmt.Fprintf(&b, "delivery %s in partition %d of %s, read from offset %d to position %d, with the settings of the table\n",
		x.ID, x.Partition, x.Topic, x.Start, x.End)
	if x.Unjudged != "" {
		fmt.Fprintf(&b, "note: %s\n", x.Unjudged)
	}
	if len(x.Steps) == 0 {
		fmt.Fprintf(&b, "no record of it (if a converter wraps the keys, name its --partition)\n")
	} else {
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0) // fails only where b does
		_, _ = fmt.Fprintln(t, "OFFSET\tRECORDED\tOCCURRED\tSTATUS\tEVENT\tWHAT\tWHY")
		for i := range x.Steps {
			x.printStep(t, &x.Steps[i])
		}
		_ = t.Flush()
	}
	x.printRow(&b)
	switch {
	case x.Unjudged != "":
		fmt.Fprintf(&b, "not compared with the table, which reflects position %d\n", x.Position)
	case x.Difference != "":
		fmt.Fprintf(&b, "the table differs at position %d: %s\n", x.Position, x.Difference)
	default:
		fmt.Fprintf(&b, "the table agrees at position %d\n", x.Position)
	}
	_, err := b.WriteTo(w)
	if err != nil {
		return fmt.Errorf("printing the explanation: %w", err)
	}
	return nil
}

func (x *Explained) printStep(w io.Writer, s *audit.Step) {
	recorded, occurred, status, event := "", "", "", ""
	if s.Own {
		recorded, occurred, status, event = shown(s.Recorded), "-", "-", "-"
	}
	if e := s.Event; e != nil {
		occurred, status = shown(e.OccurredAt), x.Lifecycle.Name(e.Status)
		if e.RawStatus != "" {
			status += " (" + e.RawStatus + ")"
		}
		if e.EventID != "" {
			event = e.EventID
		}
	}
	what := s.What
	if s.What == "refused" {
		what += ": " + string(s.Reason)
	}
	_, _ = fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", s.Offset, recorded, occurred, status, event, what, s.Why)
}

func (x *Explained) printRow(b *bytes.Buffer) {
	d, ok := x.Delivery()
	if !ok {
		b.WriteString("row: none\n")
		return
	}
	fmt.Fprintf(b, "row: %s since %s", x.Lifecycle.Name(d.Status), shown(d.Since))
	if d.Closed {
		fmt.Fprintf(b, ", closed at %s", shown(d.ClosedAt))
	}
	b.WriteString("\n  timeline:")
	for i, t := range d.Timeline {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(b, " %s %s", x.Lifecycle.Name(t.Status), shown(t.First))
		if t.Last != t.First {
			fmt.Fprintf(b, " to %s", shown(t.Last))
		}
	}
	b.WriteString("\n")
	var attributes []string
	for a, value := range d.Attributes {
		if value != "" {
			attributes = append(attributes, codecs.Attribute(a).String()+"="+value)
		}
	}
	if len(attributes) > 0 {
		fmt.Fprintf(b, "  attributes: %s\n", strings.Join(attributes, ", "))
	}
}

// shown is a time for people.
func shown(t int64) string {
	if t == codecs.None {
		return "none"
	}
	return time.Unix(0, t).UTC().Format(time.RFC3339Nano)
}
