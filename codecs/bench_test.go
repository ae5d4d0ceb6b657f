package codecs_test

import (
	"testing"

	"deliverystat/codecs"
)

func benchmarkRow(_ *codecs.Lifecycle) *codecs.Row {
	row := &codecs.Row{
		Winner: codecs.OrderKey{
			OccurredAt: 1_796_000_400_123_456_000, Status: 4, Sequence: 4,
			EventID: "0b6e5f0a-53a1-4c1e-8f0a-2f6f0f1b7c11", Hash: 0xfedcba9876543210,
		},
		Attributes: [codecs.NumAttributes]codecs.AttributeValue{{Value: "O-77"}, {Value: "S-9"}, {Value: "seoul"}, {Value: "courier-a"}},
		Horizon:    1_795_000_000_000_000_001,
	}
	for s := codecs.Status(1); s <= 4; s++ {
		at := 1_796_000_000_000_000_000 + int64(s)
		row.Timeline = append(row.Timeline, codecs.StatusTimes{Status: s, First: at, Last: at})
	}
	return row
}

func BenchmarkRow(b *testing.B) {
	l := codecs.BuiltinLifecycle()
	row := benchmarkRow(l)
	wire := l.AppendRow(nil, row)
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		buf := make([]byte, 0, 1024)
		for b.Loop() {
			buf = l.AppendRow(buf[:0], row)
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := l.ReadRow(wire); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	l := codecs.BuiltinLifecycle()
	for _, c := range []struct{ name, format, value string }{
		{"native", codecs.FormatNative, nativeEvent},
		{"auto", codecs.FormatAuto, nativeEvent},
		{"escaped", codecs.FormatOutbox, quoteJSON(nativeEvent)},
	} {
		b.Run(c.name, func(b *testing.B) {
			d, err := codecs.NewDecoder(c.format, l)
			if err != nil {
				b.Fatal(err)
			}
			r := &codecs.Record{Key: "D-20261130-000042", Value: []byte(c.value)}
			var out codecs.Decoded
			b.ReportAllocs()
			b.SetBytes(int64(len(r.Value)))
			for b.Loop() {
				d.Decode(r, &out)
			}
			if out.Outcome != codecs.IsEvent {
				b.Fatal(out.Detail)
			}
		})
	}
}
