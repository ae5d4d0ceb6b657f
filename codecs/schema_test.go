package codecs_test

import (
	"testing"

	"github.com/bufbuild/protocompile"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"pgregory.net/rapid"

	"deliverystat/codecs"
)

// The bytes are written and read by hand. These tests hold them to the schema:
// a protobuf library that knows deliverystat.proto reads the same values from
// our bytes, and we read the same values from its bytes.

// object is a protobuf message as plain values: only fields that are present,
// repeated ones as []any.
type object = map[string]any

func compileSchema(t *testing.T) protoreflect.FileDescriptor {
	t.Helper()
	compiler := protocompile.Compiler{Resolver: &protocompile.SourceResolver{}}
	files, err := compiler.Compile(t.Context(), "deliverystat.proto")
	require.NoError(t, err)
	return files[0]
}

func plain(m protoreflect.Message) object {
	o := object{}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		one := func(v protoreflect.Value) any {
			if f.Message() != nil {
				return plain(v.Message())
			}
			return v.Interface()
		}
		if f.IsList() {
			var all []any
			for i := range v.List().Len() {
				all = append(all, one(v.List().Get(i)))
			}
			o[string(f.Name())] = all
		} else {
			o[string(f.Name())] = one(v)
		}
		return true
	})
	return o
}

// put sets a field; proto3 fields without presence are absent if they are zero.
func put[T comparable](o object, name string, v T) {
	var zero T
	if v != zero {
		o[name] = v
	}
}

func putTime(o object, name string, v int64) {
	if v != codecs.None {
		o[name] = v
	}
}

func putAll[T any](o object, name string, all []T, as func(T) object) {
	var list []any
	for _, v := range all {
		list = append(list, as(v))
	}
	if list != nil {
		o[name] = list
	}
}

func orderKeyObject(l *codecs.Lifecycle, k codecs.OrderKey) object {
	o := object{"status": l.Name(k.Status)}
	put(o, "occurred_at", k.OccurredAt)
	put(o, "sequence", k.Sequence)
	put(o, "event_id", k.EventID)
	put(o, "hash", k.Hash)
	return o
}

func rowObject(l *codecs.Lifecycle, r *codecs.Row) object {
	o := object{"version": uint32(1), "winner": orderKeyObject(l, r.Winner)}
	put(o, "raw_status", r.RawStatus)
	putTime(o, "horizon", r.Horizon)
	if r.Summarized != (codecs.Closing{}) {
		closing := object{"status": l.Name(r.Summarized.Status)}
		put(closing, "closed_at", r.Summarized.ClosedAt)
		o["summarized"] = closing
	}
	var attributes []any
	for a, v := range r.Attributes {
		if v == (codecs.AttributeValue{}) {
			continue
		}
		attribute := object{"name": codecs.Attribute(a).String()}
		put(attribute, "value", v.Value)
		if v.Key != nil {
			attribute["key"] = orderKeyObject(l, *v.Key)
		}
		attributes = append(attributes, attribute)
	}
	if attributes != nil {
		o["attributes"] = attributes
	}
	putAll(o, "timeline", r.Timeline, func(t codecs.StatusTimes) object {
		times := object{"status": l.Name(t.Status)}
		put(times, "first", t.First)
		if t.Last != t.First {
			times["last"] = t.Last
		}
		return times
	})
	return o
}

func progressObject(p *codecs.Progress) object {
	o := object{"version": uint32(1)}
	put(o, "topic_id", p.TopicID)
	put(o, "next", p.Next)
	put(o, "position", p.Position)
	putTime(o, "clock", p.Clock)
	putTime(o, "horizon", p.Horizon)
	putTime(o, "first_record", p.FirstRecord)
	putTime(o, "last_record", p.LastRecord)
	putAll(o, "settings", p.Settings, func(s codecs.Setting) object {
		setting := object{}
		put(setting, "name", s.Name)
		put(setting, "value", s.Value)
		return setting
	})
	return o
}

func countsProgressObject(p *codecs.CountsProgress) object {
	o := object{"version": uint32(1)}
	put(o, "topic_id", p.TopicID)
	put(o, "next", p.Next)
	putAll(o, "partitions", p.Partitions, func(c codecs.PartitionCounts) object {
		partition := object{}
		put(partition, "partition", c.Partition)
		put(partition, "topic_id", c.TopicID)
		put(partition, "position", c.Position)
		putTime(partition, "clock", c.Clock)
		putTime(partition, "horizon", c.Horizon)
		put(partition, "settings_hash", c.SettingsHash)
		put(partition, "full", c.Full)
		putTime(partition, "audited", c.Audit.At)
		putAll(partition, "row_drift", c.Audit.Rows, statusCountObject)
		putAll(partition, "table_drift", c.Audit.Table, statusCountObject)
		return partition
	})
	return o
}

func statusCountObject(c codecs.StatusCount) object {
	o := object{}
	put(o, "status", c.Status)
	put(o, "live", c.Live)
	put(o, "closed", c.Closed)
	return o
}

func tallyObject(t *codecs.Tally) object {
	o := object{"version": uint32(1)}
	put(o, "partition", t.Partition)
	put(o, "topic_id", t.TopicID)
	put(o, "full", t.Full)
	put(o, "part", t.Part)
	put(o, "parts", t.Parts)
	put(o, "position", t.Position)
	putTime(o, "clock", t.Clock)
	putTime(o, "horizon", t.Horizon)
	put(o, "settings_hash", t.SettingsHash)
	putAll(o, "scopes", t.Scopes, func(s codecs.ScopeCounts) object {
		scope := object{}
		put(scope, "scope", s.Scope)
		putAll(scope, "counts", s.Counts, statusCountObject)
		return scope
	})
	put(o, "check", t.Check)
	putTime(o, "audited", t.Audited)
	putAll(o, "drift", t.Drift, statusCountObject)
	return o
}

// holdsTo checks one value in both directions.
func holdsTo[T any](t *rapid.T, schema protoreflect.MessageDescriptor, value T, want object, b []byte, read func([]byte) (T, error)) {
	m := dynamicpb.NewMessage(schema)
	if err := proto.Unmarshal(b, m); err != nil {
		t.Fatalf("a protobuf library does not read our bytes: %v", err)
	}
	if n := len(m.GetUnknown()); n > 0 {
		t.Fatalf("%d bytes are not in the schema", n)
	}
	if diff := cmp.Diff(want, plain(m)); diff != "" {
		t.Fatalf("a protobuf library reads other values (-want +got):\n%s", diff)
	}
	theirs, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	got, err := read(theirs)
	if err != nil {
		t.Fatalf("reading a protobuf library's bytes: %v", err)
	}
	if diff := cmp.Diff(value, got); diff != "" {
		t.Fatalf("we read other values from a protobuf library's bytes (-want +got):\n%s", diff)
	}
	got, err = read(b)
	if err != nil {
		t.Fatalf("reading our bytes: %v", err)
	}
	if diff := cmp.Diff(value, got); diff != "" {
		t.Fatalf("we read other values from our bytes (-want +got):\n%s", diff)
	}
}

func TestBytesHoldToTheSchema(t *testing.T) {
	schema := compileSchema(t)
	message := func(name protoreflect.Name) protoreflect.MessageDescriptor {
		m := schema.Messages().ByName(name)
		require.NotNil(t, m, name)
		return m
	}
	l := codecs.BuiltinLifecycle()
	t.Run("Row", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			r := anyRow(l).Draw(t, "row")
			holdsTo(t, message("Row"), r, rowObject(l, r), l.AppendRow(nil, r), l.ReadRow)
		})
	})
	t.Run("Progress", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			p := anyProgress.Draw(t, "progress")
			holdsTo(t, message("Progress"), p, progressObject(p), codecs.AppendProgress(nil, p), codecs.ReadProgress)
		})
	})
	t.Run("CountsProgress", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			p := anyCountsProgress.Draw(t, "progress")
			holdsTo(t, message("CountsProgress"), p, countsProgressObject(p), codecs.AppendCountsProgress(nil, p), codecs.ReadCountsProgress)
		})
	})
	t.Run("Tally", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			tally := anyTally.Draw(t, "tally")
			holdsTo(t, message("Tally"), tally, tallyObject(tally), codecs.AppendTally(nil, tally), codecs.ReadTally)
		})
	})
	t.Run("StatusCounts", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			counts := anyStatusCounts.Draw(t, "counts")
			want := object{"version": uint32(1)}
			putAll(want, "counts", counts, statusCountObject)
			holdsTo(t, message("StatusCounts"), counts, want, codecs.AppendCounts(nil, counts), codecs.ReadCounts)
		})
	})
}

func TestEveryMessageOfATopicHasItsVersionFirst(t *testing.T) {
	schema := compileSchema(t)
	require.Equal(t, protoreflect.FullName("deliverystat.v1"), schema.Package())
	for _, name := range []protoreflect.Name{"Row", "Progress", "CountsProgress", "Tally", "StatusCounts"} {
		version := schema.Messages().ByName(name).Fields().ByNumber(1)
		require.Equal(t, protoreflect.Name("version"), version.Name(), name)
		require.Equal(t, protoreflect.Uint32Kind, version.Kind(), name)
	}
}
