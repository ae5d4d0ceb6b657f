package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// listed are the lines of dead-letters list.
func (s *served) listed(t *testing.T, flags ...string) []string {
	t.Helper()
	got := invoke(t, append([]string{"dead-letters", "list", s.broker}, flags...)...)
	require.Equal(t, 0, got.code, got.stderr)
	if got.stdout == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(got.stdout, "\n"), "\n")
}

// awaitLetters waits until so many dead letters can be read.
func (s *served) awaitLetters(t *testing.T, n int) []string {
	t.Helper()
	var lines []string
	eventually(t, "dead letters", func() (string, bool) {
		lines = s.listed(t, "--output=json")
		return strings.Join(lines, "\n"), len(lines) == n
	})
	return lines
}

func TestAMendedDeadLetterCountsOnce(t *testing.T) {
	t.Parallel()
	s := serveFor(t, "4")
	wrong := event("D-2", "CREATED", time.Minute)
	wrong.key, wrong.headers = "D-1", map[string]string{"trace": "t1"}
	send(t, s.address, wrong)
	s.awaitLetters(t, 1)
	send(t, s.address, sent{key: "D-3", value: "\xff\x00"}, event("D-4", "CREATED", time.Minute))
	s.await(t, `"CREATED":1`)
	letters := s.awaitLetters(t, 2)
	require.Contains(t, letters[0], `"reason":"key_mismatch"`)
	require.Contains(t, letters[0], `"headers":[{"key":"trace","value":"t1"}]`)
	require.Contains(t, letters[1], `"value":{"base64":"/wA="}`)

	table := s.listed(t, "--reason=unreadable,late")
	require.Len(t, table, 2)
	require.Contains(t, table[0], "REFUSED")
	require.Contains(t, table[1], `"\xff\x00"`, "nothing reaches a terminal as it is")
	require.Len(t, s.listed(t, "--delivery-id=D-2", "--output=json"), 1)
	require.Len(t, s.listed(t, "--key=D-3", "--output=json"), 1)
	require.Equal(t, letters[:1], s.listed(t, "--limit=1", "--output=json"))
	require.Empty(t, s.listed(t, "--since=2099-01-01T00:00:00Z", "--output=json"))
	require.Len(t, s.listed(t, "--since=1h", "--output=json"), 2)

	path := filepath.Join(t.TempDir(), "mended.jsonl")
	write(t, path, strings.Replace(letters[0], `"key":"D-1"`, `"key":"D-2"`, 1)+"\n")
	dry := invoke(t, "dead-letters", "replay", s.broker, "--from="+path, "--dry-run")
	require.Equal(t, 0, dry.code, dry.stderr)
	require.Contains(t, dry.stdout, "\n1 would be sent to delivery-events\n")
	for range 2 {
		replayed := invoke(t, "dead-letters", "replay", s.broker, "--from="+path)
		require.Equal(t, 0, replayed.code, replayed.stderr)
		require.Equal(t, "1 sent to delivery-events\n", replayed.stdout)
	}
	send(t, s.address, event("D-5", "ASSIGNED", time.Minute))
	s.await(t, `"ASSIGNED":1`)
	s.await(t, `"CREATED":2`)
	require.Equal(t, 0, invoke(t, "verify", s.broker, "--from=events").code)
	explained := invoke(t, "explain", s.broker, "D-2")
	require.Equal(t, 0, explained.code, explained.stdout)
	require.Contains(t, explained.stdout, "it is the newest event once more")

	unmended := invoke(t, "dead-letters", "replay", s.broker, "--reason=unreadable", "--limit=1")
	require.Equal(t, "1 sent to delivery-events\n", unmended.stdout)
	s.awaitLetters(t, 3)
}

// Delivery old is closed and forgotten before its first event comes. Record times
// must span the lateness for that, so they are the event times here.
func TestALateDeadLetterIsAppliedOnDemand(t *testing.T) {
	t.Parallel()
	s := serveFor(t, "1", "--allowed-lateness=10m", "--abandon-after=2h", "--max-future=1h")
	old, end, other := event("old", "CREATED", 50*time.Minute), event("old", "DELIVERED", 40*time.Minute), event("b", "CREATED", time.Minute)
	end.ago, other.ago = 40*time.Minute, time.Minute
	send(t, s.address, end, other, old)
	s.await(t, `"CREATED":1`)
	letters := s.awaitLetters(t, 1)
	require.Contains(t, letters[0], `"reason":"late"`)

	without := invoke(t, "dead-letters", "replay", s.broker)
	require.Equal(t, 0, without.code, without.stderr)
	require.Equal(t, "0 sent to delivery-events; left out: 1 late (--accept-late sends them too, to be applied all the same)\n", without.stdout)
	for range 2 {
		with := invoke(t, "dead-letters", "replay", s.broker, "--accept-late")
		require.Equal(t, 0, with.code, with.stderr)
		require.Equal(t, "1 sent to delivery-events\n", with.stdout)
	}

	s.await(t, `"CREATED":2`)
	s.awaitLetters(t, 1)
	require.Equal(t, 0, invoke(t, "verify", s.broker, "--from=events").code)
	explained := invoke(t, "explain", s.broker, "old")
	require.Equal(t, 0, explained.code, explained.stdout)
	require.Contains(t, explained.stdout, "it is late, and marked to be applied all the same")
	require.Contains(t, explained.stdout, "the table agrees at position 5")
}

func TestWhatWasNotKeptWholeIsNotSentBack(t *testing.T) {
	s := serveFor(t, "1")
	send(t, s.address, sent{key: "big", value: strings.Repeat("x", 1_000_000)}, event("a", "CREATED", time.Minute))
	s.await(t, `"CREATED":1`)
	letters := s.awaitLetters(t, 1)
	var letter struct{ Incomplete, Value string }
	require.NoError(t, json.Unmarshal([]byte(letters[0]), &letter))
	require.Contains(t, letter.Incomplete, "the value had 1000000 bytes, of which ")
	require.Greater(t, len(letter.Value), 890_000)

	got := invoke(t, "dead-letters", "replay", s.broker)

	require.Equal(t, 1, got.code)
	require.Equal(t, "0 sent to delivery-events; left out: 1 too large to have been kept whole\n", got.stdout)
	require.Equal(t, []string{"deliverystat: 1 dead letters can not be sent back"}, got.lines())
}

// What was refused in a source goes back to the source, if that is named.
func TestADeadLetterOfASourceGoesBackThere(t *testing.T) {
	address := startBroker(t)
	makeTopic(t, address, "orders", 1, nil)
	s := serveAt(t, address, "1", "--sources=orders")
	sendTo(t, address, "orders", sent{key: "O-1", value: "{"})
	s.awaitLetters(t, 1)

	without := invoke(t, "dead-letters", "replay", s.broker)
	require.Equal(t, 1, without.code)
	require.Equal(t, "0 sent to delivery-events; left out: 1 of other topics (--sources names more)\n", without.stdout)
	with := invoke(t, "dead-letters", "replay", s.broker, "--sources=orders=built-in", "--limit=1")

	require.Equal(t, 0, with.code, with.stderr)
	require.Equal(t, "1 sent to delivery-events, orders\n", with.stdout)
	letters := s.awaitLetters(t, 2)
	require.Contains(t, letters[1], `"source":{"topic":"orders","partition":0,"offset":1,`)
}

// Nothing is sent if any line of --from is wrong.
func TestAFaultInAFileOfDeadLettersIsNamed(t *testing.T) {
	broker := "--kafka-brokers=127.0.0.1:1"
	path := filepath.Join(t.TempDir(), "letters.jsonl")
	write(t, path, `{"key":"a","value":"{}"}`+"\n"+`{"key":1}`)
	got := invoke(t, "dead-letters", "replay", broker, "--from="+path)
	require.Equal(t, 2, got.code)
	require.Len(t, got.lines(), 1)
	require.Contains(t, got.stderr, "--from="+path+": reading dead letter 2: ")

	none := invoke(t, "dead-letters", "replay", broker, "--from="+path+"x")
	require.Equal(t, 2, none.code)
	require.Contains(t, none.stderr, "no such file")

	all := invoke(t, "dead-letters", "list", broker, "--reason=bad", "--since=noon", "--limit=-1", "--partition=-2")
	require.Equal(t, 2, all.code)
	require.Len(t, all.lines(), 4, all.stderr)
}
