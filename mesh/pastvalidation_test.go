package mesh_test

import (
	"testing"

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
		{"spec of another shape", `{"hosts": 5}`, "spec: the object is left out, its spec does not decode"},
		{"protocol", `{"hosts":["x"],"resolution":"DNS","ports":[{"number":80,"name":"p","protocol":"SMTP"}]}`,
			`spec.ports[0].protocol: the port is left out: use HTTP, HTTP2, GRPC, HTTPS, TCP, TLS, Mongo, Redis or UDP, found "SMTP"`},
		{"resolution", `{"hosts":["*.x"],"resolution":"DYNAMIC_DNS"}`,
			`spec.resolution: the hosts are left out of the registry: use NONE, STATIC, DNS or DNS_ROUND_ROBIN, found "DYNAMIC_DNS"`},
		{"name under STATIC", `{"hosts":["x"],"resolution":"STATIC","endpoints":[{"address":"a.example"}]}`,
			`spec.endpoints[0].address: the endpoint is left out: resolution STATIC takes IP addresses only, found "a.example"`},
		{"socket", `{"hosts":["x"],"resolution":"STATIC","endpoints":[{"address":"unix:///a"}]}`,
			"the endpoint is left out: unix sockets are not supported"},
		{"no address", `{"hosts":["x"],"resolution":"DNS","endpoints":[{}]}`,
			"the endpoint is left out: an endpoint needs an address"},
		{"endpoint under NONE", `{"hosts":["x"],"resolution":"NONE","endpoints":[{"address":"10.0.0.1"}]}`,
			"the endpoint is left out: resolution NONE takes no endpoints"},
		{"same host twice", `{"hosts":["x","x"],"resolution":"DNS"}`,
			"spec.hosts[1]: the host is declared by ServiceEntry default/bad"},
		{"names of certificates", `{"hosts":["x"],"resolution":"DNS","subjectAltNames":["y"]}`,
			"spec.subjectAltNames: certificates of endpoints are not checked"},
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
