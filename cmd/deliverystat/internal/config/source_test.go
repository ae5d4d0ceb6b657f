package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/cmd/deliverystat/internal/config"
	"deliverystat/codecs"
)

// The input of a deployment with sources holds native events; each source is
// read as its profile says, and without one as that of the deployment says.
func TestSourcesAreReadByTheirProfiles(t *testing.T) {
	s := &config.Serve{
		Naming:   config.Naming{KeyPartitioner: "murmur2"},
		Format:   config.Format{EventsFormat: codecs.FormatAuto, Profile: "easypost"},
		Sourcing: config.Sourcing{Sources: []string{"parcels", "meals=uber-direct"}},
	}
	sources := s.SourceList()
	require.Equal(t, []config.Source{{Topic: "parcels"}, {Topic: "meals", Profile: "uber-direct"}}, sources)
	input, err := s.Decoder()
	require.NoError(t, err)
	parcels, err := s.SourceDecoder(sources[0])
	require.NoError(t, err)
	meals, err := s.SourceDecoder(sources[1])
	require.NoError(t, err)
	decode := func(d *codecs.Decoder, value string) (id, status, raw string) {
		var out codecs.Decoded
		d.Decode(&codecs.Record{Key: "any", Value: []byte(value)}, &out)
		if out.Outcome != codecs.IsEvent {
			return out.Detail, "", ""
		}
		return out.Event.DeliveryID, s.Lifecycle().Name(out.Event.Status), out.Event.RawStatus
	}
	require.Empty(t, input.Mapping())
	for _, test := range []struct {
		decoder         *codecs.Decoder
		value           string
		id, status, raw string
	}{
		{input, `{"delivery_id":"any","status":"in_transit","occurred_at":1796000400}`, "any", "IN_TRANSIT", "in_transit"},
		{parcels, `{"result":{"id":"trk_1","status":"in_transit","updated_at":"2024-04-26T19:22:46Z"}}`, "trk_1", "IN_TRANSIT", "in_transit"},
		{meals, `{"delivery_id":"del_1","status":"canceled","created":"2024-07-06T05:12:44Z"}`, "del_1", "CANCELLED", ""},
		{meals, `{"delivery_id":"del_1","status":"pickup","created":"2024-07-06T05:12:44Z"}`, "del_1", "UNKNOWN", "pickup"},
		{meals, `{"result":{"id":"trk_1","status":"in_transit"}}`, "delivery_id is missing", "", ""},
	} {
		id, status, raw := decode(test.decoder, test.value)
		require.Equal(t, [3]string{test.id, test.status, test.raw}, [3]string{id, status, raw}, test.value)
	}

	s.Sources = nil
	alone, err := s.Decoder()
	require.NoError(t, err)
	require.NotEmpty(t, alone.Mapping())
	_, err = s.SourceDecoder(config.Source{Topic: "x", Profile: "nope"})
	require.ErrorContains(t, err, `"nope" is none of the built-in profiles`)
}
