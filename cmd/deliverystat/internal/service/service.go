package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/prometheus/client_golang/prometheus"

	"deliverystat/api"
	"deliverystat/cmd/deliverystat/internal/config"
	"deliverystat/cmd/deliverystat/internal/exit"
	"deliverystat/codecs"
	"deliverystat/processors"
	"deliverystat/processors/exactlyonce"
	"deliverystat/views"
)

// Service is one replica.
type Service struct {
	o        Options
	log      *slog.Logger
	topics   processors.Topics
	settings *processors.Settings
	decoder  *codecs.Decoder
	registry *prometheus.Registry
	observer *observer
	counted  *processors.Metrics // nil without the role processors

	republished *processors.SourceMetrics // nil without sources

	views *views.Replica // nil without the role api
	api   *api.API       // nil without the role api

	httpListener, adminListener net.Listener
	httpServer, adminServer     *http.Server

	started  atomic.Bool // topics are checked, views and processors run
	draining atomic.Bool
	working  atomic.Bool // the processors have recovered once

	mu       sync.Mutex
	runtimes map[string]*exactlyonce.Runtime // by group
	sources  map[string]*exactlyonce.Runtime // by group; they republish
}

// New wires a service and occupies its addresses. It talks to nobody. ctx bounds
// the look-up of host names.
func New(ctx context.Context, o Options) (*Service, error) {
	s := &Service{
		o: o, log: o.Logger, topics: o.Topics(), settings: o.Settings(o.Lifecycle()),
		registry: prometheus.NewRegistry(), runtimes: map[string]*exactlyonce.Runtime{}, sources: map[string]*exactlyonce.Runtime{},
	}
	var err error
	if s.decoder, err = o.Decoder(); err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	s.settings.Mapping = s.decoder.Mapping()
	s.metrics()
	if err := s.readers(); err != nil {
		return nil, err
	}
	if err := s.listen(ctx); err != nil {
		return nil, exit.With(exit.Usage, errors.Join(err, s.close()))
	}
	return s, nil
}

// readers wires views and API.
func (s *Service) readers() (err error) {
	if !s.o.Has(config.RoleAPI) {
		return nil
	}
	s.views, err = views.New(views.Config{
		Client: s.o.Client, Topics: s.topics, Settings: s.settings, StateDir: s.o.StateDir, Logger: s.log,
	})
	if err != nil {
		return err
	}
	var tokens *api.Tokens
	if s.o.APITokenFile != "" {
		if tokens, err = api.NewTokens(s.o.APITokenFile, s.log); err != nil {
			return exit.With(exit.Usage, fmt.Errorf("--api-token-file: %w", err))
		}
	}
	stuck, err := s.o.Stuck(s.settings.Lifecycle)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	s.api, err = api.New(api.Options{
		Counts: s.views.Counts, Deliveries: s.views.Deliveries, Freshness: s.views.Freshness,
		Lifecycle: s.settings.Lifecycle, Dimensions: s.o.Dimensions, ClosedWindow: s.settings.Lateness,
		StaleAfter: s.o.StaleAfter, MaxStaleness: s.o.MaxStaleness, Replica: s.o.Name(), StuckAfter: stuck,
		Tokens: tokens, Registerer: s.registry, Logger: s.log,
	})
	if err != nil {
		return err
	}
	s.registry.MustRegister(views.NewCollector(views.CollectorConfig{
		Replica: s.views, Lifecycle: s.settings.Lifecycle, Dimensions: s.settings.Dimensions,
		StuckAfter: stuck, MaxStaleness: s.o.MaxStaleness,
	}))
	return nil
}

// HTTPAddress returns the address that the API listens on, "" if there is none.
func (s *Service) HTTPAddress() string { return address(s.httpListener) }

// AdminAddress returns the address that the admin server listens on.
func (s *Service) AdminAddress() string { return address(s.adminListener) }

func address(l net.Listener) string {
	if l == nil {
		return ""
	}
	return l.Addr().String()
}

// Gather returns the present metrics of the service.
func (s *Service) Gather() prometheus.Gatherer { return s.registry }

// FirstDelivery returns the least ID of any live delivery, or false while there
// is none.
func (s *Service) FirstDelivery(ctx context.Context) (id string, ok bool) {
	page, ready := s.views.Deliveries.List(ctx, &codecs.LiveQuery{Limit: 1})
	if !ready || len(page.Deliveries) == 0 {
		return "", false
	}
	return page.Deliveries[0].ID, true
}

// Ready reports whether the service has recovered and does not stop.
func (s *Service) Ready() bool {
	for _, c := range s.readyChecks() {
		if !c.OK && !c.Warning {
			return false
		}
	}
	return true
}

// prepareProcessors wires the processors, once the input's partitions are known.
func (s *Service) prepareProcessors(partitions int32) error {
	base := exactlyonce.Config{
		Client: s.o.Client, Instance: s.o.Name(), StateDir: filepath.Join(s.o.StateDir, "processors"),
		Standby: s.o.Standby, SessionTimeout: s.o.SessionTimeout, CommitInterval: s.o.CommitInterval,
		Observer: s.observer, Logger: s.log,
	}
	deliveries, err := processors.NewLatestDelivery(processors.LatestDeliveryConfig{
		Runtime: base, Topics: s.topics, Settings: s.settings, Decoder: s.decoder,
		Metrics: s.counted, Sources: s.o.Deployment().Sources, AcceptNewMeaning: s.o.AcceptNewMeaning,
		AuditEvery: s.o.AuditInterval,
	})
	if err != nil {
		return err
	}
	counts, err := processors.NewCountPerStatus(processors.CountPerStatusConfig{
		Runtime: base, Topics: s.topics, InputPartitions: partitions,
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runtimes[s.topics.DeliveryGroup], s.runtimes[s.topics.CountsGroup] = deliveries, counts
	return s.prepareSources(base)
}

// prepareSources wires what republishes the sources.
func (s *Service) prepareSources(base exactlyonce.Config) error {
	for _, source := range s.o.SourceList() {
		decoder, err := s.o.SourceDecoder(source)
		if err != nil {
			return err
		}
		runtime, err := processors.NewNormalize(processors.NormalizeConfig{
			Runtime: base, Topics: s.topics, Source: source.Topic, Settings: s.settings,
			Decoder: decoder, Metrics: s.republished,
		})
		if err != nil {
			return err
		}
		s.sources[s.topics.NormalizeGroup(source.Topic)] = runtime
	}
	return nil
}

// groups returns the runtimes that make the counts, by group.
func (s *Service) groups() map[string]*exactlyonce.Runtime {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.runtimes)
}

// allGroups returns all runtimes, by group. One that republishes a source may be
// without its topic, and does not stop the others.
func (s *Service) allGroups() map[string]*exactlyonce.Runtime {
	all := s.groups()
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(all, s.sources)
	return all
}

// explain gives an error of a processor its exit code and a way out.
func (s *Service) explain(group string, err error) error {
	var settings *processors.SettingsError
	switch {
	case errors.As(err, &settings):
		return exit.With(exit.Usage, fmt.Errorf(
			"processor %s: %w; start with the settings of the table, or stop every processor and start one with --accept-new-meaning", group, settings))
	case errors.Is(err, sarama.ErrInvalidSessionTimeout):
		return exit.With(exit.Usage, fmt.Errorf(
			"--session-timeout=%v lies outside of what the brokers allow: see their group.min.session.timeout.ms and group.max.session.timeout.ms", s.o.SessionTimeout))
	case errors.Is(err, exactlyonce.ErrFencedInstance):
		return fmt.Errorf("processor %s: %w: every replica needs an --instance-id of its own, and this one uses %q", group, err, s.o.Name())
	default:
		return fmt.Errorf("processor %s: %w", group, err)
	}
}

// listen occupies the addresses, so that a taken one is known at once.
func (s *Service) listen(ctx context.Context) (err error) {
	open := func(flag, address string) (net.Listener, error) {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", flag, err)
		}
		return l, nil
	}
	if s.adminListener, err = open("admin-address", s.o.AdminAddress); err != nil {
		return err
	}
	s.adminServer = api.NewAdminServer(s.o.AdminAddress, s.adminHandler(), s.log)
	if s.api == nil {
		return nil
	}
	if s.httpListener, err = open("http-address", s.o.HTTPAddress); err != nil {
		return err
	}
	s.httpServer = api.NewServer(s.o.HTTPAddress, s.api, s.log)
	if s.o.HTTPTLSCertFile != "" {
		if s.httpServer.TLSConfig, err = api.NewTLS(s.o.HTTPTLSCertFile, s.o.HTTPTLSKeyFile, s.log); err != nil {
			return fmt.Errorf("--http-tls-cert-file, --http-tls-key-file: %w", err)
		}
	}
	if s.o.APITokenFile == "" && !loopback(s.httpListener.Addr()) {
		s.log.Warn("the API answers everybody who reaches it; --api-token-file restricts it", "address", s.HTTPAddress())
	}
	return nil
}

func loopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// close gives up the addresses of a service that never ran.
func (s *Service) close() error {
	var errs []error
	for _, l := range []net.Listener{s.httpListener, s.adminListener} {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(errs...)
}

// What each part may take to stop: less than 10 s together, which is what
// container runtimes give by default. Whatever is cut short is as after a
// crash: nothing is lost by it.
const (
	apiGrace       = time.Second
	processorGrace = 5 * time.Second
	viewGrace      = 1500 * time.Millisecond
	adminGrace     = 500 * time.Millisecond
	margin         = 500 * time.Millisecond // for servers that cut what is left
)

// MostToStop is how long [Service.Run] takes at most after its context ended,
// the drain delay left out. A longer grace is of no use to anybody.
const MostToStop = apiGrace + margin + processorGrace + viewGrace + adminGrace + margin
