package processors

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"
	"unsafe"

	"deliverystat/codecs"
	"deliverystat/processors/exactlyonce"
)

// LatestDeliveryConfig describes the first stage in one process.
type LatestDeliveryConfig struct {
	// Runtime says how to run; Group and NewState are set by
	// NewLatestDelivery. Client.Hasher is the key hash of the input's
	// producers.
	Runtime  exactlyonce.Config
	Topics   Topics
	Settings *Settings
	Decoder  *codecs.Decoder
	Metrics  *Metrics // default: counted and not exported
	Sources  []string // topics that [NewNormalize] republishes to the input, if any

	// AcceptNewMeaning lets the processor work on a table that was written
	// with other settings. All processors must have been stopped.
	AcceptNewMeaning bool

	AuditEvery      time.Duration    // how often each partition's rows are recounted; 0 is never
	FullTallyEvery  time.Duration    // default 6h: a quarter of the retention of the tallies
	DeletesPerEpoch int              // deletes of forgotten rows per partition; default 5,000
	ReadsPerEpoch   int              // rows read for the summaries of what the clock closed, per partition; default 500
	CachedRows      int              // rows kept in memory by a process that owns every partition; default 100,000
	Now             func() time.Time // when to audit and to repeat tallies, and how late events are; default time.Now

	drifts *drifts // of all states of the process
}

func (c *LatestDeliveryConfig) complete() error {
	var errs []error
	if c.Settings == nil {
		errs = append(errs, errors.New("latest-delivery: Settings are required"))
	}
	if c.Decoder == nil {
		errs = append(errs, errors.New("latest-delivery: Decoder is required"))
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if c.Runtime.Client.Hasher == "" {
		c.Runtime.Client.Hasher = exactlyonce.Murmur2
	}
	if c.Runtime.Logger == nil {
		c.Runtime.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Metrics == nil {
		c.Metrics = NewMetrics(nil, c.Settings.Lifecycle)
	}
	if c.FullTallyEvery == 0 {
		c.FullTallyEvery = 6 * time.Hour
	}
	if c.DeletesPerEpoch == 0 {
		c.DeletesPerEpoch = 5_000
	}
	if c.ReadsPerEpoch == 0 {
		c.ReadsPerEpoch = 500
	}
	if c.CachedRows == 0 {
		c.CachedRows = 100_000
	}
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // for repeats of tallies and for metrics; no decision takes it
	}
	if c.drifts == nil {
		c.drifts = newDrifts()
	}
	return nil
}

// NewLatestDelivery prepares the first stage: from events to one row per
// delivery, and one tally per epoch and partition. Its Run returns a
// *SettingsError if the table was written with other settings.
func NewLatestDelivery(cfg LatestDeliveryConfig) (*exactlyonce.Runtime, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	cfg.Runtime.Group = cfg.Topics.DeliveryGroup
	for _, source := range cfg.Sources {
		cfg.Runtime.InputWriters = append(cfg.Runtime.InputWriters, cfg.Topics.NormalizeGroup(source))
	}
	cfg.Runtime.NewState = func(int32) exactlyonce.State { return newDeliveryState(&cfg) }
	return exactlyonce.New(cfg.Runtime, cfg.Topics.latestDelivery)
}

// deliveryState is one partition of the first stage during one assignment.
type deliveryState struct {
	*partition
	cfg        *LatestDeliveryConfig
	log        *slog.Logger
	assignment *exactlyonce.Assignment
	topicID    string
	next       int64 // next offset to consume
	position   int64 // greatest next ever reflected in topicID

	tellAll bool      // the next cut tells all counts
	toldAll time.Time // when a full tally was last told
	settle  bool      // the next cut writes all deletes that are owed
	audit   selfAudit
	headers []*exactlyonce.Header // of the current record
	record  codecs.Record
	decoded codecs.Decoded
}

func newDeliveryState(cfg *LatestDeliveryConfig) *deliveryState {
	d := &deliveryState{
		cfg:     cfg,
		log:     cfg.Runtime.Logger.With("group", cfg.Topics.DeliveryGroup),
		tellAll: true,
	}
	d.record.Headers = func() []codecs.Header { return decodedHeaders(d.headers) }
	return d
}

// consume is the callback for each record of the input.
func (d *deliveryState) consume(r *exactlyonce.Record) error {
	d.next = r.Offset + 1
	d.position = max(d.position, d.next)
	d.running.consumed = true

	d.headers = r.Headers
	d.record.Key = unsafe.String(unsafe.SliceData(r.Key), len(r.Key)) //nolint:gosec // as long as r, and not changed
	d.record.Value, d.record.Timestamp = r.Value, unixNano(r.Timestamp)
	d.cfg.Decoder.Decode(&d.record, &d.decoded)
	verdict, err := d.read(&d.record, &d.decoded, d.misplaced(r))
	if err != nil {
		return err
	}
	if verdict.Reason != "" {
		d.running.letters = append(d.running.letters, letterOf(r, verdict))
	}
	return nil
}

// misplaced reports whether the record's key belongs to another partition. The
// raw key decides: that is what the producer's hash was of.
func (d *deliveryState) misplaced(r *exactlyonce.Record) bool {
	return d.cfg.Runtime.Client.Hasher.Partition(r.Key, d.assignment.Partitions) != r.Partition
}

// decodedHeaders are the headers of a record as the decoder takes them.
func decodedHeaders(all []*exactlyonce.Header) []codecs.Header {
	headers := make([]codecs.Header, len(all))
	for i, h := range all {
		headers[i] = codecs.Header{Key: string(h.Key), Value: h.Value}
	}
	return headers
}

// committedRow reads a row of the table.
func (d *deliveryState) committedRow(key string) ([]byte, error) {
	value, err := d.assignment.Get(key)
	if err != nil {
		return nil, fmt.Errorf("reading a row of partition %d: %w", d.assignment.Partition, err)
	}
	if value == nil {
		return nil, fmt.Errorf("reading a row of partition %d: it is indexed and not in the table", d.assignment.Partition)
	}
	return value, nil
}

// Cut implements exactlyonce.State.
func (d *deliveryState) Cut() exactlyonce.Epoch {
	now := d.cfg.Now()
	found, err := d.audit.found()
	if err != nil {
		return failedEpoch{err}
	}
	full := d.tellAll || now.Sub(d.toldAll) >= d.cfg.FullTallyEvery
	tell := full || d.running.consumed || found != nil
	check := !full && d.audit.begins(now)
	if !tell && !check && !d.graves.pending() && len(d.owing) == 0 {
		return nil
	}
	deletes, reads := d.cfg.DeletesPerEpoch, d.cfg.ReadsPerEpoch
	if d.settle {
		deletes, reads, d.settle = math.MaxInt, math.MaxInt, false
	}
	ep, err := d.cut(deletes, reads)
	if err != nil {
		return failedEpoch{err}
	}
	ep.progress = d.progress()
	if tell {
		ep.tally = d.tell(full)
		if found != nil {
			ep.tally.Audited, ep.tally.Drift = found.At, found.Rows
		}
	}
	if check { // behind what this epoch changed, so that nothing is left to change
		ep.check = d.tell(true)
		ep.check.Check = true
		d.audit.counted = ep.check.Scopes
	}
	if full || check {
		d.tellAll, d.toldAll = false, now
	}
	return deliveryEpoch{ep, d.settings, &d.cfg.Topics}
}

// tell returns the tally of the present state.
func (d *deliveryState) tell(full bool) *codecs.Tally {
	return &codecs.Tally{
		Partition:    d.assignment.Partition,
		TopicID:      d.topicID,
		Full:         full,
		Position:     d.position,
		Clock:        d.stream.Clock,
		Horizon:      d.stream.Horizon,
		SettingsHash: d.settings.Hash(),
		Scopes:       d.tally.cut(full),
		Audited:      codecs.None,
	}
}

// progress is the progress row of the present state.
func (d *deliveryState) progress() *codecs.Progress {
	return &codecs.Progress{
		TopicID:     d.topicID,
		Next:        d.next,
		Position:    d.position,
		Clock:       d.stream.Clock,
		Horizon:     d.stream.Horizon,
		FirstRecord: d.stream.FirstRecord,
		LastRecord:  d.stream.LastRecord,
		Settings:    d.settings.Values(),
	}
}

// Committed implements exactlyonce.State.
func (d *deliveryState) Committed() {
	if d.frozen == nil {
		return
	}
	d.cfg.Metrics.add(&d.frozen.stats, d.cfg.Now())
	d.committed()
	d.audit.committed(d.assignment)
}

// unixNano is t as decisions use it: codecs.None for a record without a
// timestamp, and within the range of times whatever a producer wrote.
func unixNano(t time.Time) int64 {
	const most = math.MaxInt64 / int64(time.Millisecond)
	switch ms := t.UnixMilli(); {
	case t.IsZero() || ms < 0:
		return codecs.None
	case ms > most:
		return math.MaxInt64
	default:
		return t.UnixNano()
	}
}
