package codecs_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"deliverystat/codecs"
	"deliverystat/codecs/codecstest"
)

// notEvents says how many records of a capture are no events, as its README has
// it: one payload is null, one is cut off.
func notEvents(name string, has func(id string) bool) (ignored, refused int) {
	switch name {
	case "mariadb-f-raw-envelope":
		ignored = 2 + 2 + 1 // op d, tombstones, op u
	case "mariadb-f-resnapshot.subset":
		ignored = 2 + 2 + 1
	case "mariadb-f2-raw-envelope-schemas-keyed.subset", "mariadb-h-cloudevents-raw.subset":
		ignored = 1
	case "mariadb-h3-cloudevents-outbox-misconfigured.subset":
		return 5, 0
	}
	if has("dlv-0019") {
		ignored++
	}
	if has("배달-0020") {
		refused = 1
	}
	return ignored, refused
}

// decoderOf returns a decoder for the records of f.
func decoderOf(t testing.TB, format string, f *codecstest.Fixture) *codecs.Decoder {
	t.Helper()
	d, err := codecs.NewDecoder(format, codecs.BuiltinLifecycle())
	require.NoError(t, err)
	if f.OtherKeys {
		return d.AnyKey()
	}
	return d
}

func TestCapturedRecordsEndInTheStatedStatuses(t *testing.T) {
	lifecycle := codecs.BuiltinLifecycle()
	fixtures := codecstest.Fixtures()
	require.Equal(t, 23, len(fixtures)) //nolint:testifylint // Len would print them all
	for _, f := range fixtures {
		for _, format := range []string{codecs.FormatAuto, f.Format} {
			t.Run(format+"/"+f.Name, func(t *testing.T) {
				decoder := decoderOf(t, format, &f)
				byTime := map[string]codecs.Event{}
				bySequence := map[string]codecs.Event{}
				var ignored, refused int
				for i := range f.Records {
					var out codecs.Decoded
					decoder.Decode(f.Records[i].Input(), &out)
					switch out.Outcome {
					case codecs.IsIgnored:
						ignored++
						continue
					case codecs.IsRefused:
						require.Equal(t, codecs.Unreadable, out.Reason, out.Detail)
						refused++
						continue
					case codecs.IsEvent:
					}
					e := out.Event
					require.Empty(t, e.RawStatus)
					require.Equal(t, f.WantBySequence != nil, e.Sequenced)
					if best, ok := byTime[e.DeliveryID]; !ok || later(&e, &best) {
						byTime[e.DeliveryID] = e
					}
					if best, ok := bySequence[e.DeliveryID]; !ok || e.Sequence > best.Sequence || e.Sequence == best.Sequence && later(&e, &best) {
						bySequence[e.DeliveryID] = e
					}
				}
				require.Equal(t, f.Winners, winners(lifecycle, byTime))
				if f.WantBySequence != nil {
					require.Equal(t, f.WinnersBySequence, winners(lifecycle, bySequence))
				}
				wantIgnored, wantRefused := notEvents(f.Name, func(id string) bool { return f.Want[id] != "" })
				require.Equal(t, wantIgnored, ignored, "ignored")
				require.Equal(t, wantRefused, refused, "refused")
				for id, status := range f.Want {
					require.Equal(t, status, f.Winners[id].Status)
				}
			})
		}
	}
}

func later(a, b *codecs.Event) bool {
	return a.OccurredAt > b.OccurredAt || a.OccurredAt == b.OccurredAt && a.Status > b.Status
}

func winners(l *codecs.Lifecycle, events map[string]codecs.Event) map[string]codecstest.Winner {
	all := map[string]codecstest.Winner{}
	for id, e := range events {
		all[id] = codecstest.Winner{Status: l.Name(e.Status), EventID: e.EventID, OccurredAt: e.OccurredAt, Sequence: e.Sequence}
	}
	return all
}

// An event says the same in every configuration of the connector.
func TestCapturedEventsAreTheSameInEveryShape(t *testing.T) {
	seen := map[string]codecs.Event{}
	compared := 0
	for _, f := range codecstest.Fixtures() {
		decoder := decoderOf(t, codecs.FormatAuto, &f)
		for i := range f.Records {
			var out codecs.Decoded
			decoder.Decode(f.Records[i].Input(), &out)
			if out.Outcome != codecs.IsEvent || f.Name == "mariadb-f-resnapshot.subset" && i == updatedRow(t, &f) {
				continue
			}
			if first, ok := seen[out.Event.EventID]; ok {
				require.Equal(t, first, out.Event, f.Name)
				compared++
			}
			seen[out.Event.EventID] = out.Event
		}
	}
	require.Greater(t, compared, 400)
}

// updatedRow returns the record of the row of dlv-0018 that was updated.
func updatedRow(t *testing.T, f *codecstest.Fixture) int {
	t.Helper()
	for i := range f.Records {
		row := gjson.GetBytes(f.Records[i].Value, "after")
		if gjson.GetBytes(f.Records[i].Value, "op").Str == "r" && row.Get("aggregateid").Str == "dlv-0018" && row.Get("type").Str == "DeliveryDelivering" {
			return i
		}
	}
	t.Fatal("no such record")
	return -1
}

// Keys of change events are those of outbox rows, which direct mode refuses.
func TestCapturedRecordsWithOtherKeysAreStrays(t *testing.T) {
	strays := 0
	for _, f := range codecstest.Fixtures() {
		if !f.OtherKeys {
			continue
		}
		direct, err := codecs.NewDecoder(codecs.FormatAuto, codecs.BuiltinLifecycle())
		require.NoError(t, err)
		for i := range f.Records {
			var out, anyKey codecs.Decoded
			direct.Decode(f.Records[i].Input(), &out)
			direct.AnyKey().Decode(f.Records[i].Input(), &anyKey)
			if anyKey.Outcome == codecs.IsEvent {
				require.Equal(t, codecs.KeyMismatch, out.Reason, out.Detail)
				strays++
			} else {
				require.Equal(t, anyKey, out)
			}
		}
	}
	require.Equal(t, 92+20+5, strays)
}

func TestCapturedDuplicatesAreEqualEvents(t *testing.T) {
	decoder, err := codecs.NewDecoder(codecs.FormatAuto, codecs.BuiltinLifecycle())
	require.NoError(t, err)
	for _, f := range codecstest.Fixtures() {
		if f.Name != "mariadb-k-kill9-duplicates" {
			continue
		}
		hashes := map[uint64]bool{}
		for i := range f.Records {
			var out codecs.Decoded
			decoder.Decode(f.Records[i].Input(), &out)
			require.Equal(t, codecs.IsEvent, out.Outcome)
			hashes[out.Event.Hash] = true
		}
		require.Len(t, f.Records, 70)
		require.Len(t, hashes, 60)
	}
}
