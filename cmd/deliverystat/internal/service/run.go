package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"deliverystat/cmd/deliverystat/internal/config"
	"deliverystat/cmd/deliverystat/internal/exit"
)

// part is something that runs until its context ends.
type part struct {
	name   string
	cancel context.CancelFunc
	done   chan struct{} // closed when it has ended
	err    error         // valid then
}

// start runs f as a part. It does not end with ctx, for parts are stopped in
// order. fail is called at once if it ends with an error.
func start(ctx context.Context, name string, fail func(), f func(context.Context) error) *part {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p := &part{name: name, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		if p.err = f(ctx); p.err != nil {
			fail()
		}
	}()
	return p
}

// stop ends the part, waits for it, not longer than timeout, and returns the
// error that it ended with.
func (p *part) stop(timeout time.Duration) error {
	p.cancel()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-p.done:
		return p.err
	case <-timer.C:
		return fmt.Errorf("stopping %s: not done after %v", p.name, timeout)
	}
}

// Run serves until ctx ends, and then stops in good order. It must be called
// once.
func (s *Service) Run(ctx context.Context) error {
	lock, err := lockStateDir(s.o.StateDir)
	if err != nil {
		return exit.With(exit.Usage, errors.Join(err, s.close()))
	}
	defer func() { _ = lock.Close() }() // which ends the lock
	s.log.Info("starting", "instance", s.o.Name(), "roles", s.o.Roles, "settings", s.o.Effective,
		"http_address", s.HTTPAddress(), "admin_address", s.AdminAddress())
	ctx, fail := context.WithCancel(ctx)
	defer fail()
	p := parts{admin: start(ctx, "admin server", fail, serve(s.adminServer, s.adminListener, adminGrace))}
	if s.httpServer != nil {
		p.api = start(ctx, "api", fail, serve(s.httpServer, s.httpListener, apiGrace))
	}
	partitions, err := s.prepare(ctx)
	if err == nil {
		err = s.startParts(ctx, &p, partitions, fail)
	}
	if err == nil {
		s.started.Store(true)
		<-ctx.Done()
	} else if ctx.Err() != nil {
		err = nil // stopped while it waited for Kafka
	}
	return errors.Join(err, s.stop(&p))
}

// parts are what a service runs.
type parts struct {
	admin, api     *part // api is nil without that role
	views, working []*part
}

func (s *Service) startParts(ctx context.Context, p *parts, partitions int32, fail func()) error {
	if s.views != nil {
		p.views = append(p.views, start(ctx, "views", fail, s.views.Run))
	}
	if !s.o.Has(config.RoleProcessors) {
		return nil
	}
	if err := s.prepareProcessors(partitions); err != nil {
		return err
	}
	for group, runtime := range s.allGroups() {
		p.working = append(p.working, start(ctx, "processor "+group, fail, func(ctx context.Context) error {
			if err := runtime.Run(ctx); err != nil {
				return s.explain(group, err)
			}
			return nil
		}))
	}
	return nil
}

// stop ends all parts in order. Each has its own bound, so that one that hangs
// is named and the others still end well.
func (s *Service) stop(p *parts) error {
	began := time.Now()
	s.draining.Store(true)
	s.log.Info("stopping")
	if s.started.Load() && s.o.DrainDelay > 0 {
		<-time.After(s.o.DrainDelay)
	}
	var errs []error
	if p.api != nil {
		s.api.Drain()
		errs = append(errs, p.api.stop(apiGrace+margin))
	}
	errs = append(errs, stopAll(p.working, processorGrace), stopAll(p.views, viewGrace), p.admin.stop(adminGrace+margin))
	err := errors.Join(errs...)
	s.log.Info("stopped", "duration", time.Since(began).Round(time.Millisecond))
	return err
}

// stopAll ends parts beside each other.
func stopAll(parts []*part, timeout time.Duration) error {
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for i, p := range parts {
		wg.Go(func() { errs[i] = p.stop(timeout) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// serve returns a part that serves HTTP. When it ends, requests under way may
// finish within grace; then they are cut.
func serve(server *http.Server, listener net.Listener, grace time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		ended := make(chan struct{})
		defer close(ended)
		shut := make(chan struct{})
		go func() {
			defer close(shut)
			select {
			case <-ctx.Done():
			case <-ended:
			}
			bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
			defer cancel()
			if server.Shutdown(bounded) != nil {
				_ = server.Close() // what is left is cut; there is nothing more to do
			}
		}()
		var err error
		if server.TLSConfig != nil {
			err = server.ServeTLS(listener, "", "")
		} else {
			err = server.Serve(listener)
		}
		if ctx.Err() != nil {
			<-shut
			return nil
		}
		return fmt.Errorf("serving HTTP on %s: %w", server.Addr, err)
	}
}
