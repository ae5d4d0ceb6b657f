package codecstest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs/codecstest"
)

func TestFixturesAreWhole(t *testing.T) {
	want := map[string][2]int{ // records, deliveries
		"mariadb-a-string-json-expanded":                     {94, 20},
		"mariadb-a2-string-json-expanded-nulls-kept.subset":  {32, 6},
		"mariadb-b-string-json-escaped":                      {94, 20},
		"mariadb-b2-string-raw-tombstone.subset":             {32, 6},
		"mariadb-c-json-json-schemas.subset":                 {32, 6},
		"mariadb-d2-string-raw-headers-eventtime":            {94, 20},
		"mariadb-e-bytes.subset":                             {32, 6},
		"mariadb-f-raw-envelope":                             {99, 20},
		"mariadb-f-resnapshot.subset":                        {25, 2},
		"mariadb-f2-raw-envelope-schemas-keyed.subset":       {6, 1},
		"mariadb-g-exactly-once.subset":                      {32, 6},
		"mariadb-g2-kill9-exactly-once.read_committed":       {60, 5},
		"mariadb-g2-kill9-exactly-once.read_uncommitted":     {72, 5},
		"mariadb-h-cloudevents-raw.subset":                   {6, 1},
		"mariadb-h3-cloudevents-outbox-misconfigured.subset": {5, 0},
		"mariadb-k-kill9-duplicates":                         {70, 5},
		"mariadb-poison-escaped-passes":                      {3, 1},
		"mariadb-poison-expanded-stops":                      {1, 1},
		"mariadb-s-sequence-table":                           {21, 5},
		"postgres-a-string-json-expanded.subset":             {38, 7},
		"postgres-b-string-json-escaped.subset":              {38, 7},
		"postgres-c-json-json-schemas.subset":                {11, 2},
		"postgres-s-sequence-table.subset":                   {8, 2},
	}
	got := map[string][2]int{}
	for _, f := range codecstest.Fixtures() {
		got[f.Name] = [2]int{len(f.Records), len(f.Want)}
		partitions := map[string]int32{}
		for i, r := range f.Records {
			require.Less(t, r.Partition, int32(8))
			require.NotEmpty(t, r.Key)
			if p, ok := partitions[string(r.Key)]; ok {
				require.Equal(t, p, r.Partition, "a key has one partition")
			}
			partitions[string(r.Key)] = r.Partition
			if i > 0 && f.Records[i-1].Partition == r.Partition {
				require.Greater(t, r.Offset, f.Records[i-1].Offset)
			}
			if f.Name == "mariadb-a-string-json-expanded" && len(r.Value) > 20_000 {
				require.Greater(t, len(r.Value), 500_000, "the run of dlv-0010 is expanded")
			}
		}
	}
	require.Equal(t, want, got)
}

func TestKeyPartitionsAgreeWithTheRecords(t *testing.T) {
	partition := map[string]int32{}
	for _, k := range codecstest.KeyPartitions() {
		require.Equal(t, int32(8), k.Partitions)
		partition[string(k.Key)] = k.Partition
	}
	compared := 0
	for _, f := range codecstest.Fixtures() {
		for _, r := range f.Records {
			if p, ok := partition[string(r.Key)]; ok { // all but dlv-0021
				require.Equal(t, p, r.Partition, "%s", r.Key)
				compared++
			}
		}
	}
	require.Greater(t, compared, 700)
}
