package discovery

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/envoy/v3"
	"github.com/pilot-api/pilot-api/internal/meshgen"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

func testParts(t testing.TB) *v3Parts {
	t.Helper()
	return &New(Options{}).v3Parts
}

// testConfig has so many clusters, and as many virtual hosts in one table.
func testConfig(n int) *ir.Config {
	config := &ir.Config{Delay: time.Second, RouteDelay: time.Second, RouteTables: []*ir.RouteTable{{Name: "80"}}}
	for i := range n {
		config.Clusters = append(config.Clusters, testCluster(i))
		config.RouteTables[0].VirtualHosts = append(config.RouteTables[0].VirtualHosts, testHost(i, time.Second))
	}
	config.Listeners = []*ir.Listener{{IP: "0.0.0.0", Port: 80, Direction: ir.Outbound, HTTP: &ir.HTTPListener{Table: "80"}}}
	return config
}

func testCluster(i int) *ir.Cluster {
	key := fmt.Sprintf("service-%04d.default.svc.cluster.local|http", i)
	return &ir.Cluster{
		Name: "out." + key, Type: ir.Registry, EndpointKey: key, ConnectTimeout: time.Second,
		CircuitBreaker: &ir.CircuitBreaker{MaxConnections: 100}, Origins: []diag.Ref{{Kind: "DestinationRule", Name: key}},
	}
}

func testHost(i int, timeout time.Duration) *ir.VirtualHost {
	name := fmt.Sprintf("service-%04d", i)
	host := &ir.VirtualHost{Name: name + ".default.svc.cluster.local|http"}
	for _, suffix := range []string{"", ".default", ".default.svc", ".default.svc.cluster", ".default.svc.cluster.local"} {
		host.Domains = append(host.Domains, name+suffix, name+suffix+":80")
	}
	to := []ir.WeightedCluster{{Name: testCluster(i).Name, Weight: ir.WholeWeight}}
	host.Routes = []*ir.Route{
		{Operation: "rule", Match: ir.Match{Prefix: "/api"}, Clusters: to, Timeout: timeout, Retry: &ir.Retry{Attempts: 2}},
		{Operation: "default-route", Clusters: to},
	}
	return host
}

// testView is one that nobody compiled.
func testView(s *Publisher, config *ir.Config) *view { return &view{server: s, config: config} }

// further is another view with the very same parts.
func further(c *ir.Config) *ir.Config {
	out := *c
	out.Clusters = append([]*ir.Cluster(nil), c.Clusters...)
	out.RouteTables = append([]*ir.RouteTable(nil), c.RouteTables...)
	return &out
}

// changed has one other virtual host.
func changed(c *ir.Config, timeout time.Duration) *ir.Config {
	out := further(c)
	table := *c.RouteTables[0]
	table.VirtualHosts = append([]*ir.VirtualHost(nil), table.VirtualHosts...)
	table.VirtualHosts[0] = testHost(0, timeout)
	out.RouteTables[0] = &table
	return out
}

// TestUnchangedPartsAreNotEncodedAgain, whoever asks first and however many at
// once; what changed is, and nothing else.
func TestUnchangedPartsAreNotEncodedAgain(t *testing.T) {
	const n = 20
	s, config := New(Options{}), testConfig(n)
	var views sync.WaitGroup
	for range 8 {
		views.Go(func() { encodeV3(testView(s, further(config)), "10.0.0.1") })
	}
	views.Wait()
	// The shell of the table, and the listener.
	if got := s.v3Parts.encoded.Load(); got != 2*n+2 {
		t.Errorf("8 views with the same parts: %d messages encoded, want %d", got, 2*n+2)
	}
	one, other := encodeV3(testView(s, config), "10.0.0.1"), encodeV3(testView(s, changed(config, time.Hour)), "10.0.0.1")
	if got := s.v3Parts.encoded.Load(); got != 2*n+4 {
		t.Errorf("one virtual host changed: %d more messages encoded, want it and the shell of its table", got-(2*n+2))
	}
	if one.routes.version == other.routes.version || one.clusters.version != other.clusters.version {
		t.Error("versions do not follow the content")
	}
	runtime.KeepAlive(config)
}

// TestJSONIsMadeOnDemand, once for each part.
func TestJSONIsMadeOnDemand(t *testing.T) {
	s, config := New(Options{}), testConfig(2)
	a := encodeV3(testView(s, config), "10.0.0.1")
	for _, r := range a.clusters.sorted {
		if r.shell.fields.peek() != nil {
			t.Error("JSON that nobody asked for")
		}
	}
	answer := a.clusters.answer(nil)
	answer.compose()
	text := a.clusters.sorted[0].shell.json()
	if again := encodeV3(testView(s, further(config)), "10.0.0.1").clusters.sorted[0].shell.json(); &again[0] != &text[0] {
		t.Error("the JSON of a part was made twice")
	}
	runtime.KeepAlive(config)
}

// TestPartsGoWithTheirConfiguration: nothing is left of what nobody holds.
func TestPartsGoWithTheirConfiguration(t *testing.T) {
	s := New(Options{})
	left := func() int {
		p, v1 := &s.v3Parts, &s.v1Parts
		return p.clusters.len() + p.tables.len() + p.hosts.len() + p.listeners.len() + v1.clusters.len() + v1.tables.len() + v1.hosts.len()
	}
	func() {
		v := testView(s, testConfig(20))
		if _, err := v.encodedV1("10.0.0.1"); err != nil {
			t.Fatal(err)
		}
		a, err := v.encodedV3("10.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		a.routes.answer(nil).compose()
		if left() == 0 {
			t.Error("nothing is kept of what is in use")
		}
		runtime.KeepAlive(v)
	}()
	for range 100 {
		if runtime.GC(); left() == 0 {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d parts are kept of a configuration that is gone", left())
}

// TestPartsThatEnvoyRefuses are closed, or left out where there is no such thing,
// and nothing beside them is.
func TestPartsThatEnvoyRefuses(t *testing.T) {
	p := testParts(t)
	bad := &ir.Cluster{Name: "bad", Type: ir.Registry, ConnectTimeout: -time.Second, Origins: []diag.Ref{{Name: "rule"}}}
	r := p.cluster(bad, v3.Polled(time.Second))
	wantProblem(t, r.problems.List(), "rule", "is closed")
	if text := string(r.appendJSON(nil)); !strings.Contains(text, `"type":"STATIC"`) && strings.Contains(text, "EDS") {
		t.Errorf("the cluster is open: %s", text)
	}
	r = p.listener(&ir.Listener{IP: "nowhere", Port: 80, TCP: &ir.TCPListener{}, Origins: []diag.Ref{{Name: "rule"}}}, v3.Polled(time.Second))
	wantProblem(t, r.problems.List(), "rule", "is left out")
	if s := newSet(ListenerType, []*resource{r}); len(s.sorted) != 0 || len(s.problems) != 1 {
		t.Errorf("a refused listener is served, or not told of: %v", s.problems)
	}
	twice := &ir.RouteTable{Name: "80", VirtualHosts: []*ir.VirtualHost{testHost(1, 0), {Name: "x", Domains: []string{"SERVICE-0001"}}}}
	r = p.table(twice)
	wantProblem(t, r.problems.List(), "", "must be there only once")
	if len(r.hosts) != 1 || !strings.Contains(string(r.hosts[0].json()), "503") {
		t.Error("a table that Envoy refuses is not closed")
	}
}

// TestPartThatPanics is closed like one that is refused, and costs nobody else.
func TestPartThatPanics(t *testing.T) {
	p := testParts(t)
	broken := &ir.VirtualHost{Name: "broken", Domains: []string{"broken.example"}, Routes: []*ir.Route{{
		Clusters: []ir.WeightedCluster{{Name: "open", Weight: ir.WholeWeight}},
		CORS:     &ir.CORS{AllowOrigins: []ir.OriginMatch{{Exact: "\xff"}}}, // What is embedded must be UTF-8.
		Origins:  []diag.Ref{{Name: "rule"}},
	}}}
	r := p.table(&ir.RouteTable{Name: "80", VirtualHosts: []*ir.VirtualHost{broken, testHost(1, 0)}})
	wantProblem(t, r.problems.List(), "rule", "internal error")
	if len(r.hosts) != 2 {
		t.Fatalf("%d virtual hosts", len(r.hosts))
	}
	if text := string(r.hosts[0].json()); !strings.Contains(text, "broken.example") || !strings.Contains(text, `"status":503`) {
		t.Errorf("the broken one says %s", text)
	}
	if text := string(r.hosts[1].json()); strings.Contains(text, "503") {
		t.Errorf("its neighbour says %s", text)
	}
}

func wantProblem(t *testing.T, problems diag.List, object, says string) {
	t.Helper()
	if len(problems) != 1 || problems[0].Object.Name != object || !strings.Contains(problems[0].Message, says) {
		t.Errorf("problems %v, want one of %q that says %q", problems, object, says)
	}
}

// TestSplicedIsWhole: a table of encoded parts is the table, in binary and JSON.
func TestSplicedIsWhole(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		settings := mesh.DefaultSettings()
		settings.ProxyHTTPPort = 15002
		snapshot := mesh.NewSnapshot(1, settings, meshgen.Objects(rt))
		proxy := meshgen.Proxy(rt, rapid.SampledFrom(meshgen.Proxies).Draw(rt, "node"))
		compiled, _ := compile.Proxy(snapshot, snapshot.View(proxy))
		config, _ := ir.Close(compiled)
		p := testParts(t)
		for _, table := range config.RouteTables {
			want, problems := v3.Routes(table)
			r := p.table(table)
			// Each problem is kept once, whatever number of hosts has it.
			if got, want := once(r.problems.List()), once(problems); !maps.Equal(got, want) {
				rt.Errorf("problems %v, want %v", r.problems.List(), problems)
			}
			got := &routev3.RouteConfiguration{}
			if err := proto.Unmarshal(r.binary(), got); err != nil || !proto.Equal(got, want) {
				rt.Fatalf("binary (%v): got %v, want %v", err, got, want)
			}
			var response discoveryv3.DiscoveryResponse
			answer := r.answer()
			if err := protojson.Unmarshal(answer.compose(), &response); err != nil || len(response.GetResources()) != 1 {
				rt.Fatalf("%d resources, %v", len(response.GetResources()), err)
			}
			got.Reset()
			if err := response.GetResources()[0].UnmarshalTo(got); err != nil || !proto.Equal(got, want) {
				rt.Fatalf("JSON (%v): got %v, want %v", err, got, want)
			}
			if response.GetVersionInfo() != answer.Version {
				rt.Errorf("version %s in the body, want %s", response.GetVersionInfo(), answer.Version)
			}
		}
		runtime.KeepAlive(config)
	})
}

func once(list diag.List) map[diag.Problem]bool {
	out := map[diag.Problem]bool{}
	for _, p := range list {
		out[p] = true
	}
	return out
}

// oneService is a mesh of web.example, with an instance at its port http.
func oneService(t *testing.T) *mesh.Snapshot {
	t.Helper()
	kind, _ := schema.KindByName("ServiceEntry")
	entry, err := schema.New(kind, metav1.ObjectMeta{Name: "web", Namespace: "default"}, []byte(`{"hosts":["web.example"],"resolution":"STATIC",`+
		`"location":"MESH_INTERNAL","ports":[{"number":80,"name":"http","protocol":"HTTP"}],"endpoints":[{"address":"10.1.0.1"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return mesh.NewSnapshot(1, mesh.DefaultSettings(), []*schema.Object{entry})
}

// TestEndpointsFollowTheirService: what is encoded of a service's endpoints stays
// from one generation to the next while the service does, and no longer. What
// anybody may ask for is kept within a bound.
func TestEndpointsFollowTheirService(t *testing.T) {
	s := New(Options{MaxProxies: 2})
	func() {
		snapshot := oneService(t)
		of := func(key string) *endpointSet { return (&endpointSets{snapshot, s}).of(key) }
		first := of("web.example|http")
		if len(first.members) != 1 || of("web.example|http") != first {
			t.Errorf("%d members, or made again for the next generation", len(first.members))
		}
		if of("web.example|grpc"); s.endpoints.len() != 1 {
			t.Errorf("%d sets are kept, of them some that mean nothing", s.endpoints.len())
		}
		for _, key := range []string{"web.example|http,w", "web.example|http,x", "web.example|http,y", "web.example|http,z"} {
			if len(of(key).members) != 1 {
				t.Errorf("%s has no members", key)
			}
		}
		if s.endpoints.len() != 2 {
			t.Errorf("%d sets are kept, want the bound", s.endpoints.len())
		}
		runtime.KeepAlive(snapshot)
	}()
	for range 100 {
		if runtime.GC(); s.endpoints.len() == 0 {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d sets are kept of a service that is gone", s.endpoints.len())
}

// TestListenersAtAProxysAddress are encoded for it, those at another are shared
// by all; and who asks again costs nothing.
func TestListenersAtAProxysAddress(t *testing.T) {
	s, config := New(Options{}), testConfig(1)
	for i := range 10 {
		config.Listeners = append(config.Listeners, &ir.Listener{IP: "10.200.0.1", Port: 3000 + i, TCP: &ir.TCPListener{Routes: []ir.TCPRoute{{Clusters: ir.Whole("db")}}}})
	}
	config.Listeners = append(config.Listeners, &ir.Listener{Port: 8080, Direction: ir.Inbound, HTTP: &ir.HTTPListener{Inline: &ir.RouteTable{Name: "in"}}})
	a := encodeV3(testView(s, config), "10.0.0.1")
	ask := func(ip string) (version string, encoded int64) {
		before := s.v3Parts.encoded.Load()
		answer, err := a.answerListeners(ip, nil)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Version, s.v3Parts.encoded.Load() - before
	}
	first, encoded := ask("10.0.0.1")
	if encoded != 0 {
		t.Errorf("%d listeners are encoded again for a proxy that is known", encoded)
	}
	other, encoded := ask("10.0.0.2")
	if encoded != 1 || other == first {
		t.Errorf("at another address %d listeners are encoded, want one of its own", encoded)
	}
	runtime.GC() // What is not kept is made again, and the same.
	answer, _ := a.answerListeners("10.0.0.2", nil)
	if text := string(answer.compose()); !strings.Contains(text, other) || !strings.Contains(text, `"http_10.0.0.2_8080"`) || !strings.Contains(text, `"tcp_10.200.0.1_3009"`) {
		t.Errorf("version %s: %s", other, text)
	}
	runtime.KeepAlive(config)
}

// TestWithdrawnClustersAreNotEncodedAgain while a proxy is handed over.
func TestWithdrawnClustersAreNotEncodedAgain(t *testing.T) {
	s, config := New(Options{}), testConfig(3)
	older := testView(s, config)
	without := further(config)
	without.Clusters = without.Clusters[1:]
	encodeV3(older, "10.0.0.1")
	a := encodeV3(testView(s, without), "10.0.0.1")
	before := s.v3Parts.encoded.Load()
	if merged := a.clustersBeside([]*view{older}); len(merged.sorted) != 3 || len(a.clusters.sorted) != 2 {
		t.Errorf("%d clusters, want 3", len(merged.sorted))
	}
	if encoded := s.v3Parts.encoded.Load() - before; encoded != 0 {
		t.Errorf("%d clusters are encoded again", encoded)
	}
	runtime.KeepAlive(config)
}

// TestWithdrawnClustersAreTheProxysOwn: two proxies come to a view from others in
// which a cluster of one name differs, and each keeps its own.
func TestWithdrawnClustersAreTheProxysOwn(t *testing.T) {
	s, config := New(Options{}), testConfig(3)
	changed := further(config)
	changed.Clusters = slices.Clone(config.Clusters)
	other := *config.Clusters[0]
	other.ConnectTimeout += time.Second
	changed.Clusters[0] = &other
	without := further(config)
	without.Clusters = without.Clusters[1:]
	a := encodeV3(testView(s, without), "10.0.0.1")
	for _, older := range []*ir.Config{config, changed, config} {
		from := testView(s, older)
		want := encodeV3(from, "10.0.0.1").clusters.named(other.Name).hash
		if got := a.clustersBeside([]*view{from}).named(other.Name).hash; got != want {
			t.Error("the cluster of another view is answered")
		}
	}
	runtime.KeepAlive([]*ir.Config{config, changed})
}
