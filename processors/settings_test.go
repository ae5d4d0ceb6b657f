package processors_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/processors"
)

func TestDefaultSettingsAreValid(t *testing.T) {
	require.NoError(t, processors.DefaultSettings().Validate(false))
}

func TestValidateReportsEveryFault(t *testing.T) {
	s := &processors.Settings{
		OrderBy: "age", Lateness: -1, AbandonAfter: -2, MaxFuture: -3, TerminalSkew: -4,
		Dimensions: []codecs.Attribute{codecs.Region, codecs.Region, codecs.NumAttributes},
	}
	err := s.Validate(true)
	for _, want := range []string{
		"lifecycle: missing", `order-by: "age"`, "allowed-lateness: -1ns", "abandon-after: -2ns", "max-future: -3ns",
		"terminal-skew: -4ns", "region is named twice", "no attribute number 4",
	} {
		require.ErrorContains(t, err, want)
	}
}

func TestLatenessMustExceedWhatClocksMayDiffer(t *testing.T) {
	s := processors.DefaultSettings()
	s.Lateness = s.MaxFuture + time.Hour
	require.ErrorContains(t, s.Validate(false), "does not exceed max-future 10m0s + 1h0m0s")
	require.NoError(t, s.Validate(true))
	s.Lateness++
	require.NoError(t, s.Validate(false))
	s.TerminalSkew = s.Lateness
	require.ErrorContains(t, s.Validate(false), "does not exceed terminal-skew")
	s.TerminalSkew--
	require.NoError(t, s.Validate(false))
}

func TestHashTellsEverySettingApart(t *testing.T) {
	base := processors.DefaultSettings()
	lifecycle, err := codecs.NewLifecycle([]codecs.StatusInfo{{Name: "NEW"}, {Name: "DONE", Terminal: true}})
	require.NoError(t, err)
	for name, alter := range map[string]func(*processors.Settings){
		"lifecycle":        func(s *processors.Settings) { s.Lifecycle = lifecycle },
		"order-by":         func(s *processors.Settings) { s.OrderBy = processors.BySequence },
		"allowed-lateness": func(s *processors.Settings) { s.Lateness++ },
		"abandon-after":    func(s *processors.Settings) { s.AbandonAfter++ },
		"max-future":       func(s *processors.Settings) { s.MaxFuture++ },
		"terminal-skew":    func(s *processors.Settings) { s.TerminalSkew++ },
		"mapping":          func(s *processors.Settings) { s.Mapping = "0123456789abcdef" },
		"dimensions":       func(s *processors.Settings) { s.Dimensions = []codecs.Attribute{codecs.Service} },
	} {
		s := processors.DefaultSettings()
		require.Equal(t, base.Hash(), s.Hash())
		require.NoError(t, s.CheckSettings(base.Values()))
		alter(s)
		require.NotEqual(t, base.Hash(), s.Hash(), name)
		require.Error(t, base.CheckSettings(s.Values()), name)
		var differ *processors.SettingsError
		require.ErrorAs(t, s.CheckSettings(base.Values()), &differ)
		require.Len(t, differ.Differences, 1)
		require.Equal(t, name, differ.Differences[0].Name)
	}
}

func TestCheckSettingsOfAnotherRelease(t *testing.T) {
	s := processors.DefaultSettings()
	stored := append(s.Values()[1:], codecs.Setting{Name: "moon-phase", Value: "full"})
	var differ *processors.SettingsError
	require.ErrorAs(t, s.CheckSettings(stored), &differ)
	require.Equal(t, []processors.SettingDifference{
		{Name: "abandon-after", Stored: "", Configured: "168h0m0s"},
		{Name: "moon-phase", Stored: "full", Configured: ""},
	}, differ.Differences)
}

func TestParseDimensions(t *testing.T) {
	got, err := processors.ParseDimensions([]string{"service", "region"})
	require.NoError(t, err)
	require.Equal(t, []codecs.Attribute{codecs.Service, codecs.Region}, got)
	_, err = processors.ParseDimensions([]string{"city", "region", "zip"})
	require.ErrorContains(t, err, `"city"`)
	require.ErrorContains(t, err, `"zip"`)
}

func TestTopicNames(t *testing.T) {
	topics := processors.NewTopics("green-", "orders")
	require.Equal(t, "orders", topics.Events, "a name that is given is not prefixed")
	require.Equal(t, "green-latest-delivery-table", topics.DeliveryTable)
	require.Equal(t, topics.DeliveryTable, topics.DeliveryGroup+"-table", "goka derives it from the group")
	require.Equal(t, topics.CountsTable, topics.CountsGroup+"-table")
}
