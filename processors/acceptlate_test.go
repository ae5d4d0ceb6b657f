package processors_test

import (
	"testing"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/processors"
)

// marked is r as somebody sends it back who wants it applied though it is late.
func (r fakeRecord) marked() fakeRecord {
	r.headers = goka.Headers{processors.HeaderAcceptLate: []byte("true")}
	return r
}

// Delivery a is closed and forgotten; the horizon is its last order time, second
// 2. Its event of second 1 comes again and again.
func TestALateEventIsAppliedOnDemand(t *testing.T) {
	late := wire("a", "PICKED_UP", 1, "region", "seoul").arriving(10)
	f := run(t, shortSettings(), wire("a", "CREATED", 0), wire("a", "DELIVERED", 2), wire("b", "CREATED", 10), late)
	require.Equal(t, sec(2), f.progress().Horizon)
	require.Len(t, f.letters(), 1)
	require.Equal(t, map[string]string{"b": "CREATED"}, f.statuses())

	f.produce(late.marked(), late.marked(), late)
	f.drain()

	require.Equal(t, map[string]string{"a": "PICKED_UP", "b": "CREATED"}, f.statuses(), "counted once")
	require.Equal(t, sec(2), mustRow(t, f, "a").Horizon)
	require.Len(t, f.letters(), 2, "what is not marked stays late, though its delivery is known now")

	f.produce(wire("a", "CREATED", 0).arriving(10), wire("a", "DELIVERED", 11))
	f.drain()
	require.Len(t, f.letters(), 3, "an older event of the old life stays late")
	require.Equal(t, map[string]string{"a": "DELIVERED", "b": "CREATED"}, f.statuses(), "the new life goes on")
}

// A mark that says anything else is none, and a mark changes nothing for an event
// that is not late.
func TestAMarkOnlyLetsLateEventsPass(t *testing.T) {
	late := wire("a", "PICKED_UP", 1).arriving(10)
	late.headers = goka.Headers{processors.HeaderAcceptLate: []byte("yes")}
	unreadable := fakeRecord{key: "a", value: []byte("{"), timestamp: late.timestamp}.marked()
	future := wire("a", "PICKED_UP", 9999).arriving(10).marked()
	f := run(t, shortSettings(), wire("a", "CREATED", 0), wire("a", "DELIVERED", 2), wire("b", "CREATED", 10).marked(),
		late, unreadable, future)

	require.Equal(t, map[string]string{"b": "CREATED"}, f.statuses())
	var reasons []string
	for _, l := range f.letters() {
		reasons = append(reasons, string(l.Headers[processors.HeaderReason]))
	}
	require.Equal(t, []string{string(codecs.TooLate), string(codecs.Unreadable), string(codecs.Future)}, reasons)
}

// The event closes its delivery further back than closed deliveries are kept.
// It is applied, and nothing of it stays but its summary.
func TestALateEndIsForgottenAtOnce(t *testing.T) {
	f := run(t, shortSettings(), wire("a", "CREATED", 0), wire("a", "DELIVERED", 2), wire("b", "CREATED", 10),
		wire("a", "FAILED", 1).arriving(10).marked())

	require.Equal(t, map[string]string{"b": "CREATED"}, f.statuses())
	require.Empty(t, f.letters())
	require.Equal(t, sec(2), f.progress().Horizon)
}
