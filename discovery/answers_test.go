package discovery_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

func v3(t *testing.T, s *discovery.Publisher, typeURL, node string, names ...string) discovery.Answer {
	t.Helper()
	a, err := s.V3(typeURL, mesh.Node{ID: node}, "", names)
	if err != nil {
		t.Fatalf("%s for %s %v: %v", typeURL, node, names, err)
	}
	return a
}

// resourceNames decodes as an Envoy does, checks every resource as it does and
// returns their names.
func resourceNames(t *testing.T, a discovery.Answer) []string {
	t.Helper()
	var response discoveryv3.DiscoveryResponse
	if err := protojson.Unmarshal(a.Body, &response); err != nil {
		t.Fatalf("no DiscoveryResponse: %v\n%s", err, a.Body)
	}
	if response.GetVersionInfo() != a.Version {
		t.Errorf("version %q in the body, want %q", response.GetVersionInfo(), a.Version)
	}
	names := []string{}
	for _, r := range response.GetResources() {
		m, err := r.UnmarshalNew()
		if err != nil {
			t.Fatal(err)
		}
		if err := m.(interface{ ValidateAll() error }).ValidateAll(); err != nil {
			t.Errorf("%s: %v", r.GetTypeUrl(), err)
		}
		switch m := m.(type) {
		case interface{ GetClusterName() string }:
			names = append(names, m.GetClusterName())
		case interface{ GetName() string }:
			names = append(names, m.GetName())
		}
	}
	return names
}

func TestV3Answers(t *testing.T) {
	const webCluster = "out.web.example|http"
	cases := []struct {
		about   string
		typeURL string
		names   []string
		want    []string
	}{
		{"all clusters, sorted", discovery.ClusterType, nil, []string{"BlackHoleCluster", "PassthroughCluster", "out.db.example|http", webCluster}},
		{"a cluster by name", discovery.ClusterType, []string{webCluster}, []string{webCluster}},
		{"a cluster that is not", discovery.ClusterType, []string{"nobody"}, []string{}},
		{"all listeners", discovery.ListenerType, nil, []string{"http_0.0.0.0_80", "http_127.0.0.1_15002", "virtual"}},
		{"all route tables", discovery.RouteType, nil, []string{"80", "http_proxy"}},
		{"one route table, asked twice", discovery.RouteType, []string{"80", "80"}, []string{"80"}},
		{"a port without routes: an empty table", discovery.RouteType, []string{"8123"}, []string{"8123"}},
		{"a table that cannot be", discovery.RouteType, []string{"nobody"}, []string{}},
		{"all endpoints", discovery.EndpointType, nil, []string{"db.example|http", "web.example|http"}},
		{"one endpoint set", discovery.EndpointType, []string{"web.example|http"}, []string{"web.example|http"}},
		{"endpoints of nothing: an empty set", discovery.EndpointType, []string{"nobody|http"}, []string{"nobody|http"}},
		{"several, one of them empty", discovery.EndpointType, []string{"web.example|http", "nobody"}, []string{"nobody", "web.example|http"}},
	}
	synctest.Test(t, func(t *testing.T) {
		s := follow(t, newObjects(service(t, "web.example", "10.1.0.1"), service(t, "db.example", "10.1.0.2")), discovery.Options{})
		for _, c := range cases {
			got := resourceNames(t, v3(t, s, c.typeURL, nodeA, c.names...))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.about, diff)
			}
		}
	})
}

func TestErrorsSayWhatIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := follow(t, newObjects(service(t, "web.example", "10.1.0.1")), discovery.Options{})
		_, badNode := s.V3(discovery.ClusterType, mesh.Node{ID: "sidecar~10.0.0.1"}, "", nil)
		_, badNodeV1 := s.V1Clusters("nobody")
		_, badType := s.V3("type.googleapis.com/x", mesh.Node{ID: nodeA}, "", nil)
		_, badRoute := s.V1Routes(nodeA, "http")
		_, tooHigh := s.V1Routes(nodeA, "70000")
		for _, c := range []struct{ got, want error }{
			{badNode, discovery.ErrBadNode},
			{badNodeV1, discovery.ErrBadNode},
			{badType, discovery.ErrBadType},
			{badRoute, discovery.ErrBadRoute},
			{tooHigh, discovery.ErrBadRoute},
		} {
			if !errors.Is(c.got, c.want) {
				t.Errorf("got %v, want %v", c.got, c.want)
			}
		}
	})
}

func TestVersionFollowsContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := service(t, "web.example", "10.1.0.1")
		src := newObjects(web, timeout(t, "web.example", 1))
		s := follow(t, src, discovery.Options{})
		clusters, routes := v3(t, s, discovery.ClusterType, nodeA), v3(t, s, discovery.RouteType, nodeA, "80")
		endpoints := v3(t, s, discovery.EndpointType, nodeA, "web.example|http")
		v1Clusters, _ := s.V1Clusters(nodeA)

		src.set(web, timeout(t, "web.example", 2))
		time.Sleep(pause)
		if got := v3(t, s, discovery.RouteType, nodeA, "80"); got.Version == routes.Version {
			t.Error("the routes changed, their version did not")
		}
		if got := v3(t, s, discovery.ClusterType, nodeA); got.Version != clusters.Version || string(got.Body) != string(clusters.Body) {
			t.Error("the clusters did not change, their answer did")
		}
		if got := v3(t, s, discovery.EndpointType, nodeA, "web.example|http"); got.Version != endpoints.Version || string(got.Body) != string(endpoints.Body) {
			t.Error("the endpoints did not change, their answer did")
		}
		if got, _ := s.V1Clusters(nodeA); got.Version != v1Clusters.Version {
			t.Error("the v1 clusters did not change, their version did")
		}
	})
}

func TestVersionCoversTheNamesAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := follow(t, newObjects(service(t, "web.example", "10.1.0.1")), discovery.Options{})
		one := v3(t, s, discovery.ClusterType, nodeA, "nobody")
		other := v3(t, s, discovery.ClusterType, nodeA, "somebody")
		if one.Version == other.Version {
			t.Error("polls for different names have the same version")
		}
	})
}

// Replicas must agree to the byte, or an Envoy between them would flap.
func TestReplicasAgree(t *testing.T) {
	var all []*schema.Object
	for i, host := range []string{"a.example", "b.example", "c.example", "d.example"} {
		all = append(all, service(t, host, "10.1.0."+string(rune('1'+i))))
	}
	all = append(all, timeout(t, "b.example", 3))
	synctest.Test(t, func(t *testing.T) {
		one := follow(t, newObjects(all...), discovery.Options{})
		for range 5 {
			rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			other := follow(t, newObjects(all...), discovery.Options{})
			if diff := cmp.Diff(everything(t, one, nodeA), everything(t, other, nodeA)); diff != "" {
				t.Errorf("replicas differ:\n%s", diff)
			}
		}
	})
}

// What was handed out must never change, whatever is published later.
func TestAnswersDoNotChangeAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newObjects(service(t, "web.example", "10.1.0.1"))
		s := follow(t, src, discovery.Options{})
		handedOut := answers(t, s, nodeA)
		copies := everything(t, s, nodeA)
		for i := range 5 {
			src.set(service(t, "web.example", "10.1.0.1"), timeout(t, "web.example", i+1))
			time.Sleep(pause)
			everything(t, s, nodeA)
		}
		for name, a := range handedOut {
			if string(a.Body) != copies[name] {
				t.Errorf("%s was changed", name)
			}
		}
	})
}

// answers are all that a proxy may be told, by the name of what it asked.
func answers(t *testing.T, s *discovery.Publisher, node string) map[string]discovery.Answer {
	t.Helper()
	out := map[string]discovery.Answer{}
	for _, typeURL := range []string{discovery.ClusterType, discovery.EndpointType, discovery.ListenerType, discovery.RouteType} {
		out[typeURL] = v3(t, s, typeURL, node)
	}
	for name, ask := range map[string]func() (discovery.Answer, error){
		"cds":        func() (discovery.Answer, error) { return s.V1Clusters(node) },
		"lds":        func() (discovery.Answer, error) { return s.V1Listeners(node) },
		"rds 80":     func() (discovery.Answer, error) { return s.V1Routes(node, "80") },
		"rds proxy":  func() (discovery.Answer, error) { return s.V1Routes(node, "http_proxy") },
		"rds 8123":   func() (discovery.Answer, error) { return s.V1Routes(node, "8123") },
		"sds":        func() (discovery.Answer, error) { return s.V1Endpoints("web.example|http") },
		"sds nobody": func() (discovery.Answer, error) { return s.V1Endpoints("nobody") },
	} {
		a, err := ask()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[name] = a
	}
	return out
}

func everything(t *testing.T, s *discovery.Publisher, node string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, a := range answers(t, s, node) {
		out[name] = string(a.Body)
	}
	return out
}
