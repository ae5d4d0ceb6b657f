package config_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/cmd/deliverystat/internal/config"
)

// grammar is a command line with two commands.
type grammar struct {
	config.Common

	Run   options `cmd:""`
	Other struct {
		Elsewhere string
	} `cmd:""`
}

type options struct {
	Interval time.Duration `default:"50ms"`
	Names    []string      `oneof:"a,b,c"`
	Count    int           `default:"3"`
	Share    float64
	Force    bool
	TLSFile  string `name:"tls-file"`
}

func (o *options) Check(problems *config.Problems) {
	if o.Count > 100 {
		problems.Add("count", "want at most 100, got %d", o.Count)
	}
}

func parse(t *testing.T, env []string, args ...string) (*grammar, *config.Parsed, error) {
	t.Helper()
	var g grammar
	var out bytes.Buffer
	parsed, err := config.Parse(&g, config.Invocation{Args: append([]string{"run"}, args...), Env: env, Stdout: &out, Stderr: &out})
	return &g, parsed, err
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestFlagBeatsVariableBeatsFileBeatsDefault(t *testing.T) {
	path := "--config=" + file(t, "interval: 1s\n")
	env := []string{"DELIVERYSTAT_INTERVAL=2s"}
	for _, test := range []struct {
		name string
		env  []string
		args []string
		want time.Duration
	}{
		{"default", nil, nil, 50 * time.Millisecond},
		{"file", nil, []string{path}, time.Second},
		{"variable", env, []string{path}, 2 * time.Second},
		{"flag", env, []string{path, "--interval=3s"}, 3 * time.Second},
		{"empty variable", []string{"DELIVERYSTAT_INTERVAL="}, []string{path}, time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, _, err := parse(t, test.env, test.args...)

			require.NoError(t, err)
			require.Equal(t, test.want, g.Run.Interval)
		})
	}
}

func TestTheFileMayBeNamedByAVariable(t *testing.T) {
	g, _, err := parse(t, []string{"DELIVERYSTAT_CONFIG=" + file(t, "count: 7\n")})

	require.NoError(t, err)
	require.Equal(t, 7, g.Run.Count)
}

func TestFileKeysMayBeNestedAndValuesLists(t *testing.T) {
	path := file(t, "names: [a, c]\ntls:\n  file: x.pem\nforce: true\nshare: 0.1\nelsewhere: of another command\n")

	g, _, err := parse(t, nil, "--config="+path)

	require.NoError(t, err)
	require.Equal(t, options{
		Interval: 50 * time.Millisecond, Names: []string{"a", "c"}, Count: 3, Share: 0.1, Force: true, TLSFile: "x.pem",
	}, g.Run)
}

func TestAllFaultsAreReportedAtOnceWithTheirSource(t *testing.T) {
	path := file(t, "interval: soon\ncount: 1000\nshare: {a: 1}\nnames: [a, z]\ninterval: 1s\n")

	_, _, err := parse(t, []string{"DELIVERYSTAT_FORCE=perhaps"}, "--config="+path, "--what", "--share", "much")

	var usage *config.UsageError
	require.ErrorAs(t, err, &usage)
	require.Equal(t, []string{
		`unknown flag --what`,
		`--share: expected a float but got "much" (string)`,
		path + `:5: setting "interval" is already given in line 1`,
		path + `:3: unknown setting "share-a"`,
		`--interval: want a duration such as 50ms, 30s, 24h, got "soon" (from ` + path + `:1)`,
		`--names: "z" is not one of a, b, c (from ` + path + `:4)`,
		`--force: bool value must be true, 1, yes, false, 0 or no but got "perhaps" (from DELIVERYSTAT_FORCE)`,
		`--count: want at most 100, got 1000`,
	}, usage.Problems)
}

func TestUnknownVariablesAreNamed(t *testing.T) {
	_, parsed, err := parse(t, []string{"DELIVERYSTAT_PORT=1", "DELIVERYSTAT_ELSEWHERE=1", "DELIVERYSTATX=1"})

	require.NoError(t, err)
	require.Equal(t, []string{"DELIVERYSTAT_PORT"}, parsed.UnknownVariables)
}

func TestEffectiveSettings(t *testing.T) {
	_, parsed, err := parse(t, nil, "--names=b,a", "--force")

	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"config": "", "log-format": "auto", "log-level": "info",
		"interval": "50ms", "names": "b,a", "count": "3", "share": "0", "force": "true", "tls-file": "",
	}, parsed.Effective())
}

func ExampleUsageError() {
	var problems config.Problems
	problems.Add("rate", "want 0 or more, got %d", -1)
	problems.Add("rate", "what follows from it is not said")
	fmt.Println(problems.Err())
	// Output: --rate: want 0 or more, got -1
}
