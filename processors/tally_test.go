package processors_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/processors"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func TestSplitTallyKeepsEveryScopeInOrder(t *testing.T) {
	whole := tallyOf(3, 7)
	for i := range 100 {
		whole.Scopes = append(whole.Scopes, codecs.ScopeCounts{
			Scope:  fmt.Sprintf("region=%02d", 99-i),
			Counts: []codecs.StatusCount{{Status: "DELIVERED", Closed: 1 << 62}, {Status: "CREATED", Live: -1 << 62}},
		})
	}
	for _, limit := range []int{1, 500, 1000, 5000, 1 << 20} {
		parts := processors.SplitTally(whole, limit)
		var scopes []string
		for i, p := range parts {
			require.Equal(t, int32(i), p.Part)
			require.Equal(t, int32(len(parts)), p.Parts)
			require.Equal(t, []any{int32(3), int64(7), true, uint64(7)}, []any{p.Partition, p.Position, p.Full, p.SettingsHash})
			if limit >= 500 {
				require.LessOrEqual(t, len(codecs.AppendTally(nil, p)), limit)
			}
			require.NotEmpty(t, p.Scopes)
			for _, sc := range p.Scopes {
				scopes = append(scopes, sc.Scope)
				require.Equal(t, "CREATED", sc.Counts[0].Status)
			}
		}
		require.Len(t, scopes, 100)
		require.True(t, slices.IsSorted(scopes))
	}
	require.Len(t, processors.SplitTally(whole, 1<<20), 1)
	require.Len(t, processors.SplitTally(whole, 1), 100, "a scope is never divided")
}

func TestSplitTallyWithoutScopes(t *testing.T) {
	parts := processors.SplitTally(tallyOf(0, 7), 1000)
	require.Len(t, parts, 1)
	require.Equal(t, int32(1), parts[0].Parts)
}

func TestScopesOfARow(t *testing.T) {
	s := shortSettings()
	s.Dimensions = []codecs.Attribute{codecs.Region, codecs.Service}
	require.Equal(t, []string{"", "region=seoul", "service="}, s.Scopes(fold(s, event("CREATED", 1, region("seoul")))))
}

// A delivery moves between scopes as between statuses.
func TestMoveBetweenScopes(t *testing.T) {
	f := run(t, eternalSettings(),
		wire("a", "CREATED", 1, "region", "seoul"),
		wire("b", "CREATED", 1, "region", "seoul"),
		wire("a", "ASSIGNED", 2, "region", "busan"),
		wire("b", "ASSIGNED", 0.5), // stale, says nothing of a region
		wire("c", "CREATED", 1),
	)
	require.Equal(t, counts{
		"":             {"live CREATED": 2, "live ASSIGNED": 1},
		"region=":      {"live CREATED": 1},
		"region=seoul": {"live CREATED": 1},
		"region=busan": {"live ASSIGNED": 1},
	}, told(f.tallies()))
	f.produce(wire("b", "CREATED", 1.5, "region", "busan"), wire("c", "CREATED", 0.5, "region", "busan")) // c: by a stale event
	f.drain()
	require.Equal(t, counts{
		"":             {"live CREATED": 2, "live ASSIGNED": 1},
		"region=busan": {"live CREATED": 2, "live ASSIGNED": 1},
	}, told(f.tallies()))
	f.crash()
	f.drain()
	require.Equal(t, f.recount(), told(f.tallies()[len(f.tallies())-1:]))
}

// Values are data: one that looks like two stays one.
func TestScopesOfStrangeValuesDoNotMix(t *testing.T) {
	s := eternalSettings()
	s.Dimensions = []codecs.Attribute{codecs.Region, codecs.Service}
	f := run(t, s,
		wire("a", "CREATED", 1, "region", "x", "service", "y=z"),
		wire("b", "CREATED", 1, "region", "x,service=y", "service", ""),
		wire("c", "CREATED", 1, "region", strings.Repeat("r", 256), "service", "service="))
	require.Equal(t, []string{"", "region=" + strings.Repeat("r", 256), "region=x", "region=x,service=y", "service=", "service=service=", "service=y=z"},
		sortedKeys(told(f.tallies())))
}
