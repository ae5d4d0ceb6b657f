package main

import (
	"encoding/json"
	"net/http"
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

// Every URL that the README asks is answered by a demo, with what it says.
func TestReadmeCommandsAreAnswered(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	require.NoError(t, err)
	httpAddress, admin := freeAddress(t), freeAddress(t)
	_, stop := background(t, "demo", "--rate=2000", "--http-address="+httpAddress, "--admin-address="+admin)
	eventually(t, "a delivery with the number of the README", func() (string, bool) {
		code, body := get(t, "http://"+httpAddress+"/v1/deliveries/D-"+time.Now().UTC().Format("20060102")+"-000042")
		return body, code == http.StatusOK
	})
	asked := 0
	for _, line := range regexp.MustCompile(`(?m)^ *curl .*$`).FindAllString(string(readme), -1) {
		line = strings.ReplaceAll(line, "$(date -u +%Y%m%d)", time.Now().UTC().Format("20060102"))
		target := regexp.MustCompile(`http://127[^'" ]*`).FindString(line)
		require.NotEmpty(t, target, line)
		target = strings.NewReplacer("127.0.0.1:8080", httpAddress, "127.0.0.1:8081", admin, "CURSOR", "").Replace(target)
		if strings.HasSuffix(target, "&cursor=") { // whose cursor is that of the line before
			var page struct {
				Next *string `json:"next_cursor"`
			}
			question := strings.NewReplacer("&cursor=", "", "older_than=30m", "older_than=0s").Replace(target)
			eventually(t, "a second page", func() (string, bool) {
				_, body := get(t, question)
				require.NoError(t, json.Unmarshal([]byte(body), &page))
				return body, page.Next != nil
			})
			target = question + "&cursor=" + *page.Next
		}
		asked++
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		first := make([]byte, 64)
		n, err := response.Body.Read(first)
		require.Equal(t, http.StatusOK, response.StatusCode, "%s: %s", line, first[:n])
		require.NotZero(t, n, "%s: %v", line, err)
		require.NoError(t, response.Body.Close())
	}
	require.Greater(t, asked, 12)
	http.DefaultClient.CloseIdleConnections()
	require.Equal(t, 0, stop().code)
}
