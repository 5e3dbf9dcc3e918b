{{/*
The name that is passed to the agent; empty if the agent's own default is right. An agent that is already running keeps its name: the reference chart, and earlier
versions of this one, named it after the release.
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

{{/* The agent's name, which is part of everything it marks. The default is that of the flag --agent-name. */}}
{{- define "api-syncagent.agentName" -}}
{{- $default := printf "%s-syncagent" (.Values.apiExportEndpointSliceName | default .Values.apiExportName) -}}
{{- include "api-syncagent.givenName" . | default $default -}}
{{- end }}

{{- define "api-syncagent.namespace" -}}
{{- .Values.namespaceOverride | default .Release.Namespace -}}
{{- end }}

{{/* The release's name, followed by the chart's name unless the release's name contains it. */}}
{{- define "api-syncagent.fullname" -}}
{{- $chart := .Values.nameOverride | default .Chart.Name -}}
{{- $both := ternary .Release.Name (printf "%s-%s" .Release.Name $chart) (contains $chart .Release.Name) -}}
{{- .Values.fullnameOverride | default $both | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- define "api-syncagent.serviceAccount" -}}
{{- $default := ternary (include "api-syncagent.fullname" .) "default" .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default $default -}}
{{- end }}

{{/* These must never change, because a Deployment's selector is immutable. */}}
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

{{/* The ports that flags set by hand listen on, one line each. An address on loopback is harmless in a policy. */}}
{{- define "api-syncagent.movedPorts" -}}
{{- $flags := list "--metrics-address" "--health-address" "--conversion-address" "--dashboard-address" -}}
{{- $before := "" -}}
{{- range .Values.extraFlags -}}
{{- if or (has $before $flags) (has (splitList "=" . | first) $flags) -}}
{{- with regexFind "[1-9][0-9]*$" . }}{{ printf "%s\n" . }}{{ end -}}
{{- end -}}
{{- $before = . -}}
{{- end -}}
{{- end }}

{{- define "api-syncagent.probes" -}}
{{- if and .Values.probes.enabled (not (include "api-syncagent.overridden" (list "--health-address" .))) -}}yes{{- end -}}
{{- end }}

{{- define "api-syncagent.metrics" -}}
{{- if and .Values.metrics.service.enabled (not (include "api-syncagent.overridden" (list "--metrics-address" .))) -}}yes{{- end -}}
{{- end }}

{{/* An image by its digest or by its tag, given a list of the values of the image and the context. */}}
{{- define "api-syncagent.image" -}}
{{- $image := index . 0 -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository ($image.tag | default (index . 1).Chart.AppVersion) -}}
{{- end -}}
{{- end }}

{{/* Whether the agent may reach all Secrets of the cluster. */}}
{{- define "api-syncagent.allSecrets" -}}
{{- $told := .Values.rbac.allSecrets -}}
{{- if or (eq $told "always") (and (eq $told "auto") (not .Values.publishedKinds) (not .Values.relatedKinds)) -}}yes{{- end -}}
{{- end }}

{{/*
Entries for /etc/hosts of pods, as a YAML list; empty if there are none. Values files of Platform Mesh have them as a list, below `values` or below `entries`, the
latter two with a switch.
*/}}
{{- define "api-syncagent.hostAliases" -}}
{{- $given := .Values.hostAliases -}}
{{- if kindIs "map" $given -}}
{{- $given = ternary (concat (list) ($given.values | default list) ($given.entries | default list)) list (eq $given.enabled true) -}}
{{- end -}}
{{- with $given -}}{{- toYaml . -}}{{- end -}}
{{- end }}
