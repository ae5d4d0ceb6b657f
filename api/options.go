package api

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"deliverystat/codecs"
)

// MaxWait is the longest time that a request may ask to wait for a position.
const MaxWait = 30 * time.Second

// DefaultMaxInFlight is the number of requests served at the same time unless
// Options say otherwise. A request reads memory only, so that many in flight
// means that the process is starved, not that they are slow.
const DefaultMaxInFlight = 512

// DefaultMaxStreams is the number of streams served at the same time unless
// Options say otherwise: each takes some tens of kilobytes.
const DefaultMaxStreams = 10_000

// Options are what the API needs.
type Options struct {
	Counts     Counts
	Deliveries Deliveries
	Freshness  Freshness

	Lifecycle    *codecs.Lifecycle
	Dimensions   []string      // counted dimensions, in configured order: "region", "service"
	ClosedWindow time.Duration // how long closed deliveries are kept: --allowed-lateness
	StaleAfter   time.Duration // beyond this staleness an answer says stale: true
	MaxStaleness time.Duration // beyond this staleness the stream says unavailable
	Replica      string        // the name of this process in as_of

	// StuckAfter is how long a delivery may be in a live status; those without an
	// entry have no limit.
	StuckAfter map[codecs.Status]time.Duration

	Tokens      *Tokens               // nil: no authentication
	MaxInFlight int                   // 0: DefaultMaxInFlight; as many again may wait for a position
	MaxStreams  int                   // 0: DefaultMaxStreams
	Registerer  prometheus.Registerer // nil: no metrics
	Logger      *slog.Logger          // nil: no logs
}

var dimensionName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// reservedParameters returns the query parameters that no dimension may be
// named after.
func reservedParameters() []string {
	return slices.Concat([]string{paramBy}, listing(), consistency())
}

// validate reports everything that is wrong with o, and sets defaults.
func (o *Options) validate() error {
	var errs []error
	if o.Counts == nil || o.Deliveries == nil || o.Freshness == nil {
		errs = append(errs, errors.New("api: Counts, Deliveries and Freshness are required"))
	}
	if o.Lifecycle == nil {
		errs = append(errs, errors.New("api: Lifecycle is required"))
	}
	for i, d := range o.Dimensions {
		switch {
		case !dimensionName.MatchString(d):
			errs = append(errs, fmt.Errorf("dimension %q: a name is %s", d, dimensionName))
		case slices.Contains(reservedParameters(), d):
			errs = append(errs, fmt.Errorf("dimension %q: the name is a query parameter of the API", d))
		case slices.Contains(o.Dimensions[:i], d):
			errs = append(errs, fmt.Errorf("dimension %q: given twice", d))
		}
	}
	if o.StaleAfter <= 0 || o.MaxStaleness <= 0 || o.ClosedWindow <= 0 {
		errs = append(errs, errors.New("api: StaleAfter, MaxStaleness and ClosedWindow must be positive"))
	}
	if o.MaxInFlight < 0 || o.MaxStreams < 0 {
		errs = append(errs, fmt.Errorf("api: MaxInFlight is %d, MaxStreams %d", o.MaxInFlight, o.MaxStreams))
	}
	o.MaxInFlight = cmp.Or(o.MaxInFlight, DefaultMaxInFlight)
	o.MaxStreams = cmp.Or(o.MaxStreams, DefaultMaxStreams)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return errors.Join(errs...)
}
