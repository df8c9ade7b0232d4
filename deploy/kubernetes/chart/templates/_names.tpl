{{- define "labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "backend" -}}
{{- $options := list }}
{{- if .Values.label }}{{ $options = append $options "label=yes" }}{{ end }}
{{- if .Values.servicePort }}{{ $options = append $options (printf "service=%s&port=%v" .Release.Name .Values.servicePort) }}{{ end -}}
kubernetes://{{ if $options }}?{{ join "&" $options }}{{ end }}
{{- end }}

{{- define "account" -}}
{{- if .Values.rbac.create }}{{ .Release.Name }}{{ else }}{{ required "rbac.serviceAccountName is needed without rbac.create" .Values.rbac.serviceAccountName }}{{ end }}
{{- end }}
