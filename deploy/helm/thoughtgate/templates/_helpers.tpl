{{- define "thoughtgate.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "thoughtgate.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "thoughtgate.labels" -}}
{{ include "thoughtgate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "thoughtgate.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "thoughtgate.name" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* Not empty if the gates share a database. */}}
{{- define "thoughtgate.shared" -}}
{{- if or .Values.database.url .Values.database.urlKey -}}true{{- end -}}
{{- end -}}

{{- define "thoughtgate.hasKeys" -}}
{{- if or .Values.sessionKeys.existingSecret .Values.sessionKeys.values -}}true{{- end -}}
{{- end -}}

{{/* Fail with a sentence about values that cannot work together. */}}
{{- define "thoughtgate.check" -}}
{{- if not (dig "listen" "auth" dict .Values.config) -}}
{{- fail "config.listen.auth is missing: say how agents authenticate, for example {type: bearer, token_env: AGENT_TOKEN}" -}}
{{- end -}}
{{- if not (include "thoughtgate.shared" .) -}}
{{- if or .Values.autoscaling.enabled (gt (int .Values.replicaCount) 1) -}}
{{- fail "several replicas need a shared store: set database.url, or keep replicaCount at 1 and autoscaling off" -}}
{{- end -}}
{{- else if not (include "thoughtgate.hasKeys" .) -}}
{{- fail "gates that share a database need the same session keys: set sessionKeys.existingSecret" -}}
{{- end -}}
{{- if and .Values.database.urlKey (not .Values.database.existingSecret) -}}
{{- fail "database.urlKey names a key of database.existingSecret, which is not set" -}}
{{- end -}}
{{- if and .Values.console.enabled (not (dig "console" "sign_in" dict .Values.config)) -}}
{{- fail "config.console.sign_in is missing: the console of a cluster is for reviewers who sign in through a proxy" -}}
{{- end -}}
{{- if and .Values.autoscaling.enabled (gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) -}}
{{- fail "autoscaling.minReplicas is greater than autoscaling.maxReplicas" -}}
{{- end -}}
{{- end -}}

{{/* The gate's config: the values, and over them what the chart decides. */}}
{{- define "thoughtgate.config" -}}
{{- $listen := dict
  "transport" "http"
  "host" "0.0.0.0"
  "port" 8080
  "admin_host" "0.0.0.0"
  "admin_port" 9090
  "lame_duck" (printf "%ds" (int .Values.shutdown.lameDuckSeconds))
  "drain" (printf "%ds" (int .Values.shutdown.drainSeconds)) -}}
{{- $own := dict "listen" $listen -}}
{{- if .Values.console.enabled -}}
{{- $_ := set $own "console" (dict "enabled" true "host" "0.0.0.0" "port" 8081) -}}
{{- end -}}
{{- if .Values.database.urlKey -}}
{{- $_ := set $own "store" "${DATABASE_URL}" -}}
{{- else if .Values.database.url -}}
{{- $_ := set $own "store" .Values.database.url -}}
{{- end -}}
{{- if include "thoughtgate.hasKeys" . -}}
{{- $_ := set $own "keys" (dict "file" "/etc/thoughtgate/keys/session") -}}
{{- end -}}
{{- mustMergeOverwrite (deepCopy .Values.config) $own | toYaml -}}
{{- end -}}

{{- define "thoughtgate.tokensSecret" -}}
{{- default (printf "%s-tokens" (include "thoughtgate.name" .)) .Values.tokens.existingSecret -}}
{{- end -}}

{{- define "thoughtgate.databaseSecret" -}}
{{- default (printf "%s-database" (include "thoughtgate.name" .)) .Values.database.existingSecret -}}
{{- end -}}

{{- define "thoughtgate.keysSecret" -}}
{{- default (printf "%s-session-keys" (include "thoughtgate.name" .)) .Values.sessionKeys.existingSecret -}}
{{- end -}}
