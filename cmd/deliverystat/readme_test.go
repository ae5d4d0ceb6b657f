package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/cmd/deliverystat/internal/config"
)

// The table of flags in the README has every flag of serve, with its default.
func TestReadmeListsTheFlagsOfServe(t *testing.T) {
	var grammar commands
	parsed, err := config.Parse(&grammar, config.Invocation{Args: []string{"serve", "--kafka-brokers=a:1"}, Stdout: t.Output(), Stderr: t.Output()})
	require.NoError(t, err)
	effective := parsed.Effective()

	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	require.NoError(t, err)
	_, table, found := strings.Cut(string(readme), "| flag of `serve` | default | |")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	quoted := regexp.MustCompile("`([^`]*)`")
	told := map[string]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.Contains(cells[1], "`--") {
			continue
		}
		flags, defaults := quoted.FindAllStringSubmatch(cells[1], -1), quoted.FindAllStringSubmatch(cells[2], -1)
		for i, flag := range flags {
			value := strings.TrimSpace(cells[2])
			if len(defaults) == len(flags) {
				value = defaults[i][1]
			}
			told[strings.TrimPrefix(flag[1], "--")] = value
		}
	}
	for flag, value := range effective {
		if strings.HasPrefix(flag, "kafka-tls-") || strings.HasPrefix(flag, "kafka-sasl-") {
			continue // named together
		}
		require.Contains(t, told, flag, "a flag of serve that the README's table lacks")
		switch told[flag] {
		case "required", "none":
			continue
		case "off":
			require.Equal(t, "false", value, "--%s", flag)
			continue
		}
		if value == "" { // a name that depends on others
			require.NotEmpty(t, told[flag], "--%s", flag)
			continue
		}
		require.Equal(t, plain(value), plain(told[flag]), "--%s", flag)
	}
	for flag := range told {
		require.Contains(t, effective, flag, "the README's table has a flag that serve lacks")
	}
}

// plain writes durations in one way.
func plain(value string) string {
	if d, err := time.ParseDuration(value); err == nil {
		return d.String()
	}
	return value
}
