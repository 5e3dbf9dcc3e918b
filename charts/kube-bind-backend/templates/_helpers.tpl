{{/* As in kube-bind's chart "backend", so that its releases can be upgraded: a Deployment's selector is immutable. */}}
{{- define "backend.name" -}}
{{- .Values.nameOverride | default "backend" | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- define "backend.fullname" -}}
{{- $name := .Values.nameOverride | default "backend" -}}
{{- $both := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- .Values.fullnameOverride | default $both | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- define "backend.serviceAccount" -}}
{{- $default := ternary (include "backend.fullname" .) "default" .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default $default -}}
{{- end }}

{{- define "backend.selector" -}}
app.kubernetes.io/name: {{ include "backend.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "backend.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "backend.selector" . }}
{{- end }}

{{/* The name of the port, in the pod and in the Service. */}}
{{- define "backend.scheme" -}}
{{- ternary "https" "http" .Values.backend.tls.enabled -}}
{{- end }}

{{- define "backend.servicePort" -}}
{{- ternary .Values.service.httpsPort .Values.service.port .Values.backend.tls.enabled -}}
{{- end }}

{{/* Where browsers find the backend, as far as the values say it. */}}
{{- define "backend.origin" -}}
{{- $host := first .Values.gatewayApi.route.hostnames -}}
{{- if and .Values.gatewayApi.enabled $host -}}
https://{{ $host }}
{{- else -}}
{{ include "backend.scheme" . }}://127.0.0.1:{{ include "backend.servicePort" . }}
{{- end -}}
{{- end }}

{{/* How consumers are kept apart. */}}
{{- define "backend.isolation" -}}
{{- $given := .Values.backend.isolation -}}
{{- if and (not $given) (not (has .Values.backend.clusterScopeIsolation (list "" "prefix" "prefixed"))) -}}
{{- fail (printf "set backend.isolation: backend.clusterScopeIsolation=%s has no effect in kube-bind's chart, where what runs is prefixed. backend.isolation=prefixed keeps that; %s means what was written, for new exports" .Values.backend.clusterScopeIsolation .Values.backend.clusterScopeIsolation) -}}
{{- end -}}
{{- $given | default "prefixed" -}}
{{- end }}

{{- define "backend.inKcp" -}}
{{- if eq .Values.backend.multiclusterRuntimeProvider "kcp" -}}yes{{- end -}}
{{- end }}

{{/* Whether there is something to keep in a Secret of the release. */}}
{{- define "backend.secret" -}}
{{- if or .Values.backend.oidc.clientSecret .Values.backend.cookieSigningKey .Values.backend.cookieEncryptionKey -}}yes{{- end -}}
{{- end }}

{{/* A probe, with the port that there is: a list of the probe and the context. */}}
{{- define "backend.probe" -}}
{{- $probe := deepCopy (index . 0) -}}
{{- if and (index . 1).Values.backend.tls.enabled $probe.httpGet (eq (toString $probe.httpGet.port) "http") -}}
{{- $_ := set $probe "httpGet" (merge (dict "port" "https" "scheme" "HTTPS") $probe.httpGet) -}}
{{- end -}}
{{- toYaml $probe -}}
{{- end }}

{{/* What cannot be as the values say. */}}
{{- define "backend.refuse" -}}
{{- $b := .Values.backend -}}
{{- if and $b.externalAddress (not (hasPrefix "https://" $b.externalAddress)) -}}
{{- fail (printf "backend.externalAddress is %q, but it must begin with https://: consumers send tokens there" $b.externalAddress) -}}
{{- end -}}
{{- if and $b.oidc.callbackUrl (not (hasSuffix "/api/callback" $b.oidc.callbackUrl)) -}}
{{- fail (printf "backend.oidc.callbackUrl is %q, but it must end with /api/callback: that is where the backend waits for browsers" $b.oidc.callbackUrl) -}}
{{- end -}}
{{- if and (eq $b.oidc.type "embedded") $b.oidc.issuerUrl (not (hasSuffix "/oidc" (trimSuffix "/" $b.oidc.issuerUrl))) -}}
{{- fail (printf "backend.oidc.issuerUrl is %q, but the embedded issuer's ends with /oidc; for an issuer of your own set backend.oidc.type=external" $b.oidc.issuerUrl) -}}
{{- end -}}
{{- if and (eq $b.oidc.type "embedded") (not $b.frontendDisabled) (not .Values.development) -}}
{{- fail "backend.oidc.type=embedded lets everybody in who can reach the backend: set backend.oidc.type=external and an issuer of your own, or development=true for a try" -}}
{{- end -}}
{{- if and .Values.rbac.create (not $b.kubeconfig) (not .Values.rbac.exportedKinds) (not .Values.rbac.anyKind) (not .Values.development) -}}
{{- fail "set rbac.exportedKinds to the kinds that may be exported, or rbac.anyKind=true: the backend then may escalate, which is as good as every right on this cluster" -}}
{{- end -}}
{{- range $name, $key := dict "cookieSigningKey" $b.cookieSigningKey "cookieEncryptionKey" $b.cookieEncryptionKey -}}
{{- if not (regexMatch "^[A-Za-z0-9+/]*={0,2}$" $key) -}}
{{- fail (printf "backend.%s is not base64; make one with: openssl rand -base64 32" $name) -}}
{{- end -}}
{{- end -}}
{{- if or $b.sessionStorage.redisAddress $b.sessionStorage.redisPassword -}}
{{- fail "leave backend.sessionStorage empty: replicas share keys by a Secret, and there are no sessions to store, so no Redis is needed" -}}
{{- end -}}
{{- if and $b.tls.enabled (not $b.tls.certSecretName) -}}
{{- fail "set backend.tls.certSecretName to a Secret with tls.crt and tls.key" -}}
{{- end -}}
{{- if ne (dir $b.tls.tlsCertFile) (dir $b.tls.tlsKeyFile) -}}
{{- fail "backend.tls.tlsCertFile and backend.tls.tlsKeyFile must be in the same folder: the Secret is mounted there" -}}
{{- end -}}
{{- if and (not $b.frontendDisabled) (eq $b.oidc.type "external") -}}
{{- if not $b.oidc.issuerUrl -}}{{- fail "set backend.oidc.issuerUrl: it says who somebody is; or turn the web front off with backend.frontendDisabled" -}}{{- end -}}
{{- if not $b.oidc.clientId -}}{{- fail "set backend.oidc.clientId: the issuer must know this backend" -}}{{- end -}}
{{- if not $b.oidc.callbackUrl -}}{{- fail "set backend.oidc.callbackUrl to https://<public name of the backend>/api/callback" -}}{{- end -}}
{{- if not (or $b.oidc.allowedGroups $b.oidc.allowedUsers) -}}{{- fail "set backend.oidc.allowedGroups or backend.oidc.allowedUsers: nobody could bind" -}}{{- end -}}
{{- end -}}
{{- if and $b.oidc.clientSecret $b.oidc.clientSecretName -}}
{{- fail "set one of backend.oidc.clientSecret and backend.oidc.clientSecretName, not both" -}}
{{- end -}}
{{- if and (include "backend.inKcp" .) (not $b.kubeconfig) -}}
{{- fail "set backend.kubeconfig to the path of a kubeconfig of the workspace with the APIExport: this cluster is not kcp" -}}
{{- end -}}
{{- if and .Values.certManager.enabled (not .Values.gatewayApi.enabled) -}}
{{- fail "certManager makes a certificate for the gateway: set gatewayApi.enabled too, or name a Secret in backend.tls.certSecretName" -}}
{{- end -}}
{{- if and .Values.certManager.enabled (not .Values.certManager.clusterIssuer) -}}
{{- fail "set certManager.clusterIssuer to the name of a ClusterIssuer" -}}
{{- end -}}
{{- if and .Values.gatewayApi.enabled (not .Values.gatewayApi.gateway.className) -}}
{{- fail "set gatewayApi.gateway.className to the name of a GatewayClass" -}}
{{- end -}}
{{- if and .Values.gatewayApi.enabled .Values.backend.tls.enabled -}}
{{- fail "the HTTPRoute speaks HTTP to the backend: set one of gatewayApi.enabled and backend.tls.enabled" -}}
{{- end -}}
{{- if and .Values.gatewayApi.enabled (not .Values.certManager.enabled) (not .Values.gatewayApi.gateway.tls.certificateRefs) -}}
{{- fail "the gateway has no certificate: set gatewayApi.gateway.tls.certificateRefs, or certManager.enabled" -}}
{{- end -}}
{{- end }}
