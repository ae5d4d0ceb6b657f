package config

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
)

const redacted = "[redacted]"

// Secret is a value that must not be shown. Every way in which the standard
// library turns a value into text gives a placeholder; only Reveal gives the
// value.
type Secret struct{ value string }

// NewSecret returns a secret with the given value.
func NewSecret(value string) Secret { return Secret{value} }

// ReadSecret reads a secret from the first line of a file.
func ReadSecret(path string) (Secret, error) {
	content, err := os.ReadFile(path) //nolint:gosec // G304: the operator names the file
	if err != nil {
		return Secret{}, fmt.Errorf("reading secret: %w", err)
	}
	line, _, _ := strings.Cut(string(content), "\n")
	line = strings.TrimSuffix(line, "\r")
	if line == "" {
		return Secret{}, fmt.Errorf("reading secret: first line of %s is empty", path)
	}
	return Secret{line}, nil
}

// Reveal returns the value.
func (s Secret) Reveal() string { return s.value }

// String implements fmt.Stringer.
func (Secret) String() string { return redacted }

// GoString implements fmt.GoStringer.
func (Secret) GoString() string { return redacted }

// Format implements fmt.Formatter: verbs such as %x do not ask for String.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue implements slog.LogValuer.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText implements encoding.TextMarshaler, for JSON and YAML too.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
