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

// startProfile takes a CPU profile of r from when its admin server answers, if
// profiles are asked for. finish waits for it.
func (s *stage) startProfile(ctx context.Context, r *replica.Replica) (finish func() error) {
	if s.profiles == "" {
		return func() error { return nil }
	}
	done := make(chan error, 1)
	go func() { done <- s.profile(ctx, r, fmt.Sprintf("%d.pprof", s.runs)) }()
	return func() error { return <-done }
}

func (s *stage) profile(ctx context.Context, r *replica.Replica, name string) error {
	if err := until(ctx, r.Process(), "the admin server", func() (bool, error) {
		a, err := r.GetAdmin(ctx, "/livez")
		return err == nil && a.Status == http.StatusOK, nil
	}); err != nil {
		return err
	}
	a, err := r.GetAdmin(ctx, fmt.Sprintf("/debug/pprof/profile?seconds=%d", profileSeconds))
	if err != nil {
		return fmt.Errorf("taking a profile: %w", err)
	}
	if a.Status != http.StatusOK {
		return fmt.Errorf("taking a profile: %d %s", a.Status, a.Body)
	}
	if err := os.MkdirAll(s.profiles, 0o750); err != nil {
		return fmt.Errorf("making the folder of profiles: %w", err)
	}
	if err := os.WriteFile(filepath.Join(s.profiles, name), a.Body, 0o600); err != nil {
		return fmt.Errorf("writing a profile: %w", err)
	}
	return nil
}
