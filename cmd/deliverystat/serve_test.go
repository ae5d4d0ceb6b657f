package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"

	"deliverystat/codecs"
	"deliverystat/processors/exactlyonce"
	"deliverystat/processors/market"
)

// patience bounds a hang; nothing is measured.
const patience = 30 * time.Second

// freeAddress returns an address on which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	return l.Addr().String()
}

// get asks a server of ours; code is 0 if it does not answer.
func get(t *testing.T, url string) (code int, body string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { require.NoError(t, response.Body.Close()) }()
	b, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(b)
}

// eventually waits for a condition, and fails with the last state seen.
func eventually(t *testing.T, what string, probe func() (state string, ok bool)) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		state, ok := probe()
		if ok {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline.C:
			t.Fatalf("%s: not within %v; last seen: %s", what, patience, state)
		}
	}
}

func awaitReady(t *testing.T, admin string) {
	t.Helper()
	eventually(t, "ready", func() (string, bool) {
		code, body := get(t, "http://"+admin+"/readyz")
		return body, code == http.StatusOK
	})
}

type counts struct {
	Counts map[string]int `json:"counts"`
	Live   int            `json:"live"`
	Closed map[string]int `json:"closed"`
	AsOf   struct {
		LagRecords int64 `json:"lag_records"`
	} `json:"as_of"`
}

// requireTruth waits until a replica that reflects everything says what truth
// does.
func requireTruth(t *testing.T, http string, truth market.Truth) {
	t.Helper()
	eventually(t, "the counts are the truth", func() (string, bool) {
		code, body := get(t, "http://"+http+"/v1/counts")
		var c counts
		if code != 200 || json.Unmarshal([]byte(body), &c) != nil {
			return body, false
		}
		return fmt.Sprintf("%s, want %+v", body, truth), c.AsOf.LagRecords == 0 && c.Live == truth.Live &&
			fmt.Sprint(c.Counts) == fmt.Sprint(truth.Counts) && fmt.Sprint(c.Closed) == fmt.Sprint(truth.Closed)
	})
}

func readTruth(t *testing.T, path string) market.Truth {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	var truth market.Truth
	require.NoError(t, json.Unmarshal(b, &truth))
	return truth
}

// One replica counts a simulated market exactly, and every way to verify it
// agrees, while it runs and after.
func TestServeCountsASimulatedMarket(t *testing.T) {
	t.Parallel()
	broker := "--kafka-brokers=" + startBroker(t)
	httpAddress, admin := freeAddress(t), freeAddress(t)
	require.Equal(t, 0, invoke(t, "topics", "create", broker, "--partitions=4", "--replication-factor=1").code)
	_, stop := background(t, "serve", broker, "--allow-unsafe", "--dimensions=region", "--instance-id=one", "--session-timeout=6s",
		"--state-dir="+t.TempDir(), "--http-address="+httpAddress, "--admin-address="+admin)
	awaitReady(t, admin)
	path := filepath.Join(t.TempDir(), "truth.json")

	simulated := invoke(t, "simulate", broker, "--events=5000", "--deliveries=900", "--seed=3", "--duplicates=0.1",
		"--out-of-order=0.1", "--late=0.05", "--malformed=0.01", "--unknown-status=0.01", "--truth="+path)

	require.Equal(t, 0, simulated.code, simulated.stderr)
	require.Equal(t, "5000 events sent to delivery-events\n", simulated.stdout)
	truth := readTruth(t, path)
	require.Equal(t, 5000, truth.Events)
	require.Equal(t, 50, truth.Malformed)
	requireTruth(t, httpAddress, truth)

	var closed int
	for _, n := range truth.Closed {
		closed += n
	}
	for _, flags := range []string{"", "--from=events", "--url=http://" + httpAddress, "--url=http://" + httpAddress + " --from=events"} {
		verified := invoke(t, append([]string{"verify", broker}, strings.Fields(flags)...)...)
		require.Equal(t, 0, verified.code, "%s\n%s%s", flags, verified.stdout, verified.stderr)
		require.Contains(t, verified.stdout, fmt.Sprintf("no difference: %d live and %d closed deliveries", truth.Live, closed))
	}
	_, metrics := get(t, "http://"+admin+"/metrics")
	for _, line := range []string{
		`deliverystat_dead_letters_total{reason="key_mismatch"} `,
		`deliverystat_rebalances_total{group="latest-delivery"} 1`,
		`deliverystat_attempts_total{group="count-per-status",reason="fenced"} 0`,
		`deliverystat_transactions_total{group="latest-delivery",result="failed"} 0`,
		`deliverystat_recovery_remaining_records{group="latest-delivery",partition="3"} 0`,
		`deliverystat_recovery_remaining_records{group="latest-delivery-table",partition="3"} 0`,
		`deliverystat_recovery_remaining_records{group="count-per-status-table",partition="0"} 0`,
		`deliverystat_build_info{`, `deliverystat_settings_info{hash="`, `deliverystat_ready 1`, `go_goroutines `,
		`deliverystat_deliveries_by_region{region="`,
	} {
		require.Contains(t, metrics, line)
	}
	_, config := get(t, "http://"+admin+"/config")
	require.Contains(t, config, `"dimensions": "region"`)
	_, partitions := get(t, "http://"+admin+"/partitions")
	require.Contains(t, partitions, `"owner": "one"`)

	stopped := stop()
	require.Equal(t, 0, stopped.code, stopped.stderr)
	code, _ := get(t, "http://"+admin+"/livez")
	require.Zero(t, code)
	require.Equal(t, 0, invoke(t, "verify", broker).code)
}

// Somebody wrote a row into the table by hand: verify finds it, and says where.
func TestVerifyFindsARowThatWasNotCounted(t *testing.T) {
	address := startBroker(t)
	broker := "--kafka-brokers=" + address
	httpAddress, admin := freeAddress(t), freeAddress(t)
	require.Equal(t, 0, invoke(t, "topics", "create", broker, "--partitions=2", "--replication-factor=1").code)
	_, stop := background(t, "serve", broker, "--allow-unsafe", "--instance-id=one", "--session-timeout=6s",
		"--state-dir="+t.TempDir(), "--http-address="+httpAddress, "--admin-address="+admin)
	awaitReady(t, admin)
	path := filepath.Join(t.TempDir(), "truth.json")
	require.Equal(t, 0, invoke(t, "simulate", broker, "--events=100", "--deliveries=20", "--truth="+path).code)
	requireTruth(t, httpAddress, readTruth(t, path))
	require.Equal(t, 0, stop().code)
	forgeRow(t, address)

	got := invoke(t, "verify", broker)

	require.Equal(t, 1, got.code)
	require.Contains(t, got.stdout, "totals of count-per-status-table: all CREATED: live ")
	require.Contains(t, got.stdout, "contribution of partition 1: all CREATED: live ")
	require.NotContains(t, got.stdout, "contribution of partition 0")
	require.Len(t, got.lines(), 1)
	require.Contains(t, got.stderr, "counts differ in 2 places from the rows of latest-delivery-table")
}

func TestVerifyNamesAMissingTopic(t *testing.T) {
	got := invoke(t, "verify", "--kafka-brokers="+startBroker(t))

	require.Equal(t, 2, got.code)
	require.Equal(t, []string{"deliverystat: topic delivery-events does not exist; topic latest-delivery-table does not exist; " +
		"topic count-per-status-table does not exist"}, got.lines())
}

func TestATakenPortIsNamed(t *testing.T) {
	for _, flag := range []string{"http-address", "admin-address"} {
		t.Run(flag, func(t *testing.T) {
			taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer func() { require.NoError(t, taken.Close()) }()
			args := []string{
				"serve", "--kafka-brokers=127.0.0.1:1", "--state-dir=" + t.TempDir(),
				"--http-address=127.0.0.1:0", "--admin-address=127.0.0.1:0", "--" + flag + "=" + taken.Addr().String(),
			}

			got := invoke(t, args...)

			require.Equal(t, 2, got.code)
			require.Equal(t, []string{"deliverystat: --" + flag + ": listen tcp " + taken.Addr().String() + ": bind: address already in use"}, got.lines())
		})
	}
}

// No broker at first: serve says which one it waits for, is alive but not
// ready, and can be stopped.
func TestServeWaitsForABroker(t *testing.T) {
	nobody, httpAddress, admin := freeAddress(t), freeAddress(t), freeAddress(t)
	_, stop := background(t, "serve", "--kafka-brokers="+nobody, "--state-dir="+t.TempDir(), "--log-format=text", "--instance-id=one",
		"--http-address="+httpAddress, "--admin-address="+admin)
	eventually(t, "alive", func() (string, bool) {
		code, body := get(t, "http://"+admin+"/livez")
		return body, code == 200
	})
	ready, reasons := get(t, "http://"+admin+"/readyz")
	startup, _ := get(t, "http://"+admin+"/startupz")
	answer, _ := get(t, "http://"+httpAddress+"/v1/counts")
	_, metrics := get(t, "http://"+admin+"/metrics")

	got := stop()

	require.Equal(t, 503, ready, reasons)
	require.Equal(t, 503, startup)
	require.Equal(t, 503, answer)
	require.Contains(t, metrics, `deliverystat_replica_info{instance_id="one"} 1`)
	require.Equal(t, 0, got.code, got.stderr)
	require.Contains(t, got.stderr, `msg="waiting for Kafka" brokers=`+nobody)
}

// A source that does not exist stops nothing but itself: /readyz names it, and the
// replica is ready. So does it end in good order, which it could not while a
// client looks for the topic.
func TestAMissingSourceIsNamed(t *testing.T) {
	t.Parallel()
	address := startBroker(t)
	broker := "--kafka-brokers=" + address
	require.Equal(t, 0, invoke(t, "topics", "create", broker, "--partitions=1", "--replication-factor=1").code)
	httpAddress, admin := freeAddress(t), freeAddress(t)
	serve := []string{
		"serve", broker, "--allow-unsafe", "--state-dir=" + t.TempDir(), "--instance-id=one", "--session-timeout=6s", "--sources=orders",
		"--http-address=" + httpAddress, "--admin-address=" + admin, "--log-level=error",
	}
	const reason = "processors_working: group normalize-orders: setting up the processor: topic orders does not exist"
	named := func(want bool) {
		t.Helper()
		eventually(t, "the missing source is named, or is not missing", func() (string, bool) {
			code, body := get(t, "http://"+admin+"/readyz")
			return body, code == http.StatusOK && strings.Contains(body, reason) == want
		})
	}
	_, stop := background(t, serve...)
	named(true)
	require.Equal(t, outcome{}, stop())

	_, stop = background(t, serve...)
	named(true)
	makeTopic(t, address, "orders", 3, nil)
	named(false)
	require.Equal(t, outcome{}, stop())
}

// All keys of the input lie where librdkafka puts them.
func TestAFirstStartOnAnotherPartitionerIsRefused(t *testing.T) {
	address := startBroker(t)
	broker := "--kafka-brokers=" + address
	require.Equal(t, 0, invoke(t, "topics", "create", broker, "--partitions=4", "--replication-factor=1").code)
	require.Equal(t, 0, invoke(t, "simulate", broker, "--events=300", "--deliveries=60", "--key-partitioner="+string(exactlyonce.CRC32)).code)
	httpAddress, admin := freeAddress(t), freeAddress(t)
	serve := []string{
		"serve", broker, "--allow-unsafe", "--state-dir=" + t.TempDir(), "--instance-id=one", "--session-timeout=6s",
		"--http-address=" + httpAddress, "--admin-address=" + admin, "--log-level=error",
	}

	got := invoke(t, serve...)

	require.Equal(t, 2, got.code)
	require.Len(t, got.lines(), 1)
	require.Contains(t, got.stderr, "keys of topic delivery-events do not lie where --key-partitioner=murmur2 puts them")
	require.Contains(t, got.stderr, "--key-partitioner=crc32 would match")

	_, stop := background(t, append(serve, "--key-partitioner=crc32")...)
	awaitReady(t, admin)
	require.Equal(t, 0, stop().code)
}

// A replica with other settings than the tables does not work on them.
func TestOtherSettingsAreRefused(t *testing.T) {
	t.Parallel()
	broker := "--kafka-brokers=" + startBroker(t)
	require.Equal(t, 0, invoke(t, "topics", "create", broker, "--partitions=1", "--replication-factor=1").code)
	httpAddress, admin, state := freeAddress(t), freeAddress(t), t.TempDir()
	serve := []string{
		"serve", broker, "--allow-unsafe", "--state-dir=" + state, "--instance-id=one", "--session-timeout=6s",
		"--http-address=" + httpAddress, "--admin-address=" + admin, "--log-level=error",
	}
	_, stop := background(t, serve...)
	awaitReady(t, admin)
	require.Equal(t, 0, stop().code)

	got := invoke(t, append(serve, "--allowed-lateness=48h")...)

	require.Equal(t, 2, got.code)
	require.Len(t, got.lines(), 1)
	require.Contains(t, got.stderr, `allowed-lateness is "24h0m0s" in the table and "48h0m0s" here`)
	require.Contains(t, got.stderr, "--accept-new-meaning")
	require.NotContains(t, got.stderr, "attempt", "it has not joined")

	got = invoke(t, append(serve, "--allowed-lateness=48h", "--roles=api")...)
	require.Equal(t, 2, got.code, "a reader would show other standings")
	require.Contains(t, got.stderr, `allowed-lateness is "24h0m0s" in the table and "48h0m0s" here`)

	profile := filepath.Join(t.TempDir(), "profile.yaml")
	write(t, profile, "name: x\nevent: {delivery_id: id, status: status, occurred_at: at}\n")
	got = invoke(t, append(serve, "--profile="+profile)...)

	require.Equal(t, 2, got.code)
	require.Regexp(t, `: mapping is "" in the table and "[0-9a-f]{16}" here`, got.stderr)
}

// The input is counted again as it was read, or not at all.
func TestVerifyNeedsTheMappingOfTheTable(t *testing.T) {
	t.Parallel()
	broker := "--kafka-brokers=" + startBroker(t)
	httpAddress, admin, profile := freeAddress(t), freeAddress(t), filepath.Join(t.TempDir(), "profile.yaml")
	write(t, profile, "name: x\nevent: {delivery_id: id, status: status, occurred_at: at}\n")
	for _, used := range []string{"built-in", profile} {
		prefix := "--topic-prefix=" + filepath.Base(used) + "-"
		require.Equal(t, 0, invoke(t, "topics", "create", broker, prefix, "--partitions=1", "--replication-factor=1").code)
		_, stop := background(t, "serve", broker, prefix, "--allow-unsafe", "--profile="+used, "--state-dir="+t.TempDir(),
			"--instance-id=one", "--session-timeout=6s", "--http-address="+httpAddress, "--admin-address="+admin, "--log-level=error")
		eventually(t, "the counts table is written", func() (string, bool) {
			_, body := get(t, "http://"+httpAddress+"/v1/counts")
			return body, strings.Contains(body, `"live":0`)
		})
		require.Equal(t, 0, stop().code)
	}

	for _, test := range []struct {
		prefix, profile string
		code            int
	}{
		{"built-in-", "built-in", 0},
		{"built-in-", profile, 0}, // what sources republish is native, whatever they look like
		{"profile.yaml-", profile, 0},
		{"profile.yaml-", "built-in", 2},
		{"profile.yaml-", "korean", 1}, // another lifecycle
	} {
		got := invoke(t, "verify", broker, "--from=events", "--timeout=20s", "--topic-prefix="+test.prefix, "--profile="+test.profile)
		require.Equal(t, test.code, got.code, got.stderr)
		if test.code == 2 {
			require.Equal(t, []string{"deliverystat: reading events: the table was written with another mapping of events; name its profile by --profile"}, got.lines())
		}
	}
}

// A replica that can not use its disk must not take partitions from one that can.
func TestServeNeedsItsStateDirectory(t *testing.T) {
	t.Parallel()
	broker := "--kafka-brokers=" + startBroker(t)
	require.Equal(t, 0, invoke(t, "topics", "create", broker, "--partitions=1", "--replication-factor=1").code)
	state, admin := t.TempDir(), freeAddress(t)
	serve := []string{"serve", broker, "--allow-unsafe", "--session-timeout=6s", "--http-address=127.0.0.1:0", "--log-level=error"}
	_, stop := background(t, append(serve, "--instance-id=one", "--state-dir="+state, "--admin-address="+admin)...)
	awaitReady(t, admin)

	got := invoke(t, append(serve, "--instance-id=two", "--state-dir="+state, "--admin-address=127.0.0.1:0")...)
	require.Equal(t, 2, got.code)
	require.Equal(t, []string{"deliverystat: --state-dir: " + state + ": is used by another process"}, got.lines())
	got = invoke(t, append(serve, "--instance-id=two", "--state-dir=/dev/null/x", "--admin-address=127.0.0.1:0")...)
	require.Equal(t, 2, got.code)
	require.Equal(t, []string{"deliverystat: --state-dir: mkdir /dev/null: not a directory"}, got.lines())
	require.Equal(t, 0, stop().code)
}

// The table is looked at while somebody else commits an epoch: what was its last
// record a moment ago is a row, and the progress row comes behind.
func TestOtherSettingsAreSeenBehindARunningEpoch(t *testing.T) {
	t.Parallel()
	address := startBroker(t)
	broker := "--kafka-brokers=" + address
	require.Equal(t, 0, invoke(t, "topics", "create", broker, "--partitions=1", "--replication-factor=1").code)
	config := sarama.NewConfig()
	config.Producer.Return.Successes = true
	producer, err := sarama.NewSyncProducer([]string{address}, config)
	require.NoError(t, err)
	defer func() { require.NoError(t, producer.Close()) }()
	put := func(key string, value []byte) {
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: "latest-delivery-table", Key: sarama.StringEncoder(key), Value: sarama.ByteEncoder(value)})
		require.NoError(t, err)
	}
	put("D-1", []byte("a row"))
	admin := freeAddress(t)
	serve := []string{
		"serve", broker, "--allow-unsafe", "--session-timeout=6s", "--state-dir=" + t.TempDir(),
		"--http-address=" + freeAddress(t), "--admin-address=" + admin,
	}
	ended := make(chan outcome, 1)
	go func() { ended <- invoke(t, serve...) }()
	eventually(t, "it starts", func() (string, bool) {
		code, body := get(t, "http://"+admin+"/livez")
		return body, code == http.StatusOK
	})
	put(codecs.ProgressKey, codecs.AppendProgress(nil, &codecs.Progress{Settings: []codecs.Setting{{Name: "allowed-lateness", Value: "48h0m0s"}}}))

	got := <-ended
	require.Equal(t, 2, got.code)
	require.Contains(t, got.stderr, `allowed-lateness is "48h0m0s" in the table and "24h0m0s" here`)
	require.NotContains(t, got.stderr, "partitions assigned", "it has not joined")
}

// New settings are taken only when nobody works with the old ones any more.
func TestNewMeaningWaitsForTheOthers(t *testing.T) {
	t.Parallel()
	broker := "--kafka-brokers=" + startBroker(t)
	require.Equal(t, 0, invoke(t, "topics", "create", broker, "--partitions=1", "--replication-factor=1").code)
	httpAddress, oldAdmin, admin := freeAddress(t), freeAddress(t), freeAddress(t)
	serve := []string{"serve", broker, "--allow-unsafe", "--session-timeout=6s", "--log-format=text"}
	_, stopOld := background(t, append(serve, "--roles=processors", "--instance-id=old", "--state-dir="+t.TempDir(), "--admin-address="+oldAdmin)...)
	require.Equal(t, 0, invoke(t, "simulate", broker, "--events=300", "--deliveries=50").code)
	eventually(t, "the table is written", func() (string, bool) {
		_, metrics := get(t, "http://"+oldAdmin+"/metrics")
		return metrics, strings.Contains(metrics, `deliverystat_events_total{result="applied"} 300`)
	})
	require.Equal(t, 0, invoke(t, "simulate", broker, "--events=300", "--deliveries=50").code)

	_, stop := background(t, append(serve, "--instance-id=new", "--state-dir="+t.TempDir(), "--admin-address="+admin, "--http-address="+httpAddress,
		"--allowed-lateness=48h", "--accept-new-meaning")...)
	require.Equal(t, 0, stopOld().code) // and stays a member until its session ends
	awaitReady(t, admin)

	_, body := get(t, "http://"+httpAddress+"/v1/counts")
	require.Contains(t, body, `"closed_window_seconds":172800`)
	got := stop()
	require.Equal(t, 0, got.code)
	require.Contains(t, got.stderr, "still has old")
	require.Contains(t, got.stderr, "table written with other settings accepted")
}

// One process works, another answers.
func TestRolesCanBeSplit(t *testing.T) {
	t.Parallel()
	broker := "--kafka-brokers=" + startBroker(t)
	require.Equal(t, 0, invoke(t, "topics", "create", broker, "--partitions=2", "--replication-factor=1").code)
	httpAddress, works, answers := freeAddress(t), freeAddress(t), freeAddress(t)
	_, stopWork := background(t, "serve", broker, "--allow-unsafe", "--roles=processors", "--instance-id=works", "--session-timeout=6s",
		"--state-dir="+t.TempDir(), "--admin-address="+works)
	_, stopAnswers := background(t, "serve", broker, "--allow-unsafe", "--roles=api", "--instance-id=answers",
		"--state-dir="+t.TempDir(), "--http-address="+httpAddress, "--admin-address="+answers)
	awaitReady(t, works)
	awaitReady(t, answers)
	path := filepath.Join(t.TempDir(), "truth.json")
	require.Equal(t, 0, invoke(t, "simulate", broker, "--events=300", "--deliveries=50", "--truth="+path).code)

	requireTruth(t, httpAddress, readTruth(t, path))

	_, metrics := get(t, "http://"+works+"/metrics")
	require.Contains(t, metrics, `deliverystat_events_total{result="applied"} 300`)
	require.Contains(t, metrics, "deliverystat_ready 1")
	require.NotContains(t, metrics, "deliverystat_deliveries{")
	_, metrics = get(t, "http://"+answers+"/metrics")
	require.Contains(t, metrics, `deliverystat_deliveries{status="CREATED"}`)
	require.Contains(t, metrics, "deliverystat_ready 1")
	require.NotContains(t, metrics, "deliverystat_events_total")
	require.Equal(t, 0, stopWork().code)
	require.Equal(t, 0, stopAnswers().code)
}

// What the brokers will never allow is not tried for ever.
func TestASessionTimeoutThatTheBrokersRefuseIsNamed(t *testing.T) {
	t.Parallel()
	broker := "--kafka-brokers=" + startBroker(t)
	require.Equal(t, 0, invoke(t, "topics", "create", broker, "--partitions=1", "--replication-factor=1").code)

	got := invoke(t, "serve", broker, "--allow-unsafe", "--instance-id=one", "--state-dir="+t.TempDir(), "--session-timeout=48h",
		"--http-address=127.0.0.1:0", "--admin-address=127.0.0.1:0", "--log-level=error")

	require.Equal(t, 2, got.code)
	require.Contains(t, got.stderr, "--session-timeout=48h0m0s lies outside of what the brokers allow")
}

// A replica whose broker has gone ends in good order all the same, whatever its
// clients are looking for.
func TestServeStopsWithoutABroker(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	require.NoError(t, err)
	defer cluster.Close()
	broker := "--kafka-brokers=" + cluster.ListenAddrs()[0]
	require.Equal(t, 0, invoke(t, "topics", "create", broker, "--partitions=4", "--replication-factor=1").code)
	httpAddress, admin := freeAddress(t), freeAddress(t)
	_, stop := background(t, "serve", broker, "--allow-unsafe", "--instance-id=one", "--session-timeout=6s", "--sources=orders", "--standby",
		"--state-dir="+t.TempDir(), "--http-address="+httpAddress, "--admin-address="+admin)
	awaitReady(t, admin)
	cluster.Close()
	eventually(t, "the attempts of both processors have ended", func() (string, bool) {
		_, body := get(t, "http://"+admin+"/readyz")
		return body, strings.Contains(body, "group latest-delivery: ") && strings.Contains(body, "group count-per-status: ")
	})

	stopped := stop()

	require.Equal(t, 0, stopped.code, "each part has stopped within its bound: %s", stopped.stderr)
}
