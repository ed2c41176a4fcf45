package mesh_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilot-api/pilot-api/mesh"
)

func TestServiceKeyText(t *testing.T) {
	for _, test := range []struct {
		text string
		want mesh.ServiceKey
	}{
		{"hello", mesh.ServiceKey{Hostname: "hello"}},
		{"hello|http", mesh.ServiceKey{Hostname: "hello", Ports: []string{"http"}}},
		{"hello|http,mongo", mesh.ServiceKey{Hostname: "hello", Ports: []string{"http", "mongo"}}},
		{"hello|http|a=1,b=2", mesh.ServiceKey{Hostname: "hello", Ports: []string{"http"}, LabelSets: []mesh.Labels{{"a": "1", "b": "2"}}}},
		{"hello|http|a=1;a=2", mesh.ServiceKey{Hostname: "hello", Ports: []string{"http"}, LabelSets: []mesh.Labels{{"a": "1"}, {"a": "2"}}}},
		{"hello|http|a", mesh.ServiceKey{Hostname: "hello", Ports: []string{"http"}, LabelSets: []mesh.Labels{{"a": ""}}}},
		{"hello||a=1", mesh.ServiceKey{Hostname: "hello", LabelSets: []mesh.Labels{{"a": "1"}}}},
	} {
		got := mesh.ParseServiceKey(test.text)
		if d := cmp.Diff(test.want, got); d != "" {
			t.Errorf("%s: %s", test.text, d)
		}
		if got.String() != test.text {
			t.Errorf("%s comes back as %s", test.text, got)
		}
	}
}

// TestServiceKeyIsBounded: who names as many as there is room for in a request
// makes nobody look for them.
func TestServiceKeyIsBounded(t *testing.T) {
	for _, test := range []struct {
		text string
		want bool
	}{
		{"hello|" + strings.Repeat("a,", 15) + "a", true},
		{"hello|" + strings.Repeat("a,", 16) + "a", false},
		{"hello|a|" + strings.Repeat("b=1;", 15) + "b=1", true},
		{"hello|a|" + strings.Repeat("b=1;", 16) + "b=1", false},
		{"hello|a|" + strings.Repeat("b=1,", 100) + "b=1", true},
	} {
		if got := mesh.ParseServiceKey(test.text); (got.Hostname != "") != test.want {
			t.Errorf("%.40s: got the host %q", test.text, got.Hostname)
		}
	}
}

func TestNewServiceKey(t *testing.T) {
	port := &mesh.Port{Name: "web", Number: 443, Protocol: mesh.HTTPS}
	inside, outside := &mesh.Service{Hostname: "a"}, &mesh.Service{Hostname: "b", External: true}
	for _, test := range []struct {
		service *mesh.Service
		labels  mesh.Labels
		want    string
	}{
		{inside, nil, "a|web"},
		{inside, mesh.Labels{}, "a|web"},
		{inside, mesh.Labels{"b": "2", "a": "1"}, "a|web|a=1,b=2"},
		{outside, nil, "b|external-HTTPS-443"},
	} {
		if got := mesh.NewServiceKey(test.service, port, test.labels).String(); got != test.want {
			t.Errorf("want %s, found %s", test.want, got)
		}
	}
}

func TestEndpoints(t *testing.T) {
	s := snapshot(t, `
kind: ServiceEntry
apiVersion: networking.istio.io/v1
metadata: {name: hello}
spec:
  hosts: [hello.example]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}, {number: 81, name: tcp, protocol: TCP}]
  endpoints:
    - {address: 10.0.0.1, labels: {v: "1", zone: a}}
    - {address: 10.0.0.2, labels: {v: "2"}}
---
kind: ServiceEntry
apiVersion: networking.istio.io/v1
metadata: {name: out}
spec:
  hosts: [out.example]
  location: MESH_EXTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 10.0.0.3}]
`)
	for key, want := range map[string][]string{
		"hello.example|http":            {"10.0.0.1:80", "10.0.0.2:80"},
		"hello.example|http,tcp":        {"10.0.0.1:80", "10.0.0.1:81", "10.0.0.2:80", "10.0.0.2:81"},
		"hello.example|tcp|v=1":         {"10.0.0.1:81"},
		"hello.example|tcp|v=1;zone=a":  {"10.0.0.1:81"},
		"hello.example|http|v=1;v=2":    {"10.0.0.1:80", "10.0.0.2:80"},
		"hello.example|http|v=3":        nil,
		"hello.example|none":            nil,
		"hello.example":                 nil, // Its ports all have names.
		"nobody.example|http":           nil,
		"out.example|http":              nil,
		"out.example|external-HTTP-80":  nil,
		"":                              nil,
		"|||":                           nil,
		"hello.example|http|v=1,zone=b": nil,
	} {
		if d := cmp.Diff(want, places(s.Endpoints(mesh.ParseServiceKey(key)))); d != "" {
			t.Errorf("%s: %s", key, d)
		}
	}
}
