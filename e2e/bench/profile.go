package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"deliverystat/e2e/replica"
)

// profileSeconds is how much of a run is profiled: a run on less than 1 M events
// may be over before.
const profileSeconds = 6

// startProfile takes profiles of r from when its admin server answers, if
// profiles are asked for. finish waits for it.
func (s *stage) startProfile(ctx context.Context, r *replica.Replica) (finish func() error) {
	if s.profiles == "" {
		return func() error { return nil }
	}
	done := make(chan error, 1)
	go func() { done <- s.profile(ctx, r, s.runs) }()
	return func() error { return <-done }
}

// profile writes a CPU profile and, from its end, an allocation profile.
func (s *stage) profile(ctx context.Context, r *replica.Replica, run int) error {
	if err := until(ctx, r.Process(), "the admin server", func() (bool, error) {
		a, err := r.GetAdmin(ctx, "/livez")
		return err == nil && a.Status == http.StatusOK, nil
	}); err != nil {
		return err
	}
	if err := os.MkdirAll(s.profiles, 0o750); err != nil {
		return fmt.Errorf("making the folder of profiles: %w", err)
	}
	for _, p := range []struct{ name, path string }{
		{"cpu", fmt.Sprintf("profile?seconds=%d", profileSeconds)},
		{"heap", "heap"},
	} {
		a, err := r.GetAdmin(ctx, "/debug/pprof/"+p.path)
		if err != nil {
			return fmt.Errorf("taking a %s profile: %w", p.name, err)
		}
		if a.Status != http.StatusOK {
			return fmt.Errorf("taking a %s profile: %d %s", p.name, a.Status, a.Body)
		}
		path := filepath.Join(s.profiles, fmt.Sprintf("%d-%s.pprof", run, p.name))
		if err := os.WriteFile(path, a.Body, 0o600); err != nil {
			return fmt.Errorf("writing a profile: %w", err)
		}
	}
	return nil
}
