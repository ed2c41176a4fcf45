package mesh_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilot-api/pilot-api/mesh"
)

const overNetworks = `
kind: ServiceEntry
apiVersion: networking.istio.io/v1
metadata: {name: web}
spec:
  hosts: [web.example]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}, {number: 90, name: tcp, protocol: TCP}]
  workloadSelector: {labels: {app: web}}
---
kind: WorkloadEntry
apiVersion: networking.istio.io/v1
metadata: {name: a}
spec: {address: 10.0.0.1, network: near, weight: 3, labels: {app: web, version: v1}}
---
kind: WorkloadEntry
apiVersion: networking.istio.io/v1
metadata: {name: b}
spec: {address: 10.0.0.2, network: far, weight: 2, labels: {app: web, version: v1}}
---
kind: WorkloadEntry
apiVersion: networking.istio.io/v1
metadata: {name: c, labels: {topology.istio.io/network: far}}
spec: {address: 10.0.0.3, weight: 5, labels: {app: web, version: v2}}
---
kind: WorkloadEntry
apiVersion: networking.istio.io/v1
metadata: {name: d}
spec: {network: far, labels: {app: web, version: v2}}
---
kind: WorkloadEntry
apiVersion: networking.istio.io/v1
metadata: {name: e}
spec: {address: 10.0.0.5, network: open, labels: {app: web}}
`

func TestInstancesOfAnotherNetwork(t *testing.T) {
	settings := mesh.DefaultSettings()
	settings.Networks = map[string][]mesh.NetworkGateway{
		"near": {{Address: "192.0.2.1", Port: 1}},
		"far":  {{Address: "192.0.2.2", Port: 2}, {Address: "192.0.2.3", Port: 3}},
	}
	s := mesh.NewSnapshot(1, settings, objects(t, overNetworks))
	wantProblems(t, s, "WorkloadEntry default/e: spec.network: all callers connect to the endpoint directly")
	for _, test := range []struct {
		key  string
		want []string
	}{
		{"web.example|http", []string{"10.0.0.1:80*3", "10.0.0.2:80*2", "10.0.0.3:80*5", "10.0.0.5:80*0"}},
		{"web.example|http||near", []string{"10.0.0.1:80*6", "192.0.2.2:2*8", "192.0.2.3:3*8", "10.0.0.5:80*2"}},
		{"web.example|http||far", []string{"192.0.2.1:1*3", "10.0.0.2:80*2", "10.0.0.3:80*5", "10.0.0.5:80*0"}},
		{"web.example|http||~", []string{"192.0.2.1:1*6", "192.0.2.2:2*8", "192.0.2.3:3*8", "10.0.0.5:80*2"}},
		{"web.example|tcp||near", []string{"10.0.0.1:90*3", "10.0.0.5:90*0"}},
		{"web.example|http|version=v1|near", []string{"10.0.0.1:80*3"}},
		{"web.example|http|version=v2|near", nil},
		{"web.example|http|version=v2|far", []string{"10.0.0.3:80*5"}},
	} {
		var got []string
		key := mesh.ParseServiceKey(test.key)
		for _, i := range s.Endpoints(key) {
			got = append(got, fmt.Sprintf("%s:%d*%d", i.Address, i.EndpointPort, i.Weight))
		}
		if d := cmp.Diff(test.want, got); d != "" || key.String() != test.key {
			t.Errorf("%s, %s: %s", test.key, key, d)
		}
	}
	for node, want := range map[string]string{"10.0.0.1": "near", "10.0.0.3": "far", "10.0.0.5": "~", "10.0.0.9": ""} {
		proxy, err := mesh.ParseProxy("sidecar~" + node + "~x~default.svc.cluster.local")
		if err != nil {
			t.Fatal(err)
		}
		if got := s.TraitsOf(proxy).Network; got != want {
			t.Errorf("%s is in network %q, want %q", node, got, want)
		}
		proxy.Labels = mesh.Labels{mesh.NetworkLabel: "far"}
		if got := s.TraitsOf(proxy).Network; got != "far" {
			t.Errorf("%s is in network %q, its node says far", node, got)
		}
	}
}
