package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"deliverystat/api"
	"deliverystat/cmd/deliverystat/internal/access"
	"deliverystat/cmd/deliverystat/internal/config"
	"deliverystat/cmd/deliverystat/internal/service"
	"deliverystat/cmd/deliverystat/internal/topics"
)

// What the manifests have to do with the binary. That they are valid at all is
// known to the schemas of Kubernetes (.ci/chart).

// object is what the checks look at in a manifest.
type object struct {
	Kind     string
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Data                         map[string]string
	AutomountServiceAccountToken *bool `yaml:"automountServiceAccountToken"`
	Spec                         struct {
		Selector yaml.Node // of labels, or of labels under matchLabels
		Ports    []servicePort
		Template struct {
			Metadata struct{ Labels, Annotations map[string]string }
			Spec     podSpec
		}
		PodManagementPolicy        string    `yaml:"podManagementPolicy"`
		ServiceName                string    `yaml:"serviceName"`
		VolumeClaimTemplates       []named   `yaml:"volumeClaimTemplates"`
		UnhealthyPodEvictionPolicy string    `yaml:"unhealthyPodEvictionPolicy"`
		PodSelector                yaml.Node `yaml:"podSelector"`
		Endpoints                  []struct{ Port, Path string }
		Groups                     []yaml.Node
		// Of Strimzi.
		TopicName            string `yaml:"topicName"`
		Partitions, Replicas int32
		Config               map[string]string
		Authorization        struct {
			ACLs []acl `yaml:"acls"`
		}
	}
}

type named struct {
	Name     string
	Metadata struct{ Name string }
	// What a volume is.
	ConfigMap struct{ Name string } `yaml:"configMap"`
	Secret    struct {
		Name string `yaml:"secretName"`
	}
	MountPath string `yaml:"mountPath"`
}

type acl struct {
	Resource struct {
		Type, Name  string
		PatternType string `yaml:"patternType"`
	}
	Operations []string
}

type podSpec struct {
	AutomountServiceAccountToken  *bool `yaml:"automountServiceAccountToken"`
	EnableServiceLinks            *bool `yaml:"enableServiceLinks"`
	TerminationGracePeriodSeconds int   `yaml:"terminationGracePeriodSeconds"`
	SecurityContext               struct {
		RunAsNonRoot   bool                  `yaml:"runAsNonRoot"`
		RunAsUser      int                   `yaml:"runAsUser"`
		SeccompProfile struct{ Type string } `yaml:"seccompProfile"`
	} `yaml:"securityContext"`
	Containers []container
	Volumes    []named
}

type container struct {
	Args            []string
	Env             []struct{ Name, Value string }
	Ports           []containerPort
	StartupProbe    probe `yaml:"startupProbe"`
	ReadinessProbe  probe `yaml:"readinessProbe"`
	LivenessProbe   probe `yaml:"livenessProbe"`
	Resources       struct{ Limits map[string]string }
	SecurityContext struct {
		AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
		Capabilities             struct{ Drop, Add []string }
	} `yaml:"securityContext"`
	VolumeMounts []named `yaml:"volumeMounts"`
}

type containerPort struct {
	Name          string
	ContainerPort int `yaml:"containerPort"`
}

type servicePort struct {
	Name       string
	TargetPort string `yaml:"targetPort"`
}

type probe struct {
	HTTPGet          struct{ Path, Port string } `yaml:"httpGet"`
	PeriodSeconds    int                         `yaml:"periodSeconds"`
	FailureThreshold int                         `yaml:"failureThreshold"`
}

// manifest is one rendered file.
type manifest []object

func (m manifest) kind(kinds ...string) []object {
	return slices.DeleteFunc(slices.Clone(m), func(o object) bool { return !slices.Contains(kinds, o.Kind) })
}

// workloads are what makes pods of ours.
func (m manifest) workloads() []object { return m.kind("StatefulSet", "Deployment") }

func (m manifest) named(t *testing.T, kind, name string) object {
	t.Helper()
	for _, o := range m.kind(kind) {
		if o.Metadata.Name == name {
			return o
		}
	}
	require.Fail(t, "missing", "%s %s", kind, name)
	return object{}
}

// forEachManifest runs a check on each rendered file.
func forEachManifest(t *testing.T, check func(t *testing.T, m manifest)) {
	t.Helper()
	files := deployed(t, "manifests/*.yaml")
	require.Len(t, files, 3)
	for name, text := range files {
		t.Run(name, func(t *testing.T) {
			var m manifest
			decoder := yaml.NewDecoder(strings.NewReader(text))
			for {
				var o object
				if decoder.Decode(&o) != nil {
					break
				}
				m = append(m, o)
			}
			require.Len(t, m, strings.Count("\n"+text, "\nkind: "), "every document was read")
			require.NotEmpty(t, m.workloads())
			check(t, m)
		})
	}
}

// labels reads a selector, with or without matchLabels.
func labels(t *testing.T, selector yaml.Node) map[string]string {
	t.Helper()
	var outer struct {
		MatchLabels map[string]string `yaml:"matchLabels"`
	}
	if selector.Decode(&outer) == nil && outer.MatchLabels != nil {
		return outer.MatchLabels
	}
	var plain map[string]string
	require.NoError(t, selector.Decode(&plain))
	return plain
}

func selects(selector, of map[string]string) bool {
	for key, value := range selector {
		if of[key] != value {
			return false
		}
	}
	return len(selector) > 0
}

// podCommand parses the command line of a workload as the binary would, with the
// config file that is mounted.
func podCommand(t *testing.T, m manifest, w object) *serveCommand {
	t.Helper()
	dir := t.TempDir()
	here := strings.NewReplacer("/etc/deliverystat", dir, "$(POD_NAME)", w.Metadata.Name+"-0")
	pod := w.Spec.Template.Spec
	for _, mount := range pod.Containers[0].VolumeMounts {
		for _, volume := range pod.Volumes {
			if volume.Name != mount.Name || volume.ConfigMap.Name == "" {
				continue
			}
			for file, text := range m.named(t, "ConfigMap", volume.ConfigMap.Name).Data {
				path := filepath.Join(here.Replace(mount.MountPath), file)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
				require.NoError(t, os.WriteFile(path, []byte(here.Replace(text)), 0o600))
			}
		}
	}
	args := make([]string, 0, len(pod.Containers[0].Args))
	for _, arg := range pod.Containers[0].Args {
		args = append(args, here.Replace(arg))
	}
	var grammar commands
	_, err := config.Parse(&grammar, config.Invocation{Args: args, Stdout: t.Output(), Stderr: t.Output()})
	require.NoError(t, err, w.Metadata.Name)
	return &grammar.Serve
}

// Every setting of a pod is one that the binary takes, with a value that it takes.
func TestManifestsFitTheBinary(t *testing.T) {
	forEachManifest(t, func(t *testing.T, m manifest) {
		roles := map[string]int{}
		for _, w := range m.workloads() {
			c := podCommand(t, m, w)
			require.Equal(t, w.Metadata.Name+"-0", c.Name())
			for _, role := range c.Roles {
				roles[role]++
			}
			if w.Kind == "Deployment" {
				require.Equal(t, []string{config.RoleAPI}, c.Roles, "a processor needs a name that stays")
			}
			ports := map[string]int{}
			for _, p := range w.Spec.Template.Spec.Containers[0].Ports {
				ports[p.Name] = p.ContainerPort
			}
			require.Equal(t, map[string]int{"http": 8080, "admin": 8081}, ports)
			require.Equal(t, ":8080", c.HTTPAddress)
			require.Equal(t, ":8081", c.AdminAddress)
		}
		require.Equal(t, map[string]int{config.RoleProcessors: 1, config.RoleAPI: 1}, roles)
	})
}

// A pod is never killed while it stops in good order.
func TestPodsHaveTheTimeToStop(t *testing.T) {
	forEachManifest(t, func(t *testing.T, m manifest) {
		for _, w := range m.workloads() {
			c := podCommand(t, m, w)
			grace := time.Duration(w.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
			require.Greater(t, grace, c.DrainDelay+service.MostToStop)
			ready := w.Spec.Template.Spec.Containers[0].ReadinessProbe
			unready := time.Duration(ready.PeriodSeconds*ready.FailureThreshold) * time.Second
			require.Greater(t, c.DrainDelay, unready, "it is seen to be not ready before it stops to answer")
		}
	})
	// And no values can be given with which it would be.
	schema := chartSchema(t)
	drain := regexp.MustCompile(schema.Properties["config"].Properties["drain-delay"].Pattern)
	least := time.Duration(schema.Properties["terminationGracePeriodSeconds"].Minimum) * time.Second
	most := 0
	for s := range 100 {
		if drain.MatchString(strconv.Itoa(s) + ".999s") {
			most = s + 1
		}
	}
	require.Equal(t, 16, most)
	require.Greater(t, least, time.Duration(most)*time.Second+service.MostToStop)
}

// What probes and services name is there, and answers.
func TestPortsAndProbesExist(t *testing.T) {
	admin := api.NewAdmin(api.AdminOptions{Metrics: http.NotFoundHandler()})
	answers := func(path string) bool {
		w := httptest.NewRecorder()
		admin.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code == http.StatusOK
	}
	require.False(t, answers("/healthz"), "a path that is not there is seen")
	forEachManifest(t, func(t *testing.T, m manifest) {
		for _, w := range m.workloads() {
			c := w.Spec.Template.Spec.Containers[0]
			for name, p := range map[string]probe{"/startupz": c.StartupProbe, "/readyz": c.ReadinessProbe, "/livez": c.LivenessProbe} {
				require.Equal(t, name, p.HTTPGet.Path)
				require.Equal(t, "admin", p.HTTPGet.Port)
				require.True(t, answers(p.HTTPGet.Path), p.HTTPGet.Path)
			}
			startup := c.StartupProbe
			require.GreaterOrEqual(t, startup.PeriodSeconds*startup.FailureThreshold, 300, "Kafka may be away at the start")
			require.True(t, w.Kind != "StatefulSet" || w.Spec.PodManagementPolicy == "Parallel")
			require.True(t, w.Kind != "StatefulSet" || m.named(t, "Service", w.Spec.ServiceName).Kind == "Service")
		}
		require.Len(t, m.kind("Service"), 2)
		for _, s := range m.kind("Service") {
			var components []string
			for _, w := range m.workloads() {
				if !selects(labels(t, s.Spec.Selector), w.Spec.Template.Metadata.Labels) {
					continue
				}
				components = append(components, w.Spec.Template.Metadata.Labels["app.kubernetes.io/component"])
				for _, port := range s.Spec.Ports {
					require.True(t, slices.ContainsFunc(w.Spec.Template.Spec.Containers[0].Ports, func(p containerPort) bool { return p.Name == port.TargetPort }), "%s: port %s", s.Metadata.Name, port.TargetPort)
					if port.TargetPort == "http" && s.Metadata.Name == "deliverystat" {
						require.Contains(t, podCommand(t, m, w).Roles, config.RoleAPI, "requests are sent to who answers")
					}
				}
			}
			require.NotEmpty(t, components, s.Metadata.Name)
		}
	})
}

// Each pod has its own budget: of two, every eviction is refused.
func TestEachPodHasOneDisruptionBudget(t *testing.T) {
	forEachManifest(t, func(t *testing.T, m manifest) {
		budgets := m.kind("PodDisruptionBudget")
		require.Len(t, budgets, len(m.workloads()))
		for _, w := range m.workloads() {
			require.True(t, selects(labels(t, w.Spec.Selector), w.Spec.Template.Metadata.Labels))
			matching := 0
			for _, b := range budgets {
				require.Equal(t, "AlwaysAllow", b.Spec.UnhealthyPodEvictionPolicy)
				if selects(labels(t, b.Spec.Selector), w.Spec.Template.Metadata.Labels) {
					matching++
				}
			}
			require.Equal(t, 1, matching, w.Metadata.Name)
			for _, p := range m.kind("NetworkPolicy") {
				require.True(t, selects(labels(t, p.Spec.PodSelector), w.Spec.Template.Metadata.Labels))
			}
		}
	})
}

func TestPodsAreRestricted(t *testing.T) {
	no := false
	forEachManifest(t, func(t *testing.T, m manifest) {
		for _, account := range m.kind("ServiceAccount") {
			require.Equal(t, &no, account.AutomountServiceAccountToken)
		}
		for _, w := range m.workloads() {
			pod := w.Spec.Template.Spec
			require.Equal(t, &no, pod.AutomountServiceAccountToken)
			require.Equal(t, &no, pod.EnableServiceLinks)
			require.True(t, pod.SecurityContext.RunAsNonRoot)
			require.Equal(t, 65532, pod.SecurityContext.RunAsUser)
			require.Equal(t, "RuntimeDefault", pod.SecurityContext.SeccompProfile.Type)
			require.Len(t, pod.Containers, 1)
			c := pod.Containers[0]
			require.Equal(t, &no, c.SecurityContext.AllowPrivilegeEscalation)
			require.True(t, c.SecurityContext.ReadOnlyRootFilesystem)
			require.Equal(t, []string{"ALL"}, c.SecurityContext.Capabilities.Drop)
			require.Empty(t, c.SecurityContext.Capabilities.Add)
			env := map[string]string{}
			for _, v := range c.Env {
				env[v.Name] = v.Value
			}
			require.Equal(t, tenths(t, c.Resources.Limits["memory"], 9), env["GOMEMLIMIT"])
		}
	})
}

// tenths returns so many tenths of a quantity as GOMEMLIMIT takes it.
func tenths(t *testing.T, quantity string, n int) string {
	t.Helper()
	number, unit := quantity[:len(quantity)-2], quantity[len(quantity)-2:]
	mib, err := strconv.Atoi(number)
	require.NoError(t, err)
	if unit == "Gi" {
		mib *= 1024
	}
	return fmt.Sprintf("%dMiB", mib*n/10)
}

// Everything that is mounted has a volume, and every file that a setting names
// is in a secret or a ConfigMap that is mounted.
func TestEveryFileOfASettingIsMounted(t *testing.T) {
	forEachManifest(t, func(t *testing.T, m manifest) {
		for _, w := range m.workloads() {
			pod := w.Spec.Template.Spec
			volumes := map[string]bool{}
			for _, v := range append(pod.Volumes, w.Spec.VolumeClaimTemplates...) {
				volumes[v.Name+v.Metadata.Name] = true
			}
			var paths []string
			for _, mount := range pod.Containers[0].VolumeMounts {
				require.True(t, volumes[mount.Name], mount.Name)
				delete(volumes, mount.Name)
				paths = append(paths, mount.MountPath+"/")
			}
			require.Empty(t, volumes, "volumes that nobody mounts")
			var settings map[string]any
			require.NoError(t, yaml.Unmarshal([]byte(m.named(t, "ConfigMap", "deliverystat").Data["deliverystat.yaml"]), &settings))
			for name, value := range settings {
				path, _ := value.(string)
				if !strings.HasPrefix(path, "/") {
					continue
				}
				require.True(t, slices.ContainsFunc(paths, func(mounted string) bool { return strings.HasPrefix(path, mounted) }), "%s: %s", name, path)
			}
		}
	})
}

// schema is what the checks look at in a JSON schema.
type schema struct {
	Properties map[string]schema
	Pattern    string
	Minimum    float64
}

func chartSchema(t *testing.T) schema {
	t.Helper()
	var s schema
	require.NoError(t, json.Unmarshal([]byte(deployed(t, "helm/deliverystat/values.schema.json")["values.schema.json"]), &s))
	return s
}

// The chart takes each flag of serve, but those that it gives itself.
func TestTheChartKnowsTheFlagsOfServe(t *testing.T) {
	var grammar commands
	parsed, err := config.Parse(&grammar, config.Invocation{Args: []string{"serve", "--kafka-brokers=a:1"}, Stdout: t.Output(), Stderr: t.Output()})
	require.NoError(t, err)
	flags := parsed.Effective()
	own := []string{
		"config", "instance-id", "roles", "state-dir", "http-address", "admin-address", // given by the templates
		"http-tls-cert-file", "http-tls-key-file", "api-token-file", // by api
		"kafka-tls-ca-file", "kafka-tls-cert-file", "kafka-tls-key-file", // by kafka.tls
		"kafka-sasl-mechanism", "kafka-sasl-user", "kafka-sasl-password-file", // by kafka.sasl
	}
	for _, flag := range own {
		require.Contains(t, flags, flag)
		delete(flags, flag)
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(flags)), slices.Collect(maps.Keys(chartSchema(t).Properties["config"].Properties)))
}

// Strimzi's operators make the topics that `topics create` makes, and allow what
// `topics acls` lists.
func TestStrimziMakesTheSameTopicsAndPermissions(t *testing.T) {
	forEachManifest(t, func(t *testing.T, m manifest) {
		if len(m.kind("KafkaTopic")) == 0 {
			require.Empty(t, m.kind("KafkaUser"))
			return
		}
		c := podCommand(t, m, m.kind("StatefulSet")[0])
		got, want := map[string]object{}, map[string]topics.Spec{}
		for _, o := range m.kind("KafkaTopic") {
			got[o.Spec.TopicName] = o
		}
		window := topics.Window{Lateness: c.AllowedLateness, AbandonAfter: c.AbandonAfter}
		for _, spec := range topics.Specs(c.Topics(), window, 3) {
			want[spec.Name] = spec
			require.Contains(t, got, spec.Name)
			require.Equal(t, spec.Settings, got[spec.Name].Spec.Config, spec.Name)
			require.Equal(t, max(spec.Partitions, 8*(1-min(1, spec.Partitions))), got[spec.Name].Spec.Partitions, spec.Name)
			require.EqualValues(t, 3, got[spec.Name].Spec.Replicas)
		}
		require.Len(t, got, len(want))

		kinds := map[string]sarama.AclResourceType{
			"topic": sarama.AclResourceTopic, "group": sarama.AclResourceGroup, "transactionalId": sarama.AclResourceTransactionalID,
		}
		var allowed []string
		for _, a := range m.kind("KafkaUser")[0].Spec.Authorization.ACLs {
			for _, operation := range a.Operations {
				require.Equal(t, a.Resource.Type == "transactionalId", a.Resource.PatternType == "prefix")
				allowed = append(allowed, operation+" on "+access.Resource{Kind: kinds[a.Resource.Type], Name: a.Resource.Name}.String())
			}
		}
		d := access.Deployment{Topics: c.Topics(), Processors: true, API: true}
		for _, source := range c.SourceList() {
			d.Sources = append(d.Sources, source.Topic)
		}
		require.NotEmpty(t, d.Sources)
		var required []string
		for _, p := range access.Required(d) {
			required = append(required, p.String())
		}
		require.ElementsMatch(t, required, allowed)
	})
}

// Prometheus finds every pod once, and has the rules that are tested here.
func TestMonitoringIsThatOfThisFolder(t *testing.T) {
	forEachManifest(t, func(t *testing.T, m manifest) {
		if len(m.kind("ServiceMonitor")) == 0 {
			return
		}
		monitor := m.kind("ServiceMonitor")[0]
		chosen := slices.DeleteFunc(m.kind("Service"), func(s object) bool { return !selects(labels(t, monitor.Spec.Selector), s.Metadata.Labels) })
		require.Len(t, chosen, 1)
		require.Equal(t, "/metrics", monitor.Spec.Endpoints[0].Path)
		for _, w := range m.workloads() {
			require.True(t, selects(labels(t, chosen[0].Spec.Selector), w.Spec.Template.Metadata.Labels))
		}
		require.True(t, slices.ContainsFunc(chosen[0].Spec.Ports, func(p servicePort) bool {
			return p.Name == monitor.Spec.Endpoints[0].Port && p.TargetPort == "admin"
		}))

		var want []any
		for _, file := range []string{"recording.yaml", "alerts.yaml"} {
			var rules struct{ Groups []any }
			text := strings.ReplaceAll(deployed(t, "prometheus/"+file)[file], "https://deliverystat.example/runbooks", "https://runbooks.example")
			require.NoError(t, yaml.Unmarshal([]byte(text), &rules))
			want = append(want, rules.Groups...)
		}
		var got []any
		for _, group := range m.kind("PrometheusRule")[0].Spec.Groups {
			var g any
			require.NoError(t, group.Decode(&g))
			got = append(got, g)
		}
		require.Equal(t, want, got)
		require.JSONEq(t, deployed(t, "grafana/*.json")["deliverystat.json"], m.named(t, "ConfigMap", "deliverystat-dashboard").Data["deliverystat.json"])
	})
}
