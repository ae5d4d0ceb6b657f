package codecstest

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"deliverystat/codecs"
)

//go:embed testdata/debezium
var files embed.FS

const (
	folder        = "testdata/debezium"
	keyPartitions = "key-partitions"
)

// KeyPartition says in which of so many partitions Kafka's default partitioner
// put a key.
type KeyPartition struct {
	Key        []byte `json:"key_b64"`
	Partitions int32  `json:"partitions"`
	Partition  int32  `json:"partition"`
}

// KeyPartitions returns the keys of the capture, also those of topics that are
// not among the fixtures.
func KeyPartitions() []KeyPartition {
	return readLines[KeyPartition](keyPartitions)
}

func fileNames() []string {
	entries, err := files.ReadDir(folder)
	must(err, folder)
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".jsonl"); ok && name != keyPartitions {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func readExpected() map[string]map[string]Winner {
	b, err := files.ReadFile(path.Join(folder, "expected.json"))
	must(err, "expected.json")
	var tables map[string]map[string]struct {
		FinalStatus string
		OccurredAt  time.Time
		EventID     string
		Seq         int64
	}
	must(json.Unmarshal(b, &tables), "expected.json")
	expected := make(map[string]map[string]Winner, len(tables))
	for table, deliveries := range tables {
		expected[table] = make(map[string]Winner, len(deliveries))
		for id, d := range deliveries {
			expected[table][id] = Winner{d.FinalStatus, d.EventID, d.OccurredAt.UnixNano(), d.Seq}
		}
	}
	return expected
}

// line is one line of a capture.
type line struct {
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Timestamp int64  `json:"timestamp"` // Unix milliseconds
	Key       []byte `json:"key_b64"`
	Value     []byte `json:"value_b64"`
	Runs      *runs  `json:"value_rle"`
	Headers   []struct {
		Name  string `json:"name"`
		Value []byte `json:"value_b64"`
	} `json:"headers"`
}

// runs is a long value: one byte, many times, between two texts.
type runs struct {
	Prefix []byte `json:"prefix_b64"`
	Byte   byte   `json:"run_byte"`
	Count  int    `json:"run_length"`
	Suffix []byte `json:"suffix_b64"`
	Length int    `json:"length"`
}

func (r *runs) expand() []byte {
	b := slices.Concat(r.Prefix, bytes.Repeat([]byte{r.Byte}, r.Count), r.Suffix)
	if len(b) != r.Length {
		panic(fmt.Sprintf("codecstest: expanded value has %d bytes, want %d", len(b), r.Length))
	}
	return b
}

func readRecords(name string) []Record {
	lines := readLines[line](name)
	records := make([]Record, len(lines))
	for i, l := range lines {
		r := Record{
			Partition: l.Partition, Offset: l.Offset, Timestamp: time.UnixMilli(l.Timestamp).UTC(),
			Key: l.Key, Value: l.Value,
		}
		if l.Runs != nil {
			r.Value = l.Runs.expand()
		}
		for _, h := range l.Headers {
			r.Headers = append(r.Headers, codecs.Header{Key: h.Name, Value: h.Value})
		}
		records[i] = r
	}
	return records
}

func readLines[T any](name string) []T {
	b, err := files.ReadFile(path.Join(folder, name+".jsonl"))
	must(err, name)
	var all []T
	for text := range bytes.Lines(b) {
		var v T
		must(json.Unmarshal(text, &v), name)
		all = append(all, v)
	}
	return all
}

func must(err error, what string) {
	if err != nil {
		panic(fmt.Sprintf("codecstest: reading %s: %v", what, err))
	}
}
