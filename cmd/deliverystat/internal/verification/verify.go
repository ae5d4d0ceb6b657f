package verification

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/IBM/sarama"

	"deliverystat/codecs"
	"deliverystat/processors/audit"
)

// Finding is one count that is not what was counted again.
type Finding struct {
	Where string // who says so
	audit.Difference
}

// String says it in one line.
func (f Finding) String() string {
	scope := f.Scope
	if scope == "" {
		scope = "all"
	}
	return fmt.Sprintf("%s: %s %s: live %d, recounted %d; closed %d, recounted %d",
		f.Where, scope, f.Status, f.Got.Live, f.Want.Live, f.Got.Closed, f.Want.Closed)
}

// Report is what a verification found.
type Report struct {
	Findings   []Finding
	Deliveries audit.Count // recounted
	Position   codecs.Position
	Recounted  string // what was counted again
}

func (r *Report) add(where string, differences []audit.Difference) {
	for _, d := range differences {
		r.Findings = append(r.Findings, Finding{where, d})
	}
}

// Tables compares the table count-per-status with the rows of latest-delivery,
// and with a replay of the input if fromEvents. It begins anew while the tables
// can not be read as of one position.
func (s *Source) Tables(ctx context.Context, client sarama.Client, fromEvents bool) (*Report, error) {
	for {
		r, err := s.tables(ctx, client, fromEvents)
		if !errors.Is(err, errMissed) || ctx.Err() != nil {
			return r, err
		}
	}
}

func (s *Source) tables(ctx context.Context, client sarama.Client, fromEvents bool) (*Report, error) {
	told, err := s.Told(ctx)
	if err != nil {
		return nil, err
	}
	targets := make([]int64, len(told.Partitions))
	for p, known := range told.Partitions {
		targets[p] = known.Position
	}
	rows, err := s.Rows(ctx, targets)
	if err != nil {
		return nil, err
	}
	r := &Report{
		Deliveries: rows.Total().Deliveries(), Position: codecs.Position{Next: targets},
		Recounted: "rows of " + s.Topics.DeliveryTable,
	}
	r.add("totals of "+s.Topics.CountsTable+" against its contributions", told.Sum())
	r.compare(s, told, rows)
	if fromEvents {
		events, err := s.Events(ctx, client, targets, rows.Settings)
		if err != nil {
			return nil, err
		}
		r.Recounted += " and events of " + s.Topics.Events
		for p, part := range events.Parts {
			r.add(fmt.Sprintf("rows of partition %d against its events", p), audit.Compare(rows.Parts[p], part))
		}
		r.compare(s, told, events)
	}
	return r, nil
}

// compare notes where what the counts table says differs from a recount.
func (r *Report) compare(s *Source, told *audit.Told, recount *Recount) {
	r.add("totals of "+s.Topics.CountsTable, audit.Compare(told.Totals, recount.Total()))
	for p, part := range recount.Parts {
		r.add(fmt.Sprintf("contribution of partition %d", p), audit.Compare(told.Parts[int32(p)], part))
	}
}

// Replica compares the answers of a running replica with a recount: of all
// deliveries, and by each dimension that is counted.
func (s *Source) Replica(ctx context.Context, api *API, client sarama.Client, fromEvents bool) (*Report, error) {
	r := &Report{Recounted: "rows of " + s.Topics.DeliveryTable}
	if fromEvents {
		r.Recounted = "events of " + s.Topics.Events
	}
	recount, err := s.answer(ctx, api, "", r, client, fromEvents)
	if err != nil {
		return nil, err
	}
	r.Deliveries = recount.Total().Deliveries()
	for _, dimension := range recount.Settings.Dimensions {
		if _, err := s.answer(ctx, api, dimension.String(), r, client, fromEvents); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// answer compares one answer with a recount at its position.
func (s *Source) answer(ctx context.Context, api *API, by string, r *Report, client sarama.Client, fromEvents bool) (*Recount, error) {
	for {
		answer, err := api.Counts(ctx, by)
		if err != nil {
			return nil, err
		}
		recount, err := s.Rows(ctx, answer.Position.Next)
		if errors.Is(err, errMissed) && ctx.Err() == nil {
			continue
		}
		if err == nil && fromEvents {
			recount, err = s.Events(ctx, client, answer.Position.Next, recount.Settings)
		}
		if err != nil {
			return nil, err
		}
		r.Position = answer.Position
		r.add("answer of "+api.URL, audit.Compare(answer.Counts, scopes(recount.Total(), by)))
		return recount, nil
	}
}

// scopes returns the counts of all deliveries, or by one dimension.
func scopes(counts audit.Counts, by string) audit.Counts {
	out := audit.Counts{}
	for scope, statuses := range counts {
		if by == "" && scope == "" || by != "" && strings.HasPrefix(scope, by+"=") {
			out[scope] = statuses
		}
	}
	return out
}
