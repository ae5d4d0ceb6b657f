package broker

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

//go:embed pom.xml
var pom []byte

// Jars returns the folder that holds the jars of Kafka, after Maven has copied
// them there if they were missing. The folder is named after the content of
// pom.xml, so that another version never finds the jars of this one. Test
// packages that run at the same time wait for each other.
func Jars(ctx context.Context) (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(cache, "kafka.lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	sum := sha256.Sum256(pom)
	dir := filepath.Join(cache, "kafka-"+hex.EncodeToString(sum[:6]))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	work, err := os.MkdirTemp(cache, "kafka-fetch-")
	if err != nil {
		return "", fmt.Errorf("making a folder for the jars of kafka: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	pomFile := filepath.Join(work, "pom.xml")
	if err := os.WriteFile(pomFile, pom, 0o600); err != nil {
		return "", fmt.Errorf("writing pom.xml: %w", err)
	}
	lib := filepath.Join(work, "lib")
	mvn := exec.CommandContext(ctx, "mvn", "-q", "-B", "-f", pomFile, "dependency:copy-dependencies", "-DoutputDirectory="+lib)
	out, err := mvn.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("fetching the jars of kafka with maven: %w\n%s", err, out)
	}
	if err := os.Rename(lib, dir); err != nil {
		return "", fmt.Errorf("keeping the jars of kafka: %w", err)
	}
	return dir, nil
}

// CacheDir returns e2e/.cache of the module that the working directory belongs
// to, made if it is missing. It holds what may be fetched or made again at any
// time, and the logs of failed tests.
func CacheDir() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the module: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("finding the module: no go.mod above the working directory")
		}
		dir = parent
	}
	cache := filepath.Join(dir, "e2e", ".cache")
	if err := os.MkdirAll(cache, 0o750); err != nil {
		return "", fmt.Errorf("making the cache: %w", err)
	}
	return cache, nil
}

func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening lock %s: %w", path, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("taking lock %s: %w", path, err)
	}
	return func() { _ = f.Close() }, nil
}
