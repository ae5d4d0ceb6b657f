package codecs_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
)

// builtin returns a built-in profile.
func builtin(t testing.TB, name string) *codecs.Profile {
	t.Helper()
	p, ok := codecs.BuiltinProfile(name)
	require.True(t, ok, name)
	return p
}

// decodeAs decodes one value as a profile says.
func decodeAs(t testing.TB, p *codecs.Profile, format, key, value string) codecs.Decoded {
	t.Helper()
	d, err := p.NewDecoder(format)
	require.NoError(t, err)
	var out codecs.Decoded
	d.Decode(&codecs.Record{Key: key, Value: []byte(value)}, &out)
	return out
}

// Each fixture has the shape that the vendor documents; the source is in the
// profile of the same name.
func TestBuiltinProfilesReadWhatVendorsSend(t *testing.T) {
	for _, test := range []struct {
		profile, id, status, raw, at, event string
		attributes                          [codecs.NumAttributes]string
	}{
		{
			"uber-direct", "del_3vXrkzbQThKk1bbEMQ5wLg", "PICKED_UP", "pickup_complete",
			"2024-07-06T05:12:44.287Z", "evt_8sYkQ0pVRPWLRqI1ryxwXA",
			[codecs.NumAttributes]string{},
		},
		{
			"easypost", "trk_09414692cbd24ca392942dde12013010", "DELIVERED", "delivered",
			"2024-04-26T19:22:46Z", "evt_0c98161ae46711edaa3c130acadc8cfa",
			[codecs.NumAttributes]string{codecs.Service: "UPS"},
		},
		{
			"aftership", "grhrexm6t3hiwkjwq37jd003", "IN_TRANSIT", "InTransit",
			"2024-04-10T09:34:56Z", "94dadd60-ed26-46d0-aa52-3ced925a50ff",
			[codecs.NumAttributes]string{codecs.OrderID: "K-20240410-17", codecs.Service: "usps"},
		},
		{
			"korean", "D-20261130-000042", "ASSIGNED", "배차완료",
			"2026-11-30T01:00:00.123456Z", "0b6e5f0a-53a1-4c1e-8f0a-2f6f0f1b7c11",
			[codecs.NumAttributes]string{codecs.Region: "서울", codecs.Service: "courier-a"},
		},
	} {
		t.Run(test.profile, func(t *testing.T) {
			p := builtin(t, test.profile)
			text, err := os.ReadFile("testdata/profiles/" + test.profile + ".json")
			require.NoError(t, err)
			at, err := time.Parse(time.RFC3339Nano, test.at)
			require.NoError(t, err)
			status, ok := p.Lifecycle().Lookup(test.status)
			require.True(t, ok)
			want := codecs.Event{
				DeliveryID: test.id, EventID: test.event, Status: status, RawStatus: test.raw,
				OccurredAt: at.UnixNano(), Attributes: test.attributes,
			}
			want.Hash = p.Lifecycle().HashEvent(&want)
			for format, value := range map[string]string{
				codecs.FormatNative: string(text),
				codecs.FormatAuto:   string(text),
				codecs.FormatOutbox: `{"schema":null,"payload":` + quoteJSON(string(text)) + `}`,
				codecs.FormatChange: change("u", "null", string(text)),

				codecs.FormatCloudEvents: `{"specversion":"1.0","id":"","source":"/s","type":"t","data":` + string(text) + `}`,
			} {
				require.Equal(t, codecs.Decoded{Event: want}, decodeAs(t, p, format, test.id, value), format)
			}
		})
	}
}

// What a vendor sends beside changes of a status is no dead letter.
func TestBuiltinProfilesIgnoreOtherEvents(t *testing.T) {
	for profile, replace := range map[string][2]string{
		"uber-direct": {`"event.delivery_status"`, `"event.courier_update"`},
		"easypost":    {`"tracker.updated"`, `"batch.updated"`},
		"aftership":   {`"tracking_update"`, `"edd_revise"`},
	} {
		text, err := os.ReadFile("testdata/profiles/" + profile + ".json")
		require.NoError(t, err)
		other := strings.Replace(string(text), replace[0], replace[1], 1)
		require.NotEqual(t, string(text), other)
		for _, format := range codecs.Formats() {
			require.Equal(t, codecs.Decoded{Outcome: codecs.IsIgnored}, decodeAs(t, builtin(t, profile), format, "any", other), profile)
		}
	}
}

func TestVendorStatusesAreAllKnown(t *testing.T) {
	for profile, statuses := range map[string]string{
		"uber-direct": "pending=CREATED pickup=ASSIGNED pickup_complete=PICKED_UP dropoff=DELIVERING " +
			"delivered=DELIVERED canceled=CANCELLED returned=RETURNED",
		"easypost": "pre_transit=PRE_TRANSIT in_transit=IN_TRANSIT out_for_delivery=OUT_FOR_DELIVERY available_for_pickup=AVAILABLE_FOR_PICKUP " +
			"delivered=DELIVERED return_to_sender=RETURN_TO_SENDER failure=FAILURE cancelled=CANCELLED error=ERROR",
		"aftership": "Pending=PENDING InfoReceived=INFO_RECEIVED InTransit=IN_TRANSIT OutForDelivery=OUT_FOR_DELIVERY AttemptFail=ATTEMPT_FAIL " +
			"AvailableForPickup=AVAILABLE_FOR_PICKUP Delivered=DELIVERED Exception=EXCEPTION Expired=EXPIRED",
		"korean": "배달생성=CREATED 배차완료=ASSIGNED 픽업준비요청=PICKUP_REQUESTED 배달완료=DELIVERED 취소=CANCELLED IN_TRANSIT=DELIVERING",
	} {
		l := builtin(t, profile).Lifecycle()
		for pair := range strings.FieldsSeq(statuses) {
			sent, want, _ := strings.Cut(pair, "=")
			s, ok := l.Parse(sent)
			require.True(t, ok, sent)
			require.Equal(t, want, l.Name(s))
		}
	}
	terminal := map[string]string{}
	for _, profile := range []string{"easypost", "aftership"} {
		l := builtin(t, profile).Lifecycle()
		for s := range codecs.Status(l.Len()) {
			if l.Terminal(s) {
				terminal[profile] += " " + l.Name(s)
			}
		}
	}
	require.Equal(t, map[string]string{
		"easypost":  " DELIVERED RETURN_TO_SENDER FAILURE CANCELLED ERROR ABANDONED",
		"aftership": " DELIVERED EXPIRED ABANDONED",
	}, terminal)
}

// The labels of the built-in lifecycle are Korean names that the profile takes.
func TestKoreanTakesTheLabels(t *testing.T) {
	l := builtin(t, "korean").Lifecycle()
	for s := codecs.Unknown + 1; s < l.Abandoned(); s++ {
		parsed, ok := l.Parse(l.Info(s).Labels["ko"])
		require.True(t, ok, l.Name(s))
		require.Equal(t, s, parsed)
	}
	require.NotEqual(t, codecs.BuiltinLifecycle().Version(), l.Version())
}

func TestBuiltinProfilesAreNamedAsTheirFiles(t *testing.T) {
	require.Equal(t, []string{"built-in", "aftership", "easypost", "korean", "uber-direct"}, codecs.BuiltinProfiles())
	for _, name := range codecs.BuiltinProfiles() {
		p := builtin(t, name)
		require.Equal(t, name, p.Name())
		for s := range codecs.Status(p.Lifecycle().Len()) {
			require.NotEmpty(t, p.Lifecycle().Info(s).Labels["ko"])
			require.NotEmpty(t, p.Lifecycle().Info(s).Labels["en"])
		}
	}
	require.Equal(t, codecs.BuiltinLifecycle().Version(), builtin(t, "built-in").Lifecycle().Version())
	require.False(t, builtin(t, "built-in").Maps())
	_, ok := codecs.BuiltinProfile("doordash")
	require.False(t, ok)
}
