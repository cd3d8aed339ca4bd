{{- define "resolute.labels" -}}
app.kubernetes.io/name: resolute
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "resolute.selector" -}}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .service }}
{{- end }}

{{- define "resolute.ports" -}}
experiments: 8081
searcher: 8082
metrics: 8083
logs: 8084
checkpoints: 8085
preemption: 8086
gateway: 8080
{{- end }}

{{- define "resolute.trialsNamespace" -}}
{{ .Values.trials.namespace | default .Release.Namespace }}
{{- end }}

{{- define "resolute.gatewayHost" -}}
{{ .Values.gateway.host | default (printf "%s-gateway.%s.svc" .Release.Name .Release.Namespace) }}
{{- end }}
