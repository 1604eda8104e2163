{{/* Labels by which a component's pods are found. Takes a list: the root and the component's name. */}}
{{- define "memadmin.selector" -}}
app.kubernetes.io/name: memadmin
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "memadmin.labels" -}}
{{ include "memadmin.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ (index . 0).Chart.Name }}-{{ (index . 0).Chart.Version }}
{{- end }}

{{/* Every pod: the image's ordinary user, and nothing of the cluster. */}}
{{- define "memadmin.pod" -}}
automountServiceAccountToken: false
{{- /* Otherwise the Service memadmin-web gives variables that begin with MEMADMIN_, which would be refused. */}}
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* Every container: read-only, without capabilities, with the settings that all processes share. */}}
{{- define "memadmin.container" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
envFrom:
  - secretRef: {name: {{ .Values.secrets.common }}}
{{- end }}

{{- define "memadmin.settings" -}}
- name: MEMADMIN_ALLOWED_HOSTS
  value: {{ required "Set host: the name under which people reach the console." .Values.host | quote }}
{{- range $name, $value := .Values.settings }}
{{- if regexMatch "(^DATABASE_URL|_DATABASE_URL|_REPLICA_URL|_MAIL_URL|_DIGEST_URL|_KEY|_KEYS|_KEY_.*|_TOKEN|_SECRET|_PASSWORD)$" $name }}
{{- fail (printf "%s may contain a secret: put it into a Secret instead of settings." $name) }}
{{- end }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{/* A variable from a Secret of the same key. Takes a list: the Secret's name and the variable's. */}}
{{- define "memadmin.secret" -}}
- name: {{ index . 1 }}
  valueFrom: {secretKeyRef: {name: {{ index . 0 }}, key: {{ index . 1 }}}}
{{- end }}

{{/* Folders of the pod alone: static files, counters of metrics, temporary files. */}}
{{- define "memadmin.ownMounts" -}}
- {name: data, mountPath: /var/lib/memadmin}
- {name: tmp, mountPath: /tmp}
{{- end }}

{{- define "memadmin.ownVolumes" -}}
- name: data
  emptyDir: {}
- name: tmp
  emptyDir: {}
{{- end }}

{{/* Folders that web servers and workers share. */}}
{{- define "memadmin.sharedVolumes" -}}
- name: anchors
  persistentVolumeClaim: {claimName: {{ .Values.anchors.existingClaim | default (printf "%s-anchors" .Release.Name) }}}
- name: copies
  persistentVolumeClaim: {claimName: {{ .Values.copies.existingClaim | default (printf "%s-copies" .Release.Name) }}}
{{- end }}
