package discovery_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/internal/simulated"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// kindChange is an object in two versions, of which proxies are told a difference.
type kindChange struct{ kind, namespace, before, after string }

// kindChanges has one for each kind, and some that end what the object did to proxies.
func kindChanges(t *testing.T) map[string]kindChange {
	authority := selfsigned.NewAuthority(t, t.TempDir())
	secret := func() string {
		certificate, key := authority.PEM(t, "edge.example")
		text, err := json.Marshal(map[string]string{"certificate": certificate, "privateKey": key})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const workload = `{"address":"10.1.0.%d","labels":{"app":%q},"ports":{"http":8080}}`
	return map[string]kindChange{
		"RouteRule": {"RouteRule", "default",
			`{"destination":{"service":"web.example"},"httpReqTimeout":{"simpleTimeout":{"timeout":"1s"}}}`,
			`{"destination":{"service":"web.example"},"httpReqTimeout":{"simpleTimeout":{"timeout":"2s"}}}`},
		"DestinationPolicy": {"DestinationPolicy", "default",
			`{"destination":{"service":"web.example"},"circuitBreaker":{"simpleCb":{"maxConnections":1}}}`,
			`{"destination":{"service":"web.example"},"circuitBreaker":{"simpleCb":{"maxConnections":2}}}`},
		"EgressRule": {"EgressRule", "default",
			`{"destination":{"service":"wiki.outside"},"ports":[{"port":80,"protocol":"http"}]}`,
			`{"destination":{"service":"wiki.outside"},"ports":[{"port":81,"protocol":"http"}]}`},
		"IngressRule": {"IngressRule", "default",
			`{"destination":{"service":"web.example"},"port":80,"match":{"request":{"headers":{"uri":{"prefix":"/a"}}}}}`,
			`{"destination":{"service":"web.example"},"port":80,"match":{"request":{"headers":{"uri":{"prefix":"/b"}}}}}`},
		"ServiceEntry": {"ServiceEntry", "default", serviceSpec("cart.example", "10.1.0.20"), serviceSpec("cart.example", "10.1.0.21")},
		"ServiceEntry for its own namespace": {"ServiceEntry", "other",
			`{"hosts":["private.example"],"exportTo":["."],"resolution":"DNS","ports":[{"number":80,"name":"http","protocol":"HTTP"}]}`,
			`{"hosts":["private.example"],"exportTo":["."],"resolution":"DNS","ports":[{"number":81,"name":"http","protocol":"HTTP"}]}`},
		"WorkloadEntry":             {"WorkloadEntry", "default", fmt.Sprintf(workload, 30, "pay"), fmt.Sprintf(workload, 31, "pay")},
		"WorkloadEntry that leaves": {"WorkloadEntry", "default", fmt.Sprintf(workload, 30, "pay"), fmt.Sprintf(workload, 30, "idle")},
		"WorkloadEntry that comes":  {"WorkloadEntry", "default", fmt.Sprintf(workload, 30, "idle"), fmt.Sprintf(workload, 30, "pay")},
		"VirtualService": {"VirtualService", "default",
			`{"hosts":["web.example"],"http":[{"timeout":"1s","route":[{"destination":{"host":"web.example"}}]}]}`,
			`{"hosts":["web.example"],"http":[{"timeout":"2s","route":[{"destination":{"host":"web.example"}}]}]}`},
		"VirtualService that narrows": {"VirtualService", "default",
			`{"hosts":["web.example"],"http":[{"timeout":"1s","route":[{"destination":{"host":"web.example"}}]}]}`,
			`{"hosts":["web.example"],"exportTo":["."],"http":[{"timeout":"1s","route":[{"destination":{"host":"web.example"}}]}]}`},
		"DestinationRule": {"DestinationRule", "default",
			`{"host":"web.example","trafficPolicy":{"connectionPool":{"tcp":{"maxConnections":1}}}}`,
			`{"host":"web.example","trafficPolicy":{"connectionPool":{"tcp":{"maxConnections":2}}}}`},
		"DestinationRule of the mesh": {"DestinationRule", "istio-system",
			`{"host":"*.example","trafficPolicy":{"connectionPool":{"tcp":{"maxConnections":1}}}}`,
			`{"host":"*.example","trafficPolicy":{"connectionPool":{"tcp":{"maxConnections":2}}}}`},
		"Gateway": {"Gateway", "default",
			`{"servers":[{"port":{"number":80,"name":"http","protocol":"HTTP"},"hosts":["a.example"]}]}`,
			`{"servers":[{"port":{"number":81,"name":"http","protocol":"HTTP"},"hosts":["a.example"]}]}`},
		"Sidecar": {"Sidecar", "other",
			`{"egress":[{"hosts":["default/web.example"]}]}`,
			`{"egress":[{"hosts":["default/web.example","default/db.example"]}]}`},
		"Sidecar of the mesh": {"Sidecar", "istio-system",
			`{"egress":[{"hosts":["default/web.example"]}]}`,
			`{"egress":[{"hosts":["default/db.example"]}]}`},
		"Secret":              {"Secret", "default", secret(), secret()},
		"AuthorizationPolicy": {"AuthorizationPolicy", "default", `{}`, `{"rules":[{}]}`},
		"PeerAuthentication":  {"PeerAuthentication", "default", `{"mtls":{"mode":"STRICT"}}`, `{"mtls":{"mode":"DISABLE"}}`},
		"RequestAuthentication": {"RequestAuthentication", "default",
			`{"jwtRules":[{"issuer":"https://a.example","jwksUri":"https://a.example/keys"}]}`,
			`{"jwtRules":[{"issuer":"https://b.example","jwksUri":"https://a.example/keys"}]}`},
	}
}

func serviceSpec(host, ip string) string {
	return fmt.Sprintf(`{"hosts":[%q],"location":"MESH_INTERNAL","resolution":"STATIC","ports":[{"number":80,"name":"http","protocol":"HTTP"}],`+
		`"endpoints":[{"address":%q,"ports":{"http":8080}}]}`, host, ip)
}

// baseOfKinds is what the objects of kindChanges need beside them.
func baseOfKinds(t *testing.T) []*schema.Object {
	return []*schema.Object{
		service(t, "web.example", "10.1.0.1"), service(t, "db.example", "10.1.0.2"),
		object(t, "ServiceEntry", "pay", `{"hosts":["pay.example"],"location":"MESH_INTERNAL","resolution":"STATIC",
			"ports":[{"number":80,"name":"http","protocol":"HTTP"}],"workloadSelector":{"labels":{"app":"pay"}}}`),
		object(t, "Gateway", "tls", `{"servers":[{"port":{"number":443,"name":"https","protocol":"HTTPS"},"hosts":["*"],"tls":{"mode":"SIMPLE","credentialName":"subject"}}]}`),
		object(t, "VirtualService", "edge", `{"hosts":["a.example"],"gateways":["tls","subject"],"http":[{"route":[{"destination":{"host":"web.example"}}]}]}`),
	}
}

// TestEveryKindCountsTheProxiesThatItChanges: whoever is told a change of an object is
// among its proxies, and not among those that run it before they have accepted.
func TestEveryKindCountsTheProxiesThatItChanges(t *testing.T) {
	cases := kindChanges(t)
	for _, kind := range schema.Kinds() {
		if _, has := cases[kind.Kind]; !has && !kind.Flat {
			t.Errorf("no case for the kind %s", kind.Kind)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { countsWhoIsTold(t, cases[name]) })
		})
	}
}

func countsWhoIsTold(t *testing.T, c kindChange) {
	make := func(spec string) *schema.Object {
		kind, _ := schema.KindByName(c.kind)
		o, err := schema.New(kind, metav1.ObjectMeta{Name: "subject", Namespace: c.namespace}, []byte(spec))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	base := baseOfKinds(t)
	src := newObjects(append(base, make(c.before))...)
	s := follow(t, src, discovery.Options{})
	fleet := map[string]*simulated.Proxy{}
	for _, id := range []string{
		nodeA, nodeB, nodeWeb, "sidecar~10.9.0.3~c.other~other.svc.cluster.local",
		"router~10.9.0.4~edge.default~default.svc.cluster.local", "ingress~~ingress.default~default.svc.cluster.local",
	} {
		var secrets []string
		if id[0] == 'r' {
			secrets = []string{"default/subject"}
		}
		p, err := simulated.ConnectNode(s, mesh.Node{ID: id}, secrets...)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Leave()
		fleet[id] = p
	}
	synctest.Wait()
	for _, p := range fleet {
		p.Hold()
	}
	subject := make(c.after)
	ref := subject.Key().Ref()
	// A look before the change is what the next one builds upon.
	if of := s.ObjectStatuses(nil); c.before != c.after && len(of.Objects) != len(base)+1 {
		t.Fatalf("%d objects", len(of.Objects))
	}
	last := s.ObjectStatuses(nil)
	src.set(append(base, subject)...)
	time.Sleep(time.Second)
	synctest.Wait()

	told := map[string]bool{}
	for id, p := range fleet {
		if p.Held() > 0 {
			told[id] = true
		}
	}
	if len(told) == 0 {
		t.Fatal("nobody is told: the case shows nothing")
	}
	last = s.ObjectStatuses(last)
	for look, all := range map[string]*discovery.ObjectStatuses{"first": s.ObjectStatuses(nil), "next": last} {
		if of := all.Of(ref, src.revision); of.Proxies-of.Running != len(told) {
			t.Errorf("%s look: %d of %d proxies run it, and %d are told: %v", look, of.Running, of.Proxies, len(told), slices.Sorted(maps.Keys(told)))
		}
	}
	for _, one := range s.Proxies(ref) {
		delete(told, one.Node)
	}
	if len(told) > 0 {
		t.Errorf("not listed as proxies of the object: %v", told)
	}
	for _, p := range fleet {
		p.Accept()
	}
	synctest.Wait()
	if of := s.ObjectStatuses(last).Of(ref, src.revision); of.Running != of.Proxies {
		t.Errorf("at last %d of %d proxies run it", of.Running, of.Proxies)
	}
}
