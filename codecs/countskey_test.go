package codecs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
)

func TestCountsKeys(t *testing.T) {
	for _, scope := range []string{"", "region=seoul", "region=a/b", "region=", "region=서울", "/", "c/1/x"} {
		require.Equal(t, "t/"+scope, codecs.TotalKey(scope))
		partition, got, total, ok := codecs.ParseCountsKey(codecs.TotalKey(scope))
		require.True(t, ok)
		require.True(t, total)
		require.Equal(t, scope, got)
		require.Zero(t, partition)

		for _, p := range []int32{0, 7, 2147483647} {
			partition, got, total, ok = codecs.ParseCountsKey(codecs.ContributionKey(p, scope))
			require.True(t, ok)
			require.False(t, total)
			require.Equal(t, scope, got)
			require.Equal(t, p, partition)
		}
	}
	require.Equal(t, "c/7/region=seoul", codecs.ContributionKey(7, "region=seoul"))
	for _, key := range []string{"", codecs.ProgressKey, "t", "c", "c/", "c/7", "c/-1/x", "c/+1/x", "c/07/x", "c/x/y", "c//y", "c/2147483648/x", "x/1/y"} {
		_, _, _, ok := codecs.ParseCountsKey(key)
		require.False(t, ok, "%q", key)
	}
}

func TestAttributesBySpelling(t *testing.T) {
	want := []string{"order_id", "store_id", "region", "service"}
	for a := range codecs.NumAttributes {
		require.Equal(t, want[a], a.String())
		got, ok := codecs.ParseAttribute(a.String())
		require.True(t, ok)
		require.Equal(t, a, got)
	}
	for _, name := range []string{"", "orderId", "Region", "status"} {
		_, ok := codecs.ParseAttribute(name)
		require.False(t, ok, name)
	}
}

func TestReasonsAreAClosedSet(t *testing.T) {
	require.Equal(t, []codecs.Reason{
		"unreadable", "wrong_type", "missing_field", "invalid_id", "invalid_time", "attribute_too_long", "key_mismatch",
		"no_sequence", "wrong_partition", "future", "late",
	}, codecs.Reasons())
}

func TestUnknownFormatNamesTheKnownOnes(t *testing.T) {
	_, err := codecs.NewDecoder("avro", codecs.BuiltinLifecycle())
	require.EqualError(t, err, `unknown events format "avro", want one of auto, native, debezium-outbox, debezium-change, cloudevents`)
}
