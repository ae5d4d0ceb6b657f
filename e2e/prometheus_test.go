//go:build e2e

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/e2e/process"
	"deliverystat/e2e/replica"
)

// A real Prometheus scrapes the replicas of two installs with the rules of
// deploy. Its answers to the documented queries are the truth before, during and
// after a takeover, none is counted twice, and every panel of the dashboard has
// data.
func TestPrometheusTellsTheTruthThroughATakeover(t *testing.T) {
	north, south := install(t), install(t)
	flags := []string{"--session-timeout=6s"}
	one, two, three := north.serve("one", flags...), north.serve("two", flags...), south.serve("three", flags...)
	waitReady(t, one, two, three)
	north.waitOwns(two, partitions/2)
	p := startPrometheus(t, map[string][]*replica.Replica{"north": {one, two}, "south": {three}})

	truth := north.simulate("--events=6000", "--deliveries=1200", "--seed=41", "--malformed=0.01").wait(t)
	other := south.simulate("--events=2000", "--deliveries=300", "--seed=43").wait(t)
	north.requireExact(truth, one, two)
	south.requireExact(other, three)
	p.waitTells("north", truth.Counts, truth.Closed)
	p.waitTells("south", other.Counts, other.Closed)

	require.NoError(t, one.Kill())
	asked := 0
	eventually(t, "the other takes over", func() (string, bool) {
		live, closed := p.told("north")
		require.Equal(t, nonZero(truth.Counts), live, "during the takeover")
		require.Equal(t, nonZero(truth.Closed), closed, "during the takeover")
		asked++
		owned, err := two.Owned(t.Context(), north.topic("latest-delivery"))
		require.NoError(t, err)
		return strconv.Itoa(owned), owned == partitions
	})
	require.Greater(t, asked, 10, "questions during the takeover")

	north.simulate("--events=3000", "--deliveries=600", "--seed=47").wait(t)
	require.NoError(t, one.Start())
	waitReady(t, one)
	at, err := north.countsAtEnd(two).AsOf.Positions(partitions)
	require.NoError(t, err)
	live, closed := north.world().Counts("", at)
	p.waitTells("north", wide(live), wide(closed))
	p.waitTells("south", other.Counts, other.Closed)

	p.requireRulesWork()
	p.requirePanelsHaveData()
}

// prometheus is a running Prometheus.
type prometheus struct {
	t   *testing.T
	url string
}

// startPrometheus runs a Prometheus that scrapes each install, by namespace,
// every second.
func startPrometheus(t *testing.T, installs map[string][]*replica.Replica) *prometheus {
	t.Helper()
	binary, err := exec.LookPath("prometheus")
	require.NoError(t, err, "install Debian's package prometheus")
	rules, err := filepath.Abs(filepath.Join("..", "deploy", "prometheus"))
	require.NoError(t, err)
	var targets strings.Builder
	for namespace, replicas := range installs {
		for _, r := range replicas {
			fmt.Fprintf(&targets, "      - {targets: [%q], labels: {namespace: %s}}\n", r.Admin, namespace)
		}
	}
	dir := t.TempDir()
	configuration := filepath.Join(dir, "prometheus.yaml")
	require.NoError(t, os.WriteFile(configuration, fmt.Appendf(nil, `global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%[1]s/recording.yaml, %[1]s/alerts.yaml]
scrape_configs:
  - job_name: deliverystat
    static_configs:
%[2]s`, rules, targets.String()), 0o600))
	ports, err := process.FreePorts(1)
	require.NoError(t, err)
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	log := filepath.Join(dir, "log")
	running, err := process.Start(log, nil, binary, "--config.file="+configuration,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = running.Kill()
		if t.Failed() {
			text, _ := os.ReadFile(log)
			t.Logf("log of Prometheus:\n%s", text)
		}
	})
	p := &prometheus{t: t, url: "http://" + address}
	eventually(t, "Prometheus is ready", func() (string, bool) {
		if !running.Running() {
			t.Fatalf("Prometheus ended with code %d", running.ExitCode())
		}
		_, err := p.get("/-/ready", nil)
		return fmt.Sprint(err), err == nil
	})
	eventually(t, "all replicas are scraped", func() (string, bool) {
		up := len(p.query("up == 1"))
		return strconv.Itoa(up), up == strings.Count(targets.String(), "\n")
	})
	return p
}

func (p *prometheus) get(path string, query url.Values) ([]byte, error) {
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("asking Prometheus for %s: %d %s", path, response.StatusCode, body)
	}
	return body, err
}

// sample is one series of an answer, and its value.
type sample struct {
	Metric map[string]string
	Value  [2]any
}

func (p *prometheus) query(expr string) []sample {
	p.t.Helper()
	body, err := p.get("/api/v1/query", url.Values{"query": {expr}})
	require.NoError(p.t, err, expr)
	var answer struct {
		Data struct{ Result []sample }
	}
	require.NoError(p.t, json.Unmarshal(body, &answer), "%s", body)
	return answer.Data.Result
}

// told asks the documented queries, without a filter, and returns the counts of
// one install by status, but those of 0.
func (p *prometheus) told(namespace string) (live, closed map[string]int64) {
	p.t.Helper()
	counts := func(metric string) map[string]int64 {
		out := map[string]int64{}
		for _, s := range p.query("max by (namespace, job, status) (" + metric + ")") {
			if s.Metric["namespace"] != namespace {
				continue
			}
			_, twice := out[s.Metric["status"]]
			require.False(p.t, twice, "%v", s.Metric)
			n, err := strconv.ParseInt(s.Value[1].(string), 10, 64)
			require.NoError(p.t, err)
			out[s.Metric["status"]] = n
		}
		return nonZero(out)
	}
	return counts("deliverystat_deliveries"), counts("deliverystat_closed_deliveries")
}

// waitTells waits for the scrape that shows these counts of an install.
func (p *prometheus) waitTells(namespace string, wantLive, wantClosed map[string]int64) {
	p.t.Helper()
	wantLive, wantClosed = nonZero(wantLive), nonZero(wantClosed)
	want := fmt.Sprint(wantLive, wantClosed)
	eventually(p.t, "Prometheus tells "+want+" of "+namespace, func() (string, bool) {
		live, closed := p.told(namespace)
		got := fmt.Sprint(live, closed)
		return got, got == want
	})
}

// requireRulesWork demands that each rule was evaluated without a fault.
func (p *prometheus) requireRulesWork() {
	p.t.Helper()
	type rule struct{ Name, Health, LastError string }
	evaluated := 0
	eventually(p.t, "all rules are evaluated", func() (string, bool) {
		body, err := p.get("/api/v1/rules", nil)
		require.NoError(p.t, err)
		var answer struct {
			Data struct{ Groups []struct{ Rules []rule } }
		}
		require.NoError(p.t, json.Unmarshal(body, &answer))
		evaluated = 0
		for _, g := range answer.Data.Groups {
			for _, r := range g.Rules {
				require.NotEqual(p.t, "err", r.Health, "%s: %s", r.Name, r.LastError)
				if r.Health != "ok" {
					return r.Name, false
				}
				evaluated++
			}
		}
		return strconv.Itoa(evaluated), true
	})
	require.Greater(p.t, evaluated, 20)
}

// requirePanelsHaveData asks the query of every panel for both installs.
func (p *prometheus) requirePanelsHaveData() {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "deploy", "grafana", "deliverystat.json"))
	require.NoError(p.t, err)
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(p.t, json.Unmarshal(text, &dashboard))
	chosen := strings.NewReplacer("$__rate_interval", "5m", "$namespace", "north|south", "$job", "deliverystat", "$instance", ".*")
	asked := 0
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			expr := chosen.Replace(target.Expr)
			require.NotRegexp(p.t, `\$\w`, expr, panel.Title)
			for _, namespace := range []string{"north", "south"} {
				eventually(p.t, panel.Title+" has data of "+namespace, func() (string, bool) {
					for _, s := range p.query(expr) {
						if s.Metric["namespace"] == namespace {
							return "", true
						}
					}
					return expr, false
				})
			}
			asked++
		}
	}
	require.Greater(p.t, asked, 20)
}
