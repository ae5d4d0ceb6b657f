package service

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"deliverystat/api"
	"deliverystat/cmd/deliverystat/internal/config"
)

func (s *Service) adminHandler() http.Handler {
	return api.NewAdmin(api.AdminOptions{
		Started: func() []api.Check {
			return []api.Check{{Name: "topics_checked", OK: s.started.Load(), Detail: "waiting for Kafka"}}
		},
		Ready: s.readyChecks,
		Metrics: promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{
			EnableOpenMetrics: true, Registry: s.registry,
		}),
		Config:     map[string]any{"instance": s.o.Name(), "settings": s.o.Effective},
		Partitions: s.partitions,
		Logger:     s.log,
	})
}

// readyChecks says what must hold for requests to be sent here. Nothing that
// was true once becomes false again but by draining, warnings aside.
func (s *Service) readyChecks() []api.Check {
	checks := []api.Check{{Name: "not_draining", OK: !s.draining.Load(), Detail: "stopping"}}
	if s.views != nil {
		ready, reasons := s.views.Ready()
		checks = append(checks, api.Check{Name: "views_recovered", OK: ready, Detail: strings.Join(reasons, "; ")})
	}
	if s.o.Has(config.RoleProcessors) {
		faults := s.faults()
		checks = append(checks,
			api.Check{Name: "processors_recovered", OK: s.worked(), Detail: "no group generation was recovered yet"},
			api.Check{Name: "processors_working", OK: len(faults) == 0, Detail: strings.Join(faults, "; "), Warning: true})
	}
	for i := range checks {
		if checks[i].OK {
			checks[i].Detail = ""
		}
	}
	return checks
}

// faults says what ended the attempts of those groups that have not found back
// to work. Others may be able to work here meanwhile, and reads go on, so none
// is a reason to send no requests.
func (s *Service) faults() []string {
	var faults []string
	for group, runtime := range s.allGroups() {
		if err := runtime.Fault(); err != nil {
			faults = append(faults, "group "+group+": "+strings.Join(strings.Fields(err.Error()), " "))
		}
	}
	slices.Sort(faults)
	return faults
}

// worked reports whether both processors have been members of their groups and
// recovered all that they were assigned, once.
func (s *Service) worked() bool {
	if s.working.Load() {
		return true
	}
	groups := s.groups()
	if len(groups) == 0 {
		return false
	}
	for group, runtime := range groups {
		if !s.observer.hasJoined(group) {
			return false
		}
		for _, p := range runtime.Status() {
			if p.State != "running" {
				return false
			}
		}
	}
	s.working.Store(true)
	return true
}

// partition is one line of /partitions.
type partition struct {
	Group     string `json:"group"`
	Partition int32  `json:"partition"`
	Owner     string `json:"owner,omitempty"` // "" if kept for another, whom nobody here knows
	State     string `json:"state"`
	Position  int64  `json:"position"`            // next input offset
	Remaining int64  `json:"remaining,omitempty"` // changelog offsets left to recover; -1 if not known yet
}

// viewed is what the views of this replica reflect of one input partition.
type viewed struct {
	Partition int   `json:"partition"`
	Position  int64 `json:"position"`
	Lag       int64 `json:"lag_records"` // -1 if not known yet
}

// partitions describes the partitions that this replica owns or keeps for
// others, and what its views reflect of all.
func (s *Service) partitions() any {
	owned := []partition{}
	for group, runtime := range s.allGroups() {
		for _, p := range runtime.Status() {
			owned = append(owned, partition{group, p.Partition, s.o.Name(), p.State, p.Next, p.Remaining})
		}
		for _, p := range runtime.Standby() {
			owned = append(owned, partition{group, p.Partition, "", p.State, p.Next, p.Remaining})
		}
	}
	slices.SortFunc(owned, func(a, b partition) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Partition, b.Partition))
	})
	seen := []viewed{}
	if s.views != nil {
		if counts := s.views.Counts.Snapshot(); counts != nil {
			ends := s.views.Freshness.Ends(counts.Position)
			for p, next := range counts.Position.Next {
				v := viewed{p, next, -1}
				if p < len(ends) {
					v.Lag = ends[p].Lag
				}
				seen = append(seen, v)
			}
		}
	}
	return map[string]any{"partitions": owned, "views": seen}
}
