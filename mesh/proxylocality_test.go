package mesh_test

import (
	"testing"

	"github.com/pilot-api/pilot-api/mesh"
)

const placedServices = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web}
spec:
  hosts: [web.example]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 10.1.0.1, locality: r/z/s}, {address: 10.1.0.2, locality: q}]
`

func outlierRule(exportTo string) string {
	return "\n---\n" + `apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web, namespace: shop}
spec: {host: web.example, exportTo: [` + exportTo + `], trafficPolicy: {outlierDetection: {}}}
`
}

// TestPlaceOfViews: where a proxy is tells it from others as far as some object
// knows of it, and only where a rule that concerns it asks.
func TestPlaceOfViews(t *testing.T) {
	distribute := "\n---\n" + `apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web, namespace: shop}
spec: {host: web.example, trafficPolicy: {loadBalancer: {localityLbSetting: {distribute: [{from: p/z/*, to: {q: 100}}]}}}}
`
	off := "\n---\n" + `apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web}
spec: {host: web.example, trafficPolicy: {outlierDetection: {}, loadBalancer: {localityLbSetting: {enabled: false}}}}
`
	const beside, elsewhere = "10.1.0.1", "10.9.0.1"
	for _, test := range []struct {
		name, rules, namespace, ip, states, want string
	}{
		{"nobody asks", "", "default", elsewhere, "r/z/s", ""},
		{"known", outlierRule("'*'"), "default", elsewhere, "r/z/s", "r/z/s"},
		{"a part is known", outlierRule("'*'"), "default", elsewhere, "r/z/t", "r/z/_unknown"},
		{"a region is known", outlierRule("'*'"), "default", elsewhere, "q/a/b", "q/_unknown"},
		{"nothing is known", outlierRule("'*'"), "default", elsewhere, "o/z/s", ""},
		{"for nobody here", outlierRule("."), "default", elsewhere, "r/z/s", ""},
		{"for here", outlierRule("."), "shop", elsewhere, "r/z/s", "r/z/s"},
		{"of its instance", outlierRule("'*'"), "default", beside, "", "r/z/s"},
		{"its own word counts", outlierRule("'*'"), "default", beside, "q", "q"},
		{"nowhere", outlierRule("'*'"), "default", elsewhere, "", ""},
		{"a rule knows it", distribute, "default", elsewhere, "p/z/s", "p/z/_unknown"},
		{"switched off", off, "default", elsewhere, "r/z/s", ""},
	} {
		s := mesh.NewSnapshot(1, mesh.DefaultSettings(), objects(t, placedServices+test.rules))
		traits := s.TraitsOf(mesh.Proxy{Role: mesh.Sidecar, IP: test.ip, Domain: test.namespace + ".svc.cluster.local", Locality: test.states})
		if traits.Locality != test.want {
			t.Errorf("%s: %q, want %q", test.name, traits.Locality, test.want)
		}
	}
}

func TestLocalitySettings(t *testing.T) {
	for text, want := range map[string]string{
		"localityLbSetting: {failover: [{from: a, to: b}]}":                                 "",
		"localityLbSetting: {enabled: false}":                                               "",
		"localityLbSetting: {failover: [{from: a, to: a}]}":                                 "mesh.yaml:1:20: localityLbSetting: failover[0].to must be another region than from",
		"localityLbSetting: {distribute: [{from: a, to: {b: 90}}]}":                         "mesh.yaml:1:20: localityLbSetting: distribute[0].to the shares must sum to 100, found 90",
		"localityLbSetting: {distribute: [{from: a, to: {b: 100}}], failover: [{from: a}]}": "mesh.yaml:1:20: localityLbSetting: failover cannot be given together with distribute: shares are fixed, or follow what fails",
	} {
		settings, problems := mesh.ParseSettings([]byte(text), "mesh.yaml")
		found := ""
		if err := problems.Err(); err != nil {
			found = err.Error()
		} else if settings.LocalityLbSetting == nil {
			t.Errorf("%s: nothing is set", text)
		}
		if found != want {
			t.Errorf("%s: %q, want %q", text, found, want)
		}
	}
	if _, problems := mesh.ParseSettings([]byte("localityLbSetting: {near: true}"), "mesh.yaml"); problems.Err() == nil {
		t.Error("a name that is not there is taken")
	}
}
