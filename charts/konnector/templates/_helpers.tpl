{{/* `kubectl bind` knows a konnector by this name. */}}
{{- define "konnector.fullname" -}}
{{- .Values.fullnameOverride | default "konnector" | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- define "konnector.serviceAccount" -}}
{{- $default := ternary "konnector" "default" .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default $default -}}
{{- end }}

{{/* These must never change, because a Deployment's selector is immutable. */}}
{{- define "konnector.selector" -}}
app: konnector
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "konnector.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: konnector
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "konnector.selector" . }}
{{- end }}

{{/* Whether the server for probes and metrics listens where the chart says. */}}
{{- define "konnector.served" -}}
{{- $moved := "" -}}
{{- range .Values.extraFlags -}}
{{- if or (eq . "--server-address") (hasPrefix "--server-address=" .) -}}{{- $moved = "yes" -}}{{- end -}}
{{- end -}}
{{- if not $moved -}}yes{{- end -}}
{{- end }}

{{/* The port that extraFlags move the server to, if they do. */}}
{{- define "konnector.movedPort" -}}
{{- $before := "" -}}
{{- $port := "" -}}
{{- range .Values.extraFlags -}}
{{- if or (eq $before "--server-address") (hasPrefix "--server-address=" .) -}}{{- $port = regexFind "[1-9][0-9]*$" . -}}{{- end -}}
{{- $before = . -}}
{{- end -}}
{{- $port -}}
{{- end }}

{{/* A role and its binding: a list of the context, the kind of the role, its namespace (empty for a ClusterRole), its name and its rules. */}}
{{- define "konnector.role" -}}
{{- $context := index . 0 -}}
{{- $kind := index . 1 -}}
{{- $namespace := index . 2 -}}
{{- $name := index . 3 -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ $name }}
  {{- with $namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "konnector.labels" $context | nindent 4 }}
rules:
  {{- toYaml (index . 4) | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ $name }}
  {{- with $namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "konnector.labels" $context | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ include "konnector.serviceAccount" $context }}
    namespace: {{ $context.Release.Namespace }}
{{ end }}
