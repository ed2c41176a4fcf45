package schema

import (
	"strings"
	"testing"
)

func TestHealthCheck(t *testing.T) {
	for _, tc := range []struct{ text, wrong string }{
		{"{http: {path: /healthz}, interval: 1s, timeout: 250ms, unhealthyThreshold: 2, healthyThreshold: 1}", ""},
		{"{http: {path: /healthz, host: a.example}}", ""},
		{"tcp: {}", ""},
		{"grpc: {service: a}", ""},
		{"", "exactly one"},
		{"{tcp: {}, grpc: {}}", "exactly one"},
		{"{http: {}}", "http.path"},
		{"{http: {path: healthz}}", "http.path"},
		{"{http: {path: \"/a\\nb\"}}", "http.path"},
		{"{http: {path: /, host: a b}}", "http.host"},
		{"{tcp: {}, interval: 0s}", "interval"},
		{"{tcp: {}, timeout: 1us}", "timeout"},
		{"{tcp: {}, interval: 5}", "must be a health check"},
		{"{tcp: {}, unhealthyThreshold: 0}", "unhealthyThreshold"},
		{"{tcp: {}, healthyThreshold: 1001}", "healthyThreshold"},
		{"{udp: {}}", "udp"},
		{"[", "must be a health check"},
	} {
		_, err := ParseHealthCheck(tc.text)
		if tc.wrong == "" && err != nil || tc.wrong != "" && (err == nil || !strings.Contains(err.Error(), tc.wrong)) {
			t.Errorf("%s: %v, want %q", tc.text, err, tc.wrong)
		}
	}
}

// TestHealthCheckOfAnObject is told where it stands.
func TestHealthCheckOfAnObject(t *testing.T) {
	const entry = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata:
  name: a
  annotations:
    pilot-api/health-check: 'http: {}'
spec: {hosts: [a.b], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS}
`
	for text, want := range map[string]string{
		entry: "f:6:29: ServiceEntry default/a: metadata.annotations[pilot-api/health-check]: http.path must be",
		strings.NewReplacer("ServiceEntry", "DestinationRule", "hosts: [a.b], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS", "host: a").Replace(entry): "has no effect on a DestinationRule",
	} {
		_, problems, _ := Split([]byte(text), "f")[0].Objects(t.Context(), DefaultNamespace)
		if len(problems) != 1 || !strings.Contains(problems[0].String(), want) {
			t.Errorf("found %v, want %s", problems, want)
		}
	}
}
