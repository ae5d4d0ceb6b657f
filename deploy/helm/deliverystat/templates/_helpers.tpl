{{- /* Names and labels. */ -}}
{{- define "deliverystat.name" -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- end }}

{{- define "deliverystat.selector" -}}
app.kubernetes.io/name: deliverystat
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "deliverystat.labels" -}}
{{ include "deliverystat.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "deliverystat.image" -}}
{{- $i := .Values.image -}}
{{- if $i.digest }}{{ $i.repository }}@{{ $i.digest }}{{ else }}{{ $i.repository }}:{{ $i.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- /* The pods that answer: a component of their own, or the processors. */ -}}
{{- define "deliverystat.answering" -}}
{{- ternary "api" "processors" .Values.api.separate -}}
{{- end }}

{{- define "deliverystat.scheme" -}}
{{- ternary "https" "http" (ne .Values.api.tlsSecret "") -}}
{{- end }}

{{- /* Nine tenths of a memory limit, for GOMEMLIMIT: the rest is what the Go heap is not. */ -}}
{{- define "deliverystat.gomemlimit" -}}
{{- $mib := trimSuffix "Mi" . | int -}}
{{- if hasSuffix "Gi" . }}{{ $mib = mul 1024 (trimSuffix "Gi" . | int) }}{{ end -}}
{{ div (mul $mib 9) 10 }}MiB
{{- end }}

{{- /* The settings as the file that --config names. */ -}}
{{- define "deliverystat.config" -}}
{{- $c := deepCopy .Values.config -}}
{{- $secrets := "/etc/deliverystat/secrets" -}}
{{- $_ := set $c "log-format" ($c | dig "log-format" "json") -}}
{{- $_ := set $c "http-address" ":8080" -}}
{{- $_ := set $c "admin-address" ":8081" -}}
{{- $_ := set $c "state-dir" "/var/lib/deliverystat/state" -}}
{{- with .Values.kafka.tls }}
{{- if .caSecret }}{{ $_ := set $c "kafka-tls-ca-file" (printf "%s/kafka-ca/%s" $secrets .caKey) }}{{ end }}
{{- if .clientSecret }}
{{- $_ := set $c "kafka-tls-cert-file" (printf "%s/kafka-client/%s" $secrets .certKey) }}
{{- $_ := set $c "kafka-tls-key-file" (printf "%s/kafka-client/%s" $secrets .keyKey) }}
{{- end }}
{{- end }}
{{- with .Values.kafka.sasl }}
{{- if .mechanism }}{{ $_ := set $c "kafka-sasl-mechanism" .mechanism }}{{ end }}
{{- if .user }}{{ $_ := set $c "kafka-sasl-user" .user }}{{ end }}
{{- if .secret }}{{ $_ := set $c "kafka-sasl-password-file" (printf "%s/kafka-sasl/%s" $secrets .key) }}{{ end }}
{{- end }}
{{- if .Values.api.tokenSecret }}{{ $_ := set $c "api-token-file" (printf "%s/api-tokens/tokens" $secrets) }}{{ end }}
{{- if .Values.api.tlsSecret }}
{{- $_ := set $c "http-tls-cert-file" (printf "%s/api-tls/tls.crt" $secrets) }}
{{- $_ := set $c "http-tls-key-file" (printf "%s/api-tls/tls.key" $secrets) }}
{{- end }}
{{- toYaml $c }}
{{- end }}

{{- define "deliverystat.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "deliverystat.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* Settings and secrets. Directories, never single files: those would not follow a secret that is renewed. */ -}}
{{- define "deliverystat.mounts" -}}
- {name: config, mountPath: /etc/deliverystat/config, readOnly: true}
- {name: tmp, mountPath: /tmp}
{{- if .Values.profiles }}
- {name: profiles, mountPath: /etc/deliverystat/profiles, readOnly: true}
{{- end }}
{{- range $name, $_ := include "deliverystat.secrets" . | fromYaml }}
- {name: {{ $name }}, mountPath: /etc/deliverystat/secrets/{{ $name }}, readOnly: true}
{{- end }}
{{- end }}

{{- define "deliverystat.volumes" -}}
- name: config
  configMap: {name: {{ include "deliverystat.name" . }}}
- name: tmp
  emptyDir: {}
{{- if .Values.profiles }}
- name: profiles
  configMap: {name: {{ include "deliverystat.name" . }}-profiles}
{{- end }}
{{- range $name, $secret := include "deliverystat.secrets" . | fromYaml }}
- name: {{ $name }}
  secret: {secretName: {{ $secret }}, defaultMode: 0440}
{{- end }}
{{- end }}

{{- define "deliverystat.secrets" -}}
{{- with .Values.kafka.tls.caSecret }}
kafka-ca: {{ . }}
{{- end }}
{{- with .Values.kafka.tls.clientSecret }}
kafka-client: {{ . }}
{{- end }}
{{- with .Values.kafka.sasl.secret }}
kafka-sasl: {{ . }}
{{- end }}
{{- with .Values.api.tokenSecret }}
api-tokens: {{ . }}
{{- end }}
{{- with .Values.api.tlsSecret }}
api-tls: {{ . }}
{{- end }}
{{- end }}

{{- /* The pod of a component: "root", "component", "roles", "resources", "state" (a volume, or none for a claim). */ -}}
{{- define "deliverystat.pod" -}}
{{- $root := .root -}}
{{- with $root -}}
metadata:
  labels:
    {{- include "deliverystat.labels" . | nindent 4 }}
    app.kubernetes.io/component: {{ $.component }}
    {{- with .Values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  annotations:
    checksum/config: {{ list (include "deliverystat.config" .) .Values.profiles | toJson | sha256sum }}
    {{- with .Values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  serviceAccountName: {{ include "deliverystat.name" . }}
  automountServiceAccountToken: false
  # The variables of a service named deliverystat would look like settings.
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  securityContext:
    {{- include "deliverystat.podSecurity" . | nindent 4 }}
  {{- range $i, $name := .Values.image.pullSecrets }}
  {{- if not $i }}
  imagePullSecrets:
  {{- end }}
    - name: {{ $name }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.topologySpread }}
  topologySpreadConstraints:
    {{- range . }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "deliverystat.selector" $root | nindent 10 }}
          app.kubernetes.io/component: {{ $.component }}
    {{- end }}
  {{- end }}
  containers:
    - name: deliverystat
      image: {{ include "deliverystat.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        - serve
        - --config=/etc/deliverystat/config/deliverystat.yaml
        - --roles={{ $.roles }}
        - --instance-id=$(POD_NAME)
      env:
        - name: POD_NAME
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
        - name: GOMEMLIMIT
          value: {{ include "deliverystat.gomemlimit" $.resources.limits.memory }}
      ports:
        - {name: http, containerPort: 8080}
        - {name: admin, containerPort: 8081}
      # Until Kafka was reached and its topics found right: 5 minutes, then another attempt.
      startupProbe:
        httpGet: {path: /startupz, port: admin}
        periodSeconds: 2
        failureThreshold: 150
      # Not before everything is recovered, however long that takes.
      readinessProbe:
        httpGet: {path: /readyz, port: admin}
        periodSeconds: 2
        failureThreshold: 2
        timeoutSeconds: 2
      # Only of the process: a fault of Kafka is no reason to restart.
      livenessProbe:
        httpGet: {path: /livez, port: admin}
        periodSeconds: 10
        failureThreshold: 6
        timeoutSeconds: 5
      resources: {{- toYaml $.resources | nindent 8 }}
      securityContext:
        {{- include "deliverystat.containerSecurity" . | nindent 8 }}
      volumeMounts:
        - {name: state, mountPath: /var/lib/deliverystat}
        {{- include "deliverystat.mounts" . | nindent 8 }}
  volumes:
    {{- with $.state }}{{ toYaml . | nindent 4 }}{{ end }}
    {{- include "deliverystat.volumes" . | nindent 4 }}
{{- end }}
{{- end }}
