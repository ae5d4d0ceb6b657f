package deadletters

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// shownBytes is how much of a key or value a table shows.
const shownBytes = 60

// Printer writes letters, one a line.
type Printer interface {
	Print(l *Letter) error
	// Close writes what is held back.
	Close() error
}

// NewJSON returns a printer of JSON lines.
func NewJSON(w io.Writer) Printer { return jsonLines{w} }

// NewTable returns a printer of a table for people.
func NewTable(w io.Writer) Printer {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	return &table{writer: t}
}

type jsonLines struct{ w io.Writer }

func (p jsonLines) Print(l *Letter) error {
	line, err := plain(l)
	if err == nil {
		_, err = p.w.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("printing dead letter %d/%d: %w", l.Partition, l.Offset, err)
	}
	return nil
}

func (jsonLines) Close() error { return nil }

type table struct {
	writer *tabwriter.Writer
	lines  int
}

func (p *table) Print(l *Letter) error {
	if p.lines == 0 {
		_, _ = fmt.Fprintln(p.writer, "REFUSED\tREASON\tRECORD\tKEY\tVALUE\tDETAIL") // errors show in Flush
	}
	p.lines++
	value := beginning(l.Value)
	if l.Incomplete != "" {
		value += " (incomplete)"
	}
	_, _ = fmt.Fprintf(p.writer, "%s\t%s\t%s/%d/%d\t%s\t%s\t%s\n", l.Time.Format(time.RFC3339Nano), l.Reason,
		l.Source.Topic, l.Source.Partition, l.Source.Offset, beginning(l.Key), value, l.Detail)
	if p.lines%1000 == 0 {
		return p.Close()
	}
	return nil
}

func (p *table) Close() error {
	if err := p.writer.Flush(); err != nil {
		return fmt.Errorf("printing dead letters: %w", err)
	}
	return nil
}

// beginning quotes the first bytes of b, so that nothing in it reaches a
// terminal as it is.
func beginning(b []byte) string {
	if len(b) <= shownBytes {
		return fmt.Sprintf("%q", b)
	}
	return fmt.Sprintf("%q…", b[:shownBytes])
}
