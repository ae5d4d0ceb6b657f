package codecs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/codecs/codecstest"
)

// notEvents says how many records of a capture are no events, as its README has
// it: one payload is null, one is cut off.
func notEvents(name string, has func(id string) bool) (ignored, refused int) {
	if name == "mariadb-h3-cloudevents-outbox-misconfigured.subset" {
		return 5, 0
	}
	if has("dlv-0019") {
		ignored = 1
	}
	if has("배달-0020") {
		refused = 1
	}
	return ignored, refused
}

func TestCapturedRecordsEndInTheStatedStatuses(t *testing.T) {
	lifecycle := codecs.BuiltinLifecycle()
	fixtures := codecstest.Fixtures()
	require.Len(t, fixtures, 19)
	for _, format := range []string{codecs.FormatAuto, codecs.FormatOutbox} {
		decoder, err := codecs.NewDecoder(format, lifecycle)
		require.NoError(t, err)
		for _, f := range fixtures {
			t.Run(format+"/"+f.Name, func(t *testing.T) {
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
	decoder, err := codecs.NewDecoder(codecs.FormatAuto, codecs.BuiltinLifecycle())
	require.NoError(t, err)
	seen := map[string]codecs.Event{}
	compared := 0
	for _, f := range codecstest.Fixtures() {
		for i := range f.Records {
			var out codecs.Decoded
			decoder.Decode(f.Records[i].Input(), &out)
			if out.Outcome != codecs.IsEvent {
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
