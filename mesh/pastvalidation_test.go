package mesh_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// TestObjectsStoredPastValidation: whatever stands in the store, a snapshot
// comes of it, the bad part is left out, and the good service stays.
func TestObjectsStoredPastValidation(t *testing.T) {
	good := objects(t, `
kind: ServiceEntry
apiVersion: networking.istio.io/v1
metadata: {name: good}
spec:
  hosts: [good.example]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 10.0.0.1}]
`)
	for _, test := range []struct{ name, spec, want string }{
		{"spec of another shape", `{"hosts": 5, "ports":[{"number":80,"name":"p"}]}`, "spec: the object is left out, its spec does not decode"},
		{"protocol", `{"hosts":["x"],"resolution":"DNS","ports":[{"number":80,"name":"p","protocol":"SMTP"}]}`,
			`spec.ports[0].protocol: the port is left out: use HTTP, HTTP2, GRPC, HTTPS, TCP, TLS, Mongo, Redis or UDP, found "SMTP"`},
		{"resolution", `{"hosts":["*.x"],"ports":[{"number":80,"name":"p","protocol":"HTTP"}],"resolution":"DYNAMIC_DNS"}`,
			`spec.resolution: requests for the hosts fail, because no proxy supports this resolution: use NONE, STATIC, DNS or DNS_ROUND_ROBIN, found "DYNAMIC_DNS"`},
		{"name under STATIC", `{"hosts":["x"],"resolution":"STATIC","ports":[{"number":80,"name":"p"}],"endpoints":[{"address":"a.example"}]}`,
			`spec.endpoints[0].address: the endpoint is left out: resolution STATIC allows only IP addresses and sockets, found "a.example"`},
		{"socket", `{"hosts":["x"],"resolution":"STATIC","ports":[{"number":80,"name":"p"}],"endpoints":[{"address":"unix://a"}]}`,
			"the endpoint is left out: a socket is a path from / or @ and a name, of at most 107 bytes"},
		{"no address", `{"hosts":["x"],"resolution":"DNS","ports":[{"number":80,"name":"p"}],"endpoints":[{}]}`,
			"the endpoint is left out: an endpoint needs an address"},
		{"endpoint under NONE", `{"hosts":["x"],"resolution":"NONE","ports":[{"number":80,"name":"p"}],"endpoints":[{"address":"10.0.0.1"}]}`,
			"the endpoint is left out: resolution NONE allows no endpoints"},
		{"same host twice", `{"hosts":["x","x"],"ports":[{"number":80,"name":"p"}],"resolution":"DNS"}`,
			"spec.hosts[1]: the host is declared by ServiceEntry default/bad"},
		{"two ports of a name", `{"hosts":["x"],"resolution":"DNS","ports":[{"number":80,"name":"p","targetPort":1},{"number":90,"name":"p","targetPort":2}]}`,
			`spec.ports[1].name: the port is left out: an earlier port has the name, found "p"`},
		{"two ports of a number", `{"hosts":["x"],"resolution":"DNS","ports":[{"number":80,"name":"p"},{"number":80,"name":"q"}]}`,
			"spec.ports[1].number: the port is left out: an earlier port has the number, found 80"},
		{"port 0", `{"hosts":["x"],"resolution":"DNS","ports":[{"name":"p"}]}`,
			"spec.ports[0].number: the port is left out: use 1 to 65535, found 0"},
		{"port out of range", `{"hosts":["x"],"resolution":"DNS","ports":[{"number":65536,"name":"p"}]}`,
			"spec.ports[0].number: the port is left out: use 1 to 65535, found 65536"},
		{"target out of range", `{"hosts":["x"],"resolution":"DNS","ports":[{"number":80,"name":"p","targetPort":65536}]}`,
			"spec.ports[0].targetPort: the port is left out: use 1 to 65535, found 65536"},
		{"port of an endpoint", `{"hosts":["x"],"resolution":"STATIC","ports":[{"number":80,"name":"p"}],"endpoints":[{"address":"10.0.0.2","ports":{"p":65536}}]}`,
			"spec.endpoints[0].ports.p: the endpoint is left out at this port: use 1 to 65535, found 65536"},
		{"port 0 of an endpoint", `{"hosts":["x"],"resolution":"STATIC","ports":[{"number":80,"name":"p"}],"endpoints":[{"address":"10.0.0.2","ports":{"p":0}}]}`,
			"spec.endpoints[0].ports.p: the endpoint is left out at this port: use 1 to 65535, found 0"},
		{"sum of weights", `{"hosts":["x"],"resolution":"STATIC","ports":[{"number":80,"name":"p"}],"endpoints":[{"address":"10.0.0.2","weight":4294967295},{"address":"10.0.0.3"}]}`,
			"spec: the weights of the endpoints are reduced in proportion: their sum may be at most 4294967295, found 4294967296"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := mesh.NewSnapshot(1, mesh.DefaultSettings(), append(good, unchecked(t, "ServiceEntry", test.spec)))
			wantProblems(t, s, test.want)
			if svc := s.Service("good.example"); svc == nil || len(svc.Instances) != 1 {
				t.Errorf("the good service is %+v", svc)
			}
		})
	}
}

// TestServiceThatCannotBeServed checks that a service whose resolution no proxy follows keeps
// its hosts and ports, so that they are not unknown to proxies, and has no instances.
func TestServiceThatCannotBeServed(t *testing.T) {
	for _, resolution := range []string{`"DYNAMIC_DNS"`, "77"} {
		s := mesh.NewSnapshot(1, mesh.DefaultSettings(), []*schema.Object{unchecked(t, "ServiceEntry",
			`{"hosts":["*.x"],"ports":[{"number":80,"name":"p","protocol":"HTTP"}],"endpoints":[{"address":"10.0.0.1"}],"resolution":`+resolution+`}`)})
		svc := s.Service("*.x")
		if svc == nil || !svc.Withheld || len(svc.Instances) != 0 || len(svc.Ports) != 1 {
			t.Errorf("resolution %s: the service is %+v", resolution, svc)
		}
	}
}

// TestTheRestOfABadEntry: what is left of an entry with bad parts is as if they
// were not there.
func TestTheRestOfABadEntry(t *testing.T) {
	s := mesh.NewSnapshot(1, mesh.DefaultSettings(), []*schema.Object{unchecked(t, "ServiceEntry", `{"hosts":["x"],"resolution":"STATIC",
		"ports":[{"number":80,"name":"p","targetPort":8080},{"number":90,"name":"p","targetPort":9090},{"number":70,"name":"q"}],
		"endpoints":[{"address":"10.0.0.1"},{"address":"10.0.0.2","ports":{"q":70000}}]}`)})
	if d := cmp.Diff([]string{"10.0.0.1:8080", "10.0.0.1:70", "10.0.0.2:8080"}, places(s.Service("x").Instances)); d != "" {
		t.Error(d)
	}
}

// TestWeightsThatAnEnvoyCounts keeps the shares that an author gave.
func TestWeightsThatAnEnvoyCounts(t *testing.T) {
	s := mesh.NewSnapshot(1, mesh.DefaultSettings(), []*schema.Object{unchecked(t, "ServiceEntry", `{"hosts":["x"],"resolution":"STATIC",
		"ports":[{"number":80,"name":"p"}],
		"endpoints":[{"address":"10.0.0.1","weight":4000000000},{"address":"10.0.0.2","weight":2000000000},{"address":"10.0.0.3"}]}`)})
	sum, weights := 0, []int{}
	for _, i := range s.Service("x").Instances {
		sum += i.Weight
		weights = append(weights, i.Weight)
	}
	if sum > math.MaxUint32 || weights[2] != 1 || weights[0]-2*weights[1] > 1 || weights[0] < 2_800_000_000 {
		t.Errorf("the weights are %v", weights)
	}
}

func TestUnreadableWorkload(t *testing.T) {
	s := mesh.NewSnapshot(1, mesh.DefaultSettings(), []*schema.Object{unchecked(t, "WorkloadEntry", `[]`)})
	wantProblems(t, s, "WorkloadEntry default/bad: spec: the object is left out, its spec does not decode")
}

func unchecked(t *testing.T, kind, spec string) *schema.Object {
	t.Helper()
	k, ok := schema.KindByName(kind)
	if !ok {
		t.Fatalf("no kind %s", kind)
	}
	o, err := schema.New(k, metav1.ObjectMeta{Namespace: "default", Name: "bad"}, []byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	return o
}
