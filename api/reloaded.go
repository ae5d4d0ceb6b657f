package api

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// reloadEvery is how often files are looked at, while requests come.
const reloadEvery = 5 * time.Second

// reloaded is a value made of files. Changed files are read again within seconds;
// while they cannot be read, or make no value, the last good one holds.
type reloaded[T any] struct {
	what   string // in errors: "token file"
	paths  []string
	read   func() (T, error)
	logger *slog.Logger

	mu      sync.Mutex
	checked time.Time
	files   []os.FileInfo
	value   T
}

// start reads the files for the first time.
func (r *reloaded[T]) start() error {
	r.checked = time.Now()
	files, err := r.stat()
	if err != nil {
		return err
	}
	return r.load(files)
}

// get returns the value, read anew if a file changed.
func (r *reloaded[T]) get() T {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.checked) >= reloadEvery {
		r.checked = now
		files, err := r.stat()
		if err == nil && !sameVersions(files, r.files) {
			err = r.load(files)
		}
		if err != nil {
			r.logger.Warn("files not read, what they held before holds", "err", err)
		}
	}
	return r.value
}

// stat looks at the files. That is done before they are read: a change between
// the two is then found the next time.
func (r *reloaded[T]) stat() ([]os.FileInfo, error) {
	var files []os.FileInfo
	for _, path := range r.paths {
		file, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", r.what, err)
		}
		files = append(files, file)
	}
	return files, nil
}

func (r *reloaded[T]) load(files []os.FileInfo) error {
	value, err := r.read()
	if err != nil {
		return fmt.Errorf("reading %s: %w", r.what, err)
	}
	r.files, r.value = files, value
	return nil
}

// sameVersions reports whether files are as they were. A mounted secret is a link
// to a new file after each change, whose time may be the old one.
func sameVersions(a, b []os.FileInfo) bool {
	for i := range a {
		if !os.SameFile(a[i], b[i]) || !a[i].ModTime().Equal(b[i].ModTime()) || a[i].Size() != b[i].Size() {
			return false
		}
	}
	return true
}
