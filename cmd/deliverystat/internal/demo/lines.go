package demo

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/IBM/sarama"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"deliverystat/cmd/deliverystat/internal/service"
	"deliverystat/cmd/deliverystat/internal/simulation"
	"deliverystat/codecs"
	"deliverystat/processors"
	"deliverystat/processors/exactlyonce"
)

// maxLine bounds one line: about what a record may be.
const maxLine = 1 << 20

// produceLines sends each line of Events as one record, keyed by the delivery
// ID that it names, and says what became of them.
func (o *Options) produceLines(ctx context.Context, s *service.Service, client exactlyonce.ClientConfig) error {
	decoder, err := o.Decoder()
	if err != nil {
		return err
	}
	lines := lineNumbers{}
	producer, err := simulation.NewProducer(client, o.Topics().Events, lines.add)
	if err != nil {
		return err
	}
	unknown := unknownStatuses{decoder: decoder.AnyKey(), counts: map[string]int{}}
	err = sendLines(ctx, o.Events, decoder, producer, simulation.NewPace(o.Rate), unknown.add)
	if err = errors.Join(err, producer.Close()); err != nil {
		return err
	}
	read := func() bool { return sum(results(s.Gather())) >= producer.Sent() }
	if err := await(ctx, read); err != nil {
		return err
	}
	letters, err := readAll(ctx, client, o.Topics().DeadLetters)
	if err != nil {
		return err
	}
	if err := report(o.Out, results(s.Gather()), refusals(letters, lines)); err != nil {
		return err
	}
	return unknown.report(o.Out)
}

// unknownStatuses counts the events whose status the profile does not know, by
// the name that they carry.
type unknownStatuses struct {
	decoder *codecs.Decoder
	counts  map[string]int
}

func (u *unknownStatuses) add(value []byte) {
	var decoded codecs.Decoded
	u.decoder.Decode(&codecs.Record{Value: value, Timestamp: time.Now().UnixNano()}, &decoded)
	if decoded.Outcome == codecs.IsEvent && decoded.Event.Status == 0 && decoded.Event.RawStatus != "" {
		u.counts[decoded.Event.RawStatus]++
	}
}

// report names the most frequent ones, and what mends it.
func (u *unknownStatuses) report(w io.Writer) error {
	if len(u.counts) == 0 {
		return nil
	}
	const most = 20
	names := slices.SortedFunc(maps.Keys(u.counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(u.counts[b], u.counts[a]), cmp.Compare(a, b))
	})
	var b bytes.Buffer
	fmt.Fprintf(&b, "Statuses that are not known count as %s (%d of them); a profile gives them a meaning (--profile, see profile check):\n",
		codecs.UnknownName, len(names))
	for _, name := range names[:min(len(names), most)] {
		fmt.Fprintf(&b, "    %q: %d\n", name, u.counts[name])
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("printing unknown statuses: %w", err)
	}
	return nil
}

// sendLines sends the lines of r that are not blank, and tells each.
func sendLines(
	ctx context.Context, r io.Reader, decoder *codecs.Decoder, to *simulation.Producer, pace *simulation.Pace, tell func(value []byte),
) error {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, maxLine)
	for number := int64(1); scanner.Scan(); number++ {
		line := bytes.TrimSpace(scanner.Bytes())
		if len(line) == 0 {
			continue
		}
		if err := pace.Wait(ctx); err != nil {
			return err
		}
		record := simulation.Record{Value: bytes.Clone(line), Tag: number}
		if id, ok := decoder.DeliveryID(line); ok {
			record.Key = []byte(id)
		}
		if err := to.Send(ctx, record); err != nil {
			return err
		}
		tell(record.Value)
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("reading events: %w", err)
	}
	return nil
}

// lineNumbers says which line a record came from, by partition and offset.
type lineNumbers map[int32]map[int64]int64

func (l lineNumbers) add(partition int32, offset, line int64) {
	if l[partition] == nil {
		l[partition] = map[int64]int64{}
	}
	l[partition][offset] = line
}

// refusal is what the dead letters say of one reason.
type refusal struct {
	count  int
	line   int64 // the first
	detail string
}

func refusals(letters []*sarama.ConsumerMessage, lines lineNumbers) map[string]refusal {
	all := map[string]refusal{}
	for _, m := range letters {
		headers := map[string]string{}
		for _, h := range m.Headers {
			headers[string(h.Key)] = string(h.Value)
		}
		partition, _ := strconv.ParseInt(headers[processors.HeaderPartition], 10, 32) // written by us
		offset, _ := strconv.ParseInt(headers[processors.HeaderOffset], 10, 64)       // as above
		line := lines[int32(partition)][offset]
		r := all[headers[processors.HeaderReason]]
		if r.count++; r.line == 0 || line < r.line {
			r.line, r.detail = line, headers[processors.HeaderMessage]
		}
		all[headers[processors.HeaderReason]] = r
	}
	return all
}

// report says what became of the lines.
func report(w io.Writer, results map[string]int64, refused map[string]refusal) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d events read:\n", sum(results))
	for _, result := range []string{"applied", "duplicate", "stale", "ignored", "dead_letter"} {
		fmt.Fprintf(&b, "  %-12s %d\n", result, results[result])
	}
	reasons := slices.Collect(maps.Keys(refused))
	slices.SortFunc(reasons, func(a, b string) int {
		return cmp.Or(cmp.Compare(refused[b].count, refused[a].count), cmp.Compare(a, b))
	})
	for _, reason := range reasons {
		r := refused[reason]
		fmt.Fprintf(&b, "    %s: %d, the first in line %d: %s\n", reason, r.count, r.line, r.detail)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("printing what became of the events: %w", err)
	}
	return nil
}

// results returns how many events had each result.
func results(from prometheus.Gatherer) map[string]int64 {
	out := map[string]int64{}
	families, _ := from.Gather() // what can be gathered is returned in any case
	i := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == "deliverystat_events_total" })
	if i < 0 {
		return out
	}
	for _, m := range families[i].GetMetric() {
		for _, l := range m.GetLabel() {
			out[l.GetValue()] = int64(m.GetCounter().GetValue())
		}
	}
	return out
}

func sum(results map[string]int64) (total int64) {
	for _, n := range results {
		total += n
	}
	return total
}
