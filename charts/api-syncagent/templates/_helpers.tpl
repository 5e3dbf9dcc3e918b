{{/*
The name that the agent is told; none if its own default is right. One that runs keeps its name: the reference chart, and this one once,
called it after the release.
*/}}
{{- define "api-syncagent.givenName" -}}
{{- $given := .Values.agentName -}}
{{- if not $given -}}
{{- $running := lookup "apps/v1" "Deployment" (include "api-syncagent.namespace" .) (include "api-syncagent.fullname" .) -}}
{{- range dig "spec" "template" "spec" "containers" list $running -}}
{{- range .env -}}
{{- if eq .name "AGENT_NAME" -}}{{- $given = .value -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $given -}}
{{- end }}

{{/* Who the agent is to others; part of everything it marks. The default is that of the flag --agent-name. */}}
{{- define "api-syncagent.agentName" -}}
{{- $default := printf "%s-syncagent" (.Values.apiExportEndpointSliceName | default .Values.apiExportName) -}}
{{- include "api-syncagent.givenName" . | default $default -}}
{{- end }}

{{- define "api-syncagent.namespace" -}}
{{- .Values.namespaceOverride | default .Release.Namespace -}}
{{- end }}

{{/* The release's name, with the chart's unless it is part of it. */}}
{{- define "api-syncagent.fullname" -}}
{{- $chart := .Values.nameOverride | default .Chart.Name -}}
{{- $both := ternary .Release.Name (printf "%s-%s" .Release.Name $chart) (contains $chart .Release.Name) -}}
{{- .Values.fullnameOverride | default $both | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- define "api-syncagent.serviceAccount" -}}
{{- $default := ternary (include "api-syncagent.fullname" .) "default" .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default $default -}}
{{- end }}

{{/* These never change: a Deployment's selector cannot. */}}
{{- define "api-syncagent.selector" -}}
app.kubernetes.io/name: kcp-api-syncagent
app.kubernetes.io/instance: {{ .Values.agentName | default .Release.Name | quote }}
{{- end }}

{{- define "api-syncagent.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "api-syncagent.selector" . }}
{{- end }}

{{/* Whether a flag is set by hand, given a list of the flag and the context. */}}
{{- define "api-syncagent.overridden" -}}
{{- $flag := index . 0 -}}
{{- range (index . 1).Values.extraFlags -}}
{{- if or (eq . $flag) (hasPrefix (printf "%s=" $flag) .) -}}yes{{- end -}}
{{- end -}}
{{- end }}

{{- define "api-syncagent.probes" -}}
{{- if and .Values.probes.enabled (not (include "api-syncagent.overridden" (list "--health-address" .))) -}}yes{{- end -}}
{{- end }}

{{- define "api-syncagent.metrics" -}}
{{- if and .Values.metrics.service.enabled (not (include "api-syncagent.overridden" (list "--metrics-address" .))) -}}yes{{- end -}}
{{- end }}
