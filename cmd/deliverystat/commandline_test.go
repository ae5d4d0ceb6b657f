package main

import (
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/cmd/deliverystat/internal/config"
)

func TestWrongUsageIsOneLineEach(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.yaml")
	write(t, path, "kafka:\n  brokers: [a:1]\n  borkers: b:2\nallowed-lateness: soon\ncommit-interval: 50ms\n")
	profile := filepath.Join(dir, "profile.yaml")
	write(t, profile, "name: x\ncolour: red\nevent: {delivery_id: id}\n")
	for _, test := range []struct {
		name string
		args string
		want []string
	}{
		{"no command", "", []string{
			`expected one of "demo", "serve", "simulate", "topics", "verify", ...`,
		}},
		{"unknown command", "count", []string{
			`unexpected argument count`,
		}},
		{"unknown flag", "serve --kafka-brokers=a:1 --alowd-lateness=1h", []string{
			`unknown flag --alowd-lateness, did you mean "--allowed-lateness"?`,
		}},
		{"unknown flags beside bad values", "serve --foo 1 --order-by=luck --bar", []string{
			`unknown flag --foo`,
			`unknown flag --bar`,
			`--order-by: "luck" is not one of event-time, sequence`,
			`--kafka-brokers: required: give at least one broker as host:port`,
		}},
		{"bad values", "serve --allowed-lateness=-1h --roles=processors,coffee --commit-interval=often --stuck-after=DELIVERED=1m", []string{
			`--roles: "coffee" is not one of processors, api`,
			`--commit-interval: want a duration such as 50ms, 30s, 24h, got "often"`,
			`--kafka-brokers: required: give at least one broker as host:port`,
			`--allowed-lateness: -1h0m0s is not positive`,
			`--stuck-after: "DELIVERED" is not a live status`,
		}},
		{"unsafe lateness", "serve --kafka-brokers=a:1 --allowed-lateness=1h", []string{
			`--allowed-lateness: 1h0m0s does not exceed max-future 10m0s + 1h0m0s (allow-unsafe accepts it)`,
		}},
		{"source that is an output", "serve --kafka-brokers=a:1 --topic-prefix=l. --sources=l.delivery-events-dead-letter", []string{
			"--sources: l.delivery-events-dead-letter is written by this deployment: what is refused of it would come back for ever",
		}},
		{"dimension that is none", "serve --kafka-brokers=a:1 --dimensions=region,colour", []string{
			`--dimensions: "colour" is not one of region, service, store_id`,
		}},
		{"profile that is none", "serve --kafka-brokers=a:1 --profile=nope", []string{
			`--profile: "nope" is none of the built-in profiles built-in, aftership, easypost, korean, uber-direct, and no file: open nope: no such file or directory`,
		}},
		{"profile with faults", "serve --profile=" + profile + " --events-format=xml", []string{
			`--kafka-brokers: required: give at least one broker as host:port`,
			`--profile: ` + profile + `:2: unknown key "colour"; a profile has name, lifecycle, aliases and event`,
			`--profile: ` + profile + `:3: event has no path for status`,
			`--profile: ` + profile + `:3: event has no path for occurred_at`,
			`--events-format: unknown events format "xml", want one of auto, native, debezium-outbox, debezium-change, cloudevents`,
		}},
		{"statuses of the profile", "serve --kafka-brokers=a:1 --profile=easypost --stuck-after=ASSIGNED=1m", []string{
			`--stuck-after: "ASSIGNED" is not a live status`,
		}},
		{"profile that simulated events do not fit", "simulate --kafka-brokers=a:1 --profile=uber-direct", []string{
			`--profile: uber-direct is not for simulated events: they are native ones with the built-in statuses`,
		}},
		{"the same in the demo", "demo --profile=aftership", []string{
			`--profile: aftership is not for simulated events: they are native ones with the built-in statuses`,
		}},
		{"config file", "serve --config=" + path, []string{
			path + `:3: unknown setting "kafka-borkers"`,
			`--allowed-lateness: want a duration such as 50ms, 30s, 24h, got "soon" (from ` + path + `:4)`,
		}},
		{"config file that does not exist", "serve --kafka-brokers=a:1 --config=" + dir + "/none.yaml", []string{
			`--config: reading config file: open ` + dir + `/none.yaml: no such file or directory`,
		}},
		{"login by half", "serve --kafka-brokers=a:1 --kafka-sasl-user=me --kafka-tls-cert-file=c.pem", []string{
			`--kafka-tls-key-file: a certificate and its key go together`,
			`--kafka-sasl-user: a mechanism with a password, or a token URL, and a user go together`,
		}},
		{"what the market can not do", "simulate --kafka-brokers=a:1 --events=10 --deliveries=20 --late=2", []string{
			`--late: 2: not a share from 0 to 1`,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := invoke(t, strings.Fields(test.args)...)

			require.Equal(t, 2, got.code)
			for i := range test.want {
				test.want[i] = "deliverystat: " + test.want[i]
			}
			require.Equal(t, test.want, got.lines())
			require.Empty(t, got.stdout)
		})
	}
}

// Nobody listens on the address.
func TestCommandsThatEndSayThatThereIsNoBroker(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	for _, command := range []string{"topics check", "topics create", "leave --instance-id=one", "verify", "simulate --events=1"} {
		t.Run(command, func(t *testing.T) {
			got := invoke(t, append(strings.Fields(command), "--kafka-brokers="+address)...)

			require.Equal(t, 3, got.code)
			require.Len(t, got.lines(), 1)
			require.Contains(t, got.stderr, "reaching Kafka at "+address)
		})
	}
}

// Every flag that the contract names is in --help, with its environment
// variable.
func TestHelpListsEveryFlag(t *testing.T) {
	for command, flags := range map[string]string{
		"serve": `kafka-brokers kafka-tls-enable kafka-tls-ca-file kafka-tls-cert-file kafka-tls-key-file
			kafka-sasl-mechanism kafka-sasl-user kafka-sasl-password-file session-timeout topic-prefix
			events-topic sources key-partitioner events-format profile order-by allowed-lateness abandon-after
			max-future terminal-skew dimensions instance-id state-dir roles standby commit-interval stale-after
			max-staleness stuck-after allow-unsafe accept-new-meaning http-address admin-address
			http-tls-cert-file http-tls-key-file
			api-token-file log-format log-level config`,
		"demo":          "events rate seed http-address admin-address config",
		"simulate":      "events deliveries rate seed duplicates out-of-order late malformed unknown-status clock-skew truth kafka-brokers events-format",
		"topics create": "partitions replication-factor kafka-brokers topic-prefix events-topic",
		"topics check":  "allow-unsafe sources kafka-brokers",
		"leave":         "instance-id sources kafka-brokers topic-prefix",
		"profile check": "sample",
		"verify":        "from url kafka-brokers key-partitioner profile",
	} {
		got := invoke(t, append(strings.Fields(command), "--help")...)
		require.Equal(t, 0, got.code)
		require.Empty(t, got.stderr)
		text := strings.Join(strings.Fields(got.stdout), " ")
		for flag := range strings.FieldsSeq(flags) {
			require.Regexp(t, "--"+regexp.QuoteMeta(flag)+`[ =]`, text, command)
			require.Contains(t, text, config.EnvPrefix+strings.ToUpper(strings.ReplaceAll(flag, "-", "_")), command)
		}
	}
}

func TestVersionNamesTheLibraries(t *testing.T) {
	got := invoke(t, "version")

	require.Equal(t, 0, got.code)
	require.Empty(t, got.stderr)
	require.Regexp(t, `^deliverystat .+ \(revision .+\)\ngo go1\.\d+.*\ngoka .+\nsarama .+\n$`, got.stdout)
}

func TestAnUnknownVariableIsAWarning(t *testing.T) {
	got := invokeWith(t, []string{"DELIVERYSTAT_PORT=tcp://10.0.0.1:80", "DELIVERYSTAT_LOG_FORMAT=text", "OTHER=1"}, "version")

	require.Equal(t, 0, got.code)
	require.Len(t, got.lines(), 1)
	require.Contains(t, got.stderr, `level=WARN msg="unknown environment variable has no effect" variable=DELIVERYSTAT_PORT`)
}
