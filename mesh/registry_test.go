package mesh_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

func snapshot(t testing.TB, text string) *mesh.Snapshot {
	t.Helper()
	return mesh.NewSnapshot(1, mesh.DefaultSettings(), objects(t, text))
}

func objects(t testing.TB, text string) []*schema.Object {
	t.Helper()
	var out []*schema.Object
	for _, doc := range schema.Split([]byte(text), "objects.yaml") {
		objs, problems, _ := doc.Objects(t.Context(), schema.DefaultNamespace)
		if err := problems.Err(); err != nil {
			t.Fatalf("bad test input:\n%v", err)
		}
		out = append(out, objs...)
	}
	return out
}

// places are the addresses of instances, in order.
func places(instances []*mesh.Instance) []string {
	var out []string
	for _, i := range instances {
		out = append(out, fmt.Sprintf("%s:%d", i.Address, i.EndpointPort))
	}
	return out
}

const selecting = `
kind: ServiceEntry
apiVersion: networking.istio.io/v1
metadata: {name: hello, namespace: here}
spec:
  hosts: [hello.example]
  addresses: [10.9.0.1]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: http, targetPort: 8080}, {number: 90, name: db, protocol: MONGO}]
  workloadSelector: {labels: {app: hello}}
---
kind: WorkloadEntry
apiVersion: networking.istio.io/v1
metadata: {name: b, namespace: here, labels: {app: hello, version: meta}}
spec: {address: 10.0.0.2, labels: {version: v2}, locality: region/zone, weight: 7}
---
kind: WorkloadEntry
apiVersion: networking.istio.io/v1
metadata: {name: a, namespace: here}
spec: {address: 10.0.0.1, labels: {app: hello}, ports: {http: 9999}}
---
kind: WorkloadEntry
apiVersion: networking.istio.io/v1
metadata: {name: a, namespace: elsewhere}
spec: {address: 10.0.0.3, labels: {app: hello}}
`

func TestWorkloadSelector(t *testing.T) {
	s := snapshot(t, selecting)
	svc := s.Service("hello.example")
	want := []string{"10.0.0.1:9999", "10.0.0.1:90", "10.0.0.2:8080", "10.0.0.2:90"}
	if d := cmp.Diff(want, places(svc.Instances)); d != "" {
		t.Error(d)
	}
	last := svc.Instances[3]
	if d := cmp.Diff(mesh.Labels{"app": "hello", "version": "v2"}, last.Labels); d != "" {
		t.Error(d)
	}
	if last.Zone != "region/zone" || last.Weight != 7 || last.Port.Protocol != mesh.Mongo {
		t.Errorf("found %+v of port %+v", last, last.Port)
	}
	wantProblems(t, s, "WorkloadEntry elsewhere/a: no ServiceEntry of the namespace selects this workload")
}

func TestServiceFields(t *testing.T) {
	svc := snapshot(t, selecting).Service("hello.example")
	if !slices.Equal(svc.Addresses, []string{"10.9.0.1"}) || svc.External || svc.Resolution != mesh.Static || svc.Namespace != "here" {
		t.Errorf("found %+v", svc)
	}
	if svc.Port(80) != svc.PortByName("http") || svc.Port(80).Protocol != mesh.HTTP || svc.Port(8080) != nil {
		t.Errorf("ports are %v", svc.Ports)
	}
}

func TestAddressesInOneSpelling(t *testing.T) {
	svc := snapshot(t, `
kind: ServiceEntry
apiVersion: networking.istio.io/v1
metadata: {name: a}
spec: {hosts: [x.example], addresses: [10.0.0.1/32, 10.0.0.1, 192.0.2.7/24, "2001:DB8::0:1", 192.0.2.0/24], ports: [{number: 80, name: tcp}]}
`).Service("x.example")
	if d := cmp.Diff([]string{"10.0.0.1", "192.0.2.0/24", "2001:db8::1"}, svc.Addresses); d != "" {
		t.Error(d)
	}
}

func TestInstancesAt(t *testing.T) {
	s := snapshot(t, selecting+`
---
kind: ServiceEntry
apiVersion: networking.istio.io/v1
metadata: {name: another}
spec:
  hosts: [another.example]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 70, name: tcp, protocol: TCP}]
  endpoints: [{address: 10.0.0.2}]
---
kind: ServiceEntry
apiVersion: networking.istio.io/v1
metadata: {name: outside}
spec:
  hosts: [outside.example]
  location: MESH_EXTERNAL
  resolution: STATIC
  ports: [{number: 71, name: tcp, protocol: TCP}]
  endpoints: [{address: 10.0.0.2}]
`)
	want := []string{"10.0.0.2:70", "10.0.0.2:8080", "10.0.0.2:90"}
	if d := cmp.Diff(want, places(s.InstancesAt("10.0.0.2"))); d != "" {
		t.Error(d)
	}
}

func TestRegistryProblems(t *testing.T) {
	entry := func(name, spec string) string {
		return fmt.Sprintf("---\nkind: ServiceEntry\napiVersion: networking.istio.io/v1\nmetadata: {name: %s}\nspec:\n  ports: [{number: 80, name: http, protocol: HTTP}]\n%s\n", name, spec)
	}
	for _, test := range []struct{ name, text, want string }{
		{"two entries for one host",
			entry("b", "  hosts: [x.example]\n  resolution: DNS") + entry("a", "  hosts: [x.example]\n  resolution: DNS"),
			`ServiceEntry default/b: spec.hosts[0]: the host is declared by ServiceEntry default/a`},
		{"names looked up to one address",
			entry("a", "  hosts: [x.example]\n  resolution: DNS_ROUND_ROBIN\n  workloadSelector: {}") +
				"---\nkind: WorkloadEntry\napiVersion: networking.istio.io/v1\nmetadata: {name: w}\nspec: {address: a.example}\n" +
				"---\nkind: WorkloadEntry\napiVersion: networking.istio.io/v1\nmetadata: {name: x}\nspec: {address: b.example}\n",
			"ServiceEntry default/a: spec.workloadSelector: each of them is resolved to all its addresses, as with DNS: DNS_ROUND_ROBIN allows at most one endpoint, found 2 workloads"},
		{"selected socket under DNS",
			entry("a", "  hosts: [x.example]\n  resolution: DNS\n  workloadSelector: {labels: {app: x}}") +
				"---\nkind: WorkloadEntry\napiVersion: networking.istio.io/v1\nmetadata: {name: w}\nspec: {address: unix:///run/a, labels: {app: x}}\n",
			"WorkloadEntry default/w: spec.address: the endpoint is left out: a socket needs resolution STATIC, as ServiceEntry default/a has it"},
		{"network of an endpoint",
			entry("a", "  hosts: [x.example]\n  resolution: STATIC\n  endpoints: [{address: 10.0.0.1, network: far}]"),
			`spec.endpoints[0].network: all callers connect to the endpoint directly: networks of the mesh settings has no gateways for it, found "far"`},
		{"account of a workload",
			entry("a", "  hosts: [x.example]\n  resolution: STATIC\n  workloadSelector: {labels: {app: x}}") +
				"---\nkind: WorkloadEntry\napiVersion: networking.istio.io/v1\nmetadata: {name: w}\nspec: {address: 10.0.0.1, serviceAccount: reviews, labels: {app: x}}\n",
			`WorkloadEntry default/w: spec.serviceAccount: callers verify it only for endpoints with the label security.istio.io/tlsMode: istio, found "reviews"`},
		{"empty selection",
			entry("a", "  hosts: [x.example]\n  resolution: STATIC\n  location: MESH_INTERNAL\n  workloadSelector: {labels: {app: x}}"),
			"spec.workloadSelector.labels: no WorkloadEntry in namespace default has these labels"},
		{"selected name under STATIC",
			entry("a", "  hosts: [x.example]\n  resolution: STATIC\n  location: MESH_INTERNAL\n  workloadSelector: {labels: {app: x}}") +
				"---\nkind: WorkloadEntry\napiVersion: networking.istio.io/v1\nmetadata: {name: w}\nspec: {address: host.example, labels: {app: x}}\n",
			"WorkloadEntry default/w: spec.address: the endpoint is left out: resolution STATIC allows only IP addresses and sockets, as ServiceEntry default/a has it"},
	} {
		t.Run(test.name, func(t *testing.T) { wantProblems(t, snapshot(t, test.text), test.want) })
	}
}

// wantProblems wants one problem a line, and nothing that refuses an object.
func wantProblems(t *testing.T, s *mesh.Snapshot, lines ...string) {
	t.Helper()
	if err := s.Problems.Err(); err != nil {
		t.Errorf("stored objects cannot be refused: %v", err)
	}
	if len(s.Problems) != len(lines) {
		t.Fatalf("want %d problems, found:\n%v", len(lines), s.Problems)
	}
	for i, want := range lines {
		if got := s.Problems[i].String(); !strings.Contains(got, want) {
			t.Errorf("want %q in:\n%s", want, got)
		}
	}
}

func TestOrderOfObjectsHasNoEffect(t *testing.T) {
	objs := objects(t, selecting)
	want := mesh.NewSnapshot(1, mesh.DefaultSettings(), objs)
	slices.Reverse(objs)
	got := mesh.NewSnapshot(1, mesh.DefaultSettings(), objs)
	if d := cmp.Diff(places(want.Service("hello.example").Instances), places(got.Service("hello.example").Instances)); d != "" {
		t.Error(d)
	}
}

func TestTieBreakOrder(t *testing.T) {
	entry := "---\nkind: WorkloadEntry\napiVersion: networking.istio.io/v1\nmetadata: {name: %s, namespace: %s}\nspec: {address: 10.0.0.1}\n"
	s := snapshot(t, fmt.Sprintf(entry+entry+entry+entry, "x", "a", "x", "a-b", "b", "a", "b", "a0"))
	var got []string
	for _, o := range s.Objects("WorkloadEntry") {
		got = append(got, o.Meta.Namespace+"/"+o.Meta.Name)
	}
	if d := cmp.Diff([]string{"a-b/x", "a/b", "a/x", "a0/b"}, got); d != "" {
		t.Error(d)
	}
}

func TestViewKey(t *testing.T) {
	s := snapshot(t, selecting)
	key := func(node string) string {
		p, err := mesh.ParseProxy(node)
		if err != nil {
			t.Fatal(err)
		}
		return s.TraitsOf(p).Key()
	}
	idle := key("sidecar~10.5.0.1~x~ns.svc.cluster.local")
	if idle != key("sidecar~10.5.0.2~y~ns.svc.cluster.local") {
		t.Error("proxies without instances differ by address or id")
	}
	for _, node := range []string{
		"sidecar~10.5.0.1~x~here.svc.cluster.local",
		"router~10.5.0.1~x~ns.svc.cluster.local",
		"sidecar~10.0.0.1~x~here.svc.cluster.local",
		"sidecar~10.0.0.2~x~here.svc.cluster.local",
	} {
		if key(node) == idle {
			t.Errorf("%s has the view of a proxy without instances", node)
		}
	}
	if key("sidecar~10.0.0.1~x~d") == key("sidecar~10.0.0.2~x~d") {
		t.Error("instances with other ports and labels have the same view")
	}
	if key("ingress~10.0.0.1~x~d") != key("ingress~10.0.0.2~x~d") {
		t.Error("an ingress has own instances")
	}
}

// TestPortProtocols: whatever validation lets pass is a port of the mesh.
func TestPortProtocols(t *testing.T) {
	for written, want := range map[string]mesh.Protocol{
		"": mesh.TCP, "tcp": mesh.TCP, "MYSQL": mesh.TCP, "GRPC-WEB": mesh.HTTP, "grpc": mesh.GRPC,
		"HTTP": mesh.HTTP, "http2": mesh.HTTP2, "HTTPS": mesh.HTTPS, "TLS": mesh.TLS, "MONGO": mesh.Mongo, "redis": mesh.Redis, "UDP": mesh.UDP,
	} {
		if got, ok := mesh.ParseProtocol(written); !ok || got != want {
			t.Errorf("%q: got %q, %v, want %q", written, got, ok, want)
		}
	}
}

// TestHostOwner: the namespace in a host's name comes first, then age, then
// namespace and name.
func TestHostOwner(t *testing.T) {
	const local, outside = "web.shop.svc.cluster.local", "web.example"
	for _, test := range []struct {
		host       string
		one, other declaration
		why        string // the other wins
	}{
		{local, declaration{"a", "a", 2020}, declaration{"shop", "z", 2024}, "the host's own namespace"},
		{outside, declaration{"a", "a", 2024}, declaration{"b", "b", 2020}, "which is older"},
		{outside, declaration{"a", "b", 2020}, declaration{"a", "a", 2020}, "comes first by namespace and name"},
		{local, declaration{"a", "a", 2024}, declaration{"b", "b", 2020}, "which is older"},
	} {
		s := mesh.NewSnapshot(1, mesh.DefaultSettings(), []*schema.Object{test.one.of(t, test.host), test.other.of(t, test.host)})
		if got := s.Service(test.host).Origin; got.Namespace != test.other.namespace || got.Name != test.other.name {
			t.Errorf("%s is of %s, want %v", test.host, got, test.other)
		}
		if text := s.Problems.Error(); len(s.Problems) != 1 || !strings.Contains(text, test.why) {
			t.Errorf("want one problem with %q:\n%s", test.why, text)
		}
	}
}

// declaration is a ServiceEntry of some year.
type declaration struct {
	namespace, name string
	year            int
}

func (d declaration) of(t *testing.T, host string) *schema.Object {
	t.Helper()
	kind, _ := schema.KindByName("ServiceEntry")
	meta := metav1.ObjectMeta{Namespace: d.namespace, Name: d.name, CreationTimestamp: metav1.NewTime(time.Date(d.year, 1, 1, 0, 0, 0, 0, time.UTC))}
	o, err := schema.New(kind, meta, fmt.Appendf(nil, `{"hosts":[%q],"resolution":"DNS","ports":[{"number":80,"name":"http","protocol":"HTTP"}]}`, host))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestEachNamespaceItsOwn: callers know a host by the first declaration that is
// exported to them, and each has instances under a key of its own.
func TestEachNamespaceItsOwn(t *testing.T) {
	const entry = `---
kind: ServiceEntry
apiVersion: networking.istio.io/v1
metadata: {name: db, namespace: %s}
spec: {hosts: [db.example], exportTo: [%s], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: %s}]}
`
	s := snapshot(t, fmt.Sprintf(entry+entry+entry+entry,
		"a", `"."`, "10.0.0.1", "b", `"."`, "10.0.0.2", "c", `"*"`, "10.0.0.3", "d", `"a", "."`, "10.0.0.4"))
	for namespace, want := range map[string]string{"a": "10.0.0.1:80", "b": "10.0.0.2:80", "c": "10.0.0.3:80", "d": "10.0.0.3:80", "": "10.0.0.3:80"} {
		svc := s.ServiceIn(namespace, "db.example")
		if d := cmp.Diff([]string{want}, places(svc.Instances)); d != "" {
			t.Errorf("in %q: %s", namespace, d)
		}
		key := mesh.ParseServiceKey(mesh.NewServiceKey(svc, svc.Ports[0], nil).String())
		if d := cmp.Diff([]string{want}, places(s.Endpoints(key))); d != "" {
			t.Errorf("%s: %s", key, d)
		}
	}
	seen := 0
	for _, svc := range s.Services {
		if svc.VisibleIn("a") {
			seen++
		}
	}
	if first := s.Service("db.example"); len(s.Services) != 3 || seen != 1 || first.Namespace != "a" || first.KeyHost() != "db.example@db.a" {
		t.Errorf("%d services, of which a caller sees %d; the first is of %s", len(s.Services), seen, first.Origin)
	}
	wantProblems(t, s,
		"ServiceEntry c/db: spec.hosts[0]: the host is declared by ServiceEntry a/db, which is older, or comes first by namespace and name; callers that see both follow that one",
		"ServiceEntry d/db: spec.hosts[0]: the host is declared by ServiceEntry a/db, which is older, or comes first by namespace and name; this declaration has no effect")
}

// TestKeysStayWithTheirService: no key of a private host comes to mean another
// service when the first one goes.
func TestKeysStayWithTheirService(t *testing.T) {
	const entry = "---\nkind: ServiceEntry\napiVersion: networking.istio.io/v1\nmetadata: {name: db, namespace: %s}\nspec: {hosts: [db.example], exportTo: [.], resolution: DNS, ports: [{number: 80, name: http}]}\n"
	both, rest := snapshot(t, fmt.Sprintf(entry+entry, "a", "b")), snapshot(t, fmt.Sprintf(entry, "b"))
	gone, stays := both.ServiceIn("a", "db.example").KeyHost(), both.ServiceIn("b", "db.example").KeyHost()
	if got := rest.ServiceIn("b", "db.example").KeyHost(); got != stays || got == gone {
		t.Errorf("the key was %s beside %s, and is %s", stays, gone, got)
	}
}

// TestNobodysHost: a host that is exported to nobody takes it from nobody.
func TestNobodysHost(t *testing.T) {
	entry := "---\nkind: ServiceEntry\napiVersion: networking.istio.io/v1\nmetadata: {name: %s}\nspec: {hosts: [x.example], exportTo: [%s], resolution: DNS, ports: [{number: 80, name: http}]}\n"
	s := snapshot(t, fmt.Sprintf(entry+entry, "a", `"~"`, "b", `"*"`))
	if svc := s.ServiceIn("", "x.example"); svc == nil || svc.Origin.Name != "b" {
		t.Errorf("callers know %+v", svc)
	}
	wantProblems(t, s)
}
