package codecs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
)

func TestBuiltinLifecycle(t *testing.T) {
	l := codecs.BuiltinLifecycle()
	var names, terminal []string
	for s := range codecs.Status(l.Len()) {
		info := l.Info(s)
		require.Equal(t, info.Name, l.Name(s))
		require.Equal(t, info.Terminal, l.Terminal(s))
		require.NotEmpty(t, info.Labels["ko"], info.Name)
		require.NotEmpty(t, info.Labels["en"], info.Name)
		names = append(names, info.Name)
		if info.Terminal {
			terminal = append(terminal, info.Name)
		}
		found, ok := l.Lookup(info.Name)
		require.True(t, ok)
		require.Equal(t, s, found)
	}
	require.Equal(t, []string{
		"UNKNOWN", "CREATED", "ASSIGNED", "PICKUP_REQUESTED", "PICKED_UP", "DELIVERING", "RETURNING",
		"DELIVERED", "CANCELLED", "RETURNED", "FAILED", "ABANDONED",
	}, names)
	require.Equal(t, []string{"DELIVERED", "CANCELLED", "RETURNED", "FAILED", "ABANDONED"}, terminal)
	require.Equal(t, "ABANDONED", l.Name(l.Abandoned()))
	require.Equal(t, "UNKNOWN", l.Name(codecs.Unknown))
	require.Equal(t, []string{"IN_TRANSIT"}, l.Info(5).Aliases)

	// It is one that a profile could give.
	var middle []codecs.StatusInfo
	for s := codecs.Unknown + 1; s < l.Abandoned(); s++ {
		middle = append(middle, l.Info(s))
	}
	again, err := codecs.NewLifecycle(middle)
	require.NoError(t, err)
	require.Equal(t, l.Version(), again.Version())
}

func TestParseTakesAliasesAndNeverABANDONED(t *testing.T) {
	l := codecs.BuiltinLifecycle()
	for name, want := range map[string]string{"CREATED": "CREATED", "DELIVERING": "DELIVERING", "IN_TRANSIT": "DELIVERING", "UNKNOWN": "UNKNOWN"} {
		s, ok := l.Parse(name)
		require.True(t, ok, name)
		require.Equal(t, want, l.Name(s))
	}
	for _, name := range []string{"", "ABANDONED", "created", "ON_A_BOAT"} {
		s, ok := l.Parse(name)
		require.False(t, ok, name)
		require.Equal(t, codecs.Unknown, s)
	}
	s, ok := l.Lookup("ABANDONED")
	require.True(t, ok)
	require.Equal(t, l.Abandoned(), s)
	_, ok = l.Lookup("IN_TRANSIT")
	require.False(t, ok)
}

func TestNewLifecycleReportsAllFaultsAtOnce(t *testing.T) {
	_, err := codecs.NewLifecycle([]codecs.StatusInfo{
		{Name: "CREATED", Aliases: []string{"NEW", "DONE", ""}},
		{Name: "created"},
		{Name: ""},
		{Name: "A-B"},
		{Name: "9"},
		{Name: strings.Repeat("A", 257)},
		{Name: "CREATED"},
		{Name: "UNKNOWN"},
		{Name: "ABANDONED", Terminal: true},
		{Name: "REOPENED"},
		{Name: "DONE", Terminal: true, Aliases: []string{"NEW", "ABANDONED", "UNKNOWN", "DONE", "a\nb", "배달완료", "배달완료"}},
	})
	require.Equal(t, []string{
		`status name "created" is not 1 to 256 bytes of [A-Z][A-Z0-9_]*`,
		`status name "" is not 1 to 256 bytes of [A-Z][A-Z0-9_]*`,
		`status name "A-B" is not 1 to 256 bytes of [A-Z][A-Z0-9_]*`,
		`status name "9" is not 1 to 256 bytes of [A-Z][A-Z0-9_]*`,
		`status name "` + strings.Repeat("A", 257) + `" is not 1 to 256 bytes of [A-Z][A-Z0-9_]*`,
		`status CREATED is defined twice`,
		`status UNKNOWN is part of every lifecycle and can not be defined`,
		`status ABANDONED is part of every lifecycle and can not be defined`,
		`status REOPENED can not be defined: summaries say so of a delivery that re-opens`,
		`alias DONE of CREATED is the name of a status`,
		`alias "" of CREATED is not 1 to 256 bytes of UTF-8 without control characters`,
		`alias NEW of DONE is already an alias of CREATED`,
		`alias ABANDONED of DONE is the name of a status`,
		`alias UNKNOWN of DONE is the name of a status`,
		`alias DONE of DONE is the name of a status`,
		`alias "a\nb" of DONE is not 1 to 256 bytes of UTF-8 without control characters`,
		`alias 배달완료 of DONE is already an alias of DONE`,
	}, strings.Split(err.Error(), "\n"))

	_, err = codecs.NewLifecycle(nil)
	require.EqualError(t, err, "lifecycle has no statuses")

	var many []codecs.StatusInfo
	for i := range 254 {
		many = append(many, codecs.StatusInfo{Name: fmt.Sprintf("S%d", i)})
	}
	l, err := codecs.NewLifecycle(many)
	require.NoError(t, err)
	require.Equal(t, 256, l.Len())
	require.Equal(t, "ABANDONED", l.Name(l.Abandoned()))
	require.Equal(t, "S253", l.Name(254))
	_, err = codecs.NewLifecycle(append(many, codecs.StatusInfo{Name: "S254"}))
	require.EqualError(t, err, "lifecycle has 255 statuses, more than 254")
}

func TestVersionTellsMeaningApart(t *testing.T) {
	version := func(statuses ...codecs.StatusInfo) string {
		l, err := codecs.NewLifecycle(statuses)
		require.NoError(t, err)
		return l.Version()
	}
	a := codecs.StatusInfo{Name: "A", Aliases: []string{"X", "Y"}}
	b := codecs.StatusInfo{Name: "B", Terminal: true}
	base := version(a, b)
	require.Regexp(t, "^[0-9a-f]{16}$", base)
	require.Equal(t, base, version(codecs.StatusInfo{Name: "A", Aliases: []string{"Y", "X"}, Labels: map[string]string{"ko": "가"}}, b))
	seen := map[string]bool{base: true}
	for _, v := range []string{
		version(b, a),
		version(a),
		version(a, codecs.StatusInfo{Name: "B"}),
		version(codecs.StatusInfo{Name: "A", Aliases: []string{"X"}}, b),
		version(codecs.StatusInfo{Name: "A", Aliases: []string{"XY"}}, b),
		version(codecs.StatusInfo{Name: "A"}, codecs.StatusInfo{Name: "B", Terminal: true, Aliases: []string{"X", "Y"}}),
		version(codecs.StatusInfo{Name: "AX", Aliases: []string{"Y"}}, b),
	} {
		require.False(t, seen[v], v)
		seen[v] = true
	}
	require.NotEqual(t, version(codecs.StatusInfo{Name: "A"}, codecs.StatusInfo{Name: "B"}),
		version(codecs.StatusInfo{Name: "A", Aliases: []string{"B", "false"}}))
}

func TestLifecycleIsNotTheCallersSlice(t *testing.T) {
	given := []codecs.StatusInfo{{Name: "A", Aliases: []string{"X"}, Labels: map[string]string{"en": "Ay"}}}
	l, err := codecs.NewLifecycle(given)
	require.NoError(t, err)
	given[0].Name, given[0].Aliases[0], given[0].Labels["en"] = "Z", "Z", "Z"
	require.Equal(t, codecs.StatusInfo{Name: "A", Aliases: []string{"X"}, Labels: map[string]string{"en": "Ay"}}, l.Info(1))
}
