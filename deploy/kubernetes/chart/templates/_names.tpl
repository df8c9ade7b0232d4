{{- define "labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "account" -}}
{{- if .Values.rbac.create }}{{ .Release.Name }}{{ else }}{{ required "rbac.serviceAccountName is needed without rbac.create" .Values.rbac.serviceAccountName }}{{ end }}
{{- end }}
