package main

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"deliverystat/cmd/deliverystat/internal/config"
)

// rule is an alert or a recording rule.
type rule struct {
	Record, Alert, Expr, For string
	Labels, Annotations      map[string]string
}

func rules(t *testing.T) (recorded, alerts []rule) {
	t.Helper()
	for name, text := range deployed(t, "prometheus/*.yaml") {
		if strings.HasSuffix(name, "_test.yaml") {
			continue
		}
		var file struct {
			Groups []struct{ Rules []rule }
		}
		require.NoError(t, yaml.Unmarshal([]byte(text), &file), name)
		for _, g := range file.Groups {
			for _, r := range g.Rules {
				if r.Alert != "" {
					alerts = append(alerts, r)
				} else {
					recorded = append(recorded, r)
				}
			}
		}
	}
	require.NotEmpty(t, alerts)
	require.NotEmpty(t, recorded)
	return recorded, alerts
}

// deployed returns the files of deploy that match, by their base name.
func deployed(t *testing.T, pattern string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "deploy", filepath.FromSlash(pattern)))
	require.NoError(t, err)
	files := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		files[filepath.Base(path)] = string(text)
	}
	return files
}

// Who is woken finds what it means and what to do; and every alert is tested both ways.
func TestEachAlertHasARunbookAndTests(t *testing.T) {
	_, alerts := rules(t)
	books := deployed(t, "runbooks/*.md")
	tests := deployed(t, "prometheus/*_test.yaml")["alerts_test.yaml"]
	for _, a := range alerts {
		book, found := books[a.Alert+".md"]
		require.True(t, found, "no runbook of %s", a.Alert)
		for _, part := range []string{"# " + a.Alert, "## How it works", "## What users see", "## How to investigate", "## How to fix"} {
			require.Contains(t, book, part+"\n", a.Alert)
		}
		require.True(t, strings.HasSuffix(a.Annotations["runbook_url"], "/runbooks/"+a.Alert+".md"), a.Alert)
		require.NotEmpty(t, a.Annotations["summary"], a.Alert)
		require.NotEmpty(t, a.Annotations["description"], a.Alert)
		require.Contains(t, []string{"critical", "warning", "info"}, a.Labels["severity"], a.Alert)
		require.NotEmpty(t, a.For, a.Alert)
		require.Contains(t, tests, a.Alert+" fires: ")
		require.Contains(t, tests, a.Alert+" is quiet: ")
		delete(books, a.Alert+".md")
	}
	require.Empty(t, books, "runbooks of no alert")
}

var fenced = regexp.MustCompile("(?s)```(\\w+)\n(.*?)```")

// Whatever a runbook tells to type exists, flags included.
func TestRunbookCommandsExist(t *testing.T) {
	seen := 0
	for name, text := range deployed(t, "runbooks/*.md") {
		for _, block := range fenced.FindAllStringSubmatch(text, -1) {
			for line := range strings.Lines(block[2]) {
				args := strings.Fields(strings.NewReplacer("$BROKERS", "a:1", "$DEAD", "one").Replace(line))
				if block[1] != "sh" || args[0] != "deliverystat" {
					continue
				}
				seen++
				var grammar commands
				_, err := config.Parse(&grammar, config.Invocation{Args: args[1:], Stdout: t.Output(), Stderr: t.Output()})
				require.NoError(t, err, "%s: %s", name, line)
			}
		}
	}
	require.Greater(t, seen, 10)
}

// A rule, a panel or a runbook with a metric that nothing exports is silent for
// ever.
func TestMetricsOfOperationsAreExported(t *testing.T) {
	admin := freeAddress(t)
	_, stop := background(t, "demo", "--rate=500", "--audit-interval=1s", "--http-address="+freeAddress(t), "--admin-address="+admin)
	var metrics string
	eventually(t, "the counts are exported, and audited", func() (string, bool) {
		code, body := get(t, "http://"+admin+"/metrics")
		metrics = body
		return body, code == http.StatusOK && strings.Contains(body, "\ndeliverystat_newest_event_timestamp_seconds ") &&
			strings.Contains(body, "\ndeliverystat_audit_last_success_timestamp_seconds ")
	})
	http.DefaultClient.CloseIdleConnections()
	require.Zero(t, stop().code)

	known := map[string]bool{}
	for _, series := range regexp.MustCompile(`(?m)^\w+`).FindAllString(metrics, -1) {
		known[series] = true
	}
	recorded, alerts := rules(t)
	for _, r := range recorded {
		known[r.Record] = true
	}
	name := regexp.MustCompile(`\b(?:\w+:)?deliverystat[_:][\w:]+|\b(?:go|process)_\w+`)
	requireKnown := func(where, expression string) {
		expression = regexp.MustCompile(`"[^"]*"`).ReplaceAllString(expression, "")
		for _, metric := range name.FindAllString(expression, -1) {
			require.True(t, known[metric], "%s: %s is not exported", where, metric)
		}
	}
	for _, r := range append(recorded, alerts...) {
		requireKnown(r.Record+r.Alert, r.Expr)
	}
	for book, text := range deployed(t, "runbooks/*.md") {
		for _, block := range fenced.FindAllStringSubmatch(text, -1) {
			if block[1] == "promql" {
				requireKnown(book, block[2])
			}
		}
	}
	for file, text := range deployed(t, "grafana/*.json") {
		for _, p := range panels(t, text) {
			for _, target := range p.Targets {
				requireKnown(file+": "+p.Title, target.Expr)
			}
		}
	}
}

// No count is taken twice: what every replica exports alike is never summed
// over replicas.
func TestGlobalGaugesAreNeverSummed(t *testing.T) {
	recorded, alerts := rules(t)
	summed := regexp.MustCompile(`sum(?: by \([^)]*\))? ?\((?:\w+\()?deliverystat_(?:deliveries|closed_deliveries|stuck_deliveries|lag_records|open_transaction_records|count_drift)`)
	expressions := map[string]string{}
	for _, r := range append(recorded, alerts...) {
		expressions[r.Record+r.Alert] = r.Expr
	}
	maps.Copy(expressions, deployed(t, "runbooks/*.md"))
	for _, text := range deployed(t, "grafana/*.json") {
		for _, p := range panels(t, text) {
			for _, target := range p.Targets {
				expressions[p.Title+target.RefID] = target.Expr
			}
		}
	}
	for where, expression := range expressions {
		require.NotRegexp(t, summed, expression, where)
	}
}
