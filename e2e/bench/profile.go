package main

import (
	"context"
	"errors"
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
	return func() error {
		return errors.Join(s.take(ctx, r, s.runs, "heap", "heap"), s.take(ctx, r, s.runs, "allocs", "allocs"), <-done)
	}
}

// profile writes a CPU profile of the first seconds.
func (s *stage) profile(ctx context.Context, r *replica.Replica, run int) error {
	if err := until(ctx, r.Process(), "the admin server", func() (bool, error) {
		a, err := r.GetAdmin(ctx, "/livez")
		return err == nil && a.Status == http.StatusOK, nil
	}); err != nil {
		return err
	}
	return s.take(ctx, r, run, "cpu", fmt.Sprintf("profile?seconds=%d", profileSeconds))
}

// take writes one profile to a file.
func (s *stage) take(ctx context.Context, r *replica.Replica, run int, name, path string) error {
	a, err := r.GetAdmin(ctx, "/debug/pprof/"+path)
	if err != nil {
		return fmt.Errorf("taking a %s profile: %w", name, err)
	}
	if a.Status != http.StatusOK {
		return fmt.Errorf("taking a %s profile: %d %s", name, a.Status, a.Body)
	}
	if err := os.MkdirAll(s.profiles, 0o750); err != nil {
		return fmt.Errorf("making the folder of profiles: %w", err)
	}
	if err := os.WriteFile(filepath.Join(s.profiles, fmt.Sprintf("%d-%s.pprof", run, name)), a.Body, 0o600); err != nil {
		return fmt.Errorf("writing a profile: %w", err)
	}
	return nil
}
