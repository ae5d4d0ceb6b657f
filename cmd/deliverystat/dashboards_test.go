package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// panel is what the checks look at in a panel of a dashboard.
type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               struct{ UID string }
	FieldConfig              struct{ Defaults struct{ Unit string } }
	GridPos                  struct{ X, Y, W, H int }
	Targets                  []struct{ Expr, RefID, LegendFormat string }
	Panels                   []panel
}

// panels returns the panels of a dashboard but its rows.
func panels(t *testing.T, text string) []panel {
	t.Helper()
	var dashboard struct{ Panels []panel }
	require.NoError(t, json.Unmarshal([]byte(text), &dashboard))
	var all []panel
	for _, p := range dashboard.Panels {
		all = append(all, p.Panels...)
		if p.Type != "row" {
			all = append(all, p)
		}
	}
	return all
}

// The rules of Grafana's dashboard-linter, but those for log queries.
func TestDashboardsFollowTheRulesOfTheLinter(t *testing.T) {
	variable := regexp.MustCompile(`\$(\w+)`)
	ranged := regexp.MustCompile(`(?:rate|increase)\([^\]]*\[([^\]]+)\]`)
	counter := regexp.MustCompile(`(\w+)\([^()]*_(?:total|count|sum|bucket)\b`)
	dashboards := deployed(t, "grafana/*.json")
	require.NotEmpty(t, dashboards)
	for file, text := range dashboards {
		var dashboard struct {
			UID, Title string
			Editable   *bool
			Templating struct {
				List []struct {
					Name, Type string
					Refresh    int
					Query      any
				}
			}
			Annotations struct{ List []struct{ Name, Expr string } }
		}
		require.NoError(t, json.Unmarshal([]byte(text), &dashboard), file)
		require.NotNil(t, dashboard.Editable)
		require.False(t, *dashboard.Editable, "%s is code", file)
		require.NotEmpty(t, dashboard.Annotations.List, file)
		declared := map[string]bool{"__rate_interval": true}
		for _, v := range dashboard.Templating.List {
			declared[v.Name] = true
			if v.Type == "query" {
				require.Equal(t, 2, v.Refresh, "%s: $%s is read again when the time range changes", file, v.Name)
				require.Contains(t, v.Query, "deliverystat_build_info", "$%s", v.Name)
			}
		}
		for _, name := range []string{"datasource", "namespace", "job", "instance"} {
			require.True(t, declared[name], "%s: $%s", file, name)
		}
		all := panels(t, text)
		require.NotEmpty(t, all)
		ids := map[int]bool{}
		for i, p := range all {
			where := file + ": " + p.Title
			require.NotEmpty(t, p.Title, file)
			require.False(t, p.ID == 0 || ids[p.ID], "%s: number %d", where, p.ID)
			ids[p.ID] = true
			require.NotEmpty(t, p.Description, where)
			require.NotEmpty(t, p.FieldConfig.Defaults.Unit, where)
			require.Equal(t, "$datasource", p.Datasource.UID, where)
			require.NotEmpty(t, p.Targets, where)
			require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, where)
			for _, o := range all[:i] {
				a, b := p.GridPos, o.GridPos
				require.False(t, a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H, "%s lies on %s", where, o.Title)
			}
			for _, target := range p.Targets {
				require.NotEmpty(t, target.LegendFormat, where)
				require.Contains(t, target.Expr, `namespace=~"$namespace"`, where)
				require.Contains(t, target.Expr, `job=~"$job"`, where)
				require.True(t, strings.Contains(target.Expr, `instance=~"$instance"`) || strings.Contains(target.Expr, "by (namespace, job"),
					"%s: of the instances that were chosen, or of the install", where)
				for _, v := range variable.FindAllStringSubmatch(target.Expr, -1) {
					require.True(t, declared[v[1]], "%s: $%s", where, v[1])
				}
				for _, r := range ranged.FindAllStringSubmatch(target.Expr, -1) {
					require.Equal(t, "$__rate_interval", r[1], where)
				}
				for _, c := range counter.FindAllStringSubmatch(target.Expr, -1) {
					require.Contains(t, []string{"rate", "increase"}, c[1], "%s: a counter is only looked at by its rate", where)
				}
			}
		}
	}
}
