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
{{- $namespace := required "trials.namespace: name a namespace for trials, where no Secrets of the services are" .Values.trials.namespace -}}
{{- if eq $namespace .Release.Namespace -}}
{{- fail (printf "trials.namespace: %s has the Secrets of the services, and allowed_pod_spec may let trials mount every Secret beside it: name another namespace" $namespace) -}}
{{- end -}}
{{ $namespace }}
{{- end }}
