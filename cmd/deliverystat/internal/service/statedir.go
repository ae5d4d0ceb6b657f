package service

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockStateDir makes the state directory and takes it for this process, before
// anything joins a group: a replica that can not use its disk would take
// partitions from one that can. The lock ends with the process, however it ends.
func lockStateDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("--state-dir: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // G304: the operator names it
	if err != nil {
		return nil, fmt.Errorf("--state-dir: %w", err)
	}
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return lock, nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errors.New("is used by another process")
	}
	return nil, errors.Join(fmt.Errorf("--state-dir: %s: %w", dir, err), lock.Close())
}
