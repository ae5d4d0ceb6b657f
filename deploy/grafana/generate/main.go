// Command generate writes the dashboards of Grafana into the folder that it is
// given. It is a module of its own, so that what it needs is no dependency of the
// binary. Run it by go generate ./deploy/grafana, and commit what it writes.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate FOLDER")
		os.Exit(2)
	}
	if err := write(filepath.Join(os.Args[1], "deliverystat.json")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(path string) error {
	built, err := overview().Build()
	if err != nil {
		return fmt.Errorf("building the dashboard: %w", err)
	}
	for i := range built.Panels { // links to a panel name its number
		id := uint32(i + 1)
		if built.Panels[i].RowPanel != nil {
			built.Panels[i].RowPanel.Id = id
		} else {
			built.Panels[i].Panel.Id = &id
		}
	}
	text, err := json.MarshalIndent(built, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the dashboard: %w", err)
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// source is the data source that the reader chooses.
func source() common.DataSourceRef {
	return common.DataSourceRef{Type: new("prometheus"), Uid: new("$datasource")}
}

// What narrows a metric to the installs, or to the replicas, that the reader
// chose.
const (
	installs = `namespace=~"$namespace",job=~"$job"`
	replicas = installs + `,instance=~"$instance"`
)

func overview() *dashboard.DashboardBuilder {
	b := dashboard.NewDashboardBuilder("Deliveries per status").
		Uid("deliverystat").
		Description("How many deliveries are in each status, how fresh that is, and the health of what counts them.").
		Tags([]string{"deliverystat"}).
		Readonly().
		Refresh("30s").
		Time("now-6h", "now").
		Timezone("browser").
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus")).
		WithVariable(variable("namespace", "label_values(deliverystat_build_info, namespace)")).
		WithVariable(variable("job", `label_values(deliverystat_build_info{namespace=~"$namespace"}, job)`)).
		WithVariable(variable("instance", "label_values(deliverystat_build_info{"+installs+"}, instance)")).
		Annotation(dashboard.NewAnnotationQueryBuilder().Name("Deploys").Datasource(source()).Enable(true).IconColor("blue").
			Expr("count by (namespace, job, version) (deliverystat_build_info{" + installs + "}) unless count by (namespace, job, version) (deliverystat_build_info{" + installs + "} offset 5m)").
			TitleFormat("{{version}}").TagKeys("version")).
		Annotation(dashboard.NewAnnotationQueryBuilder().Name("Alerts").Datasource(source()).Enable(true).IconColor("red").
			Expr(`ALERTS{alertname=~"Deliverystat.*",alertstate="firing",` + installs + `}`).
			TitleFormat("{{alertname}}").TagKeys("severity"))
	for _, r := range rows() {
		b.WithRow(dashboard.NewRowBuilder(r.title))
		for _, p := range r.panels {
			b.WithPanel(p)
		}
	}
	return b
}

// variable lets the reader choose among the values of a query.
func variable(name, query string) *dashboard.QueryVariableBuilder {
	return dashboard.NewQueryVariableBuilder(name).Label(name).Datasource(source()).
		Query(dashboard.StringOrMap{String: &query}).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortAlphabeticalAsc).
		Multi(true).IncludeAll(true).AllValue(".*").
		Current(dashboard.VariableOption{
			Text:  dashboard.StringOrArrayOfString{String: new("All")},
			Value: dashboard.StringOrArrayOfString{String: new("$__all")},
		})
}
