package compiled

import (
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

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

func testEncoder(maxProxies int) *Encoder {
	if maxProxies == 0 {
		maxProxies = 50_000
	}
	contain := func(_ string, do func() error) error { return do() }
	return NewEncoder(maxProxies, slog.New(slog.DiscardHandler), contain, func(*View) {})
}

// testView is one that nobody compiled.
func testView(e *Encoder, config *ir.Config) *View { return &View{Encoder: e, Config: config} }

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
	e, config := testEncoder(0), testConfig(n)
	var views sync.WaitGroup
	for range 8 {
		views.Go(func() { encodeV3(testView(e, further(config)), "10.0.0.1") })
	}
	views.Wait()
	// The shell of the table, and the listener.
	if got := e.V3.Encoded.Load(); got != 2*n+2 {
		t.Errorf("8 views with the same parts: %d messages encoded, want %d", got, 2*n+2)
	}
	one, other := encodeV3(testView(e, config), "10.0.0.1"), encodeV3(testView(e, changed(config, time.Hour)), "10.0.0.1")
	if got := e.V3.Encoded.Load(); got != 2*n+4 {
		t.Errorf("one virtual host changed: %d more messages encoded, want it and the shell of its table", got-(2*n+2))
	}
	if one.Routes.Version == other.Routes.Version || one.Clusters.Version != other.Clusters.Version {
		t.Error("versions do not follow the content")
	}
	runtime.KeepAlive(config)
}

// TestPartsGoWithTheirConfiguration: nothing is left of what nobody holds.
func TestPartsGoWithTheirConfiguration(t *testing.T) {
	e := testEncoder(0)
	left := func() int {
		p, v1 := &e.V3, &e.V1
		return p.Len() + v1.Len()
	}
	func() {
		v := testView(e, testConfig(20))
		if _, err := v.EncodedV1("10.0.0.1"); err != nil {
			t.Fatal(err)
		}
		a, err := v.EncodedV3("10.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		a.Routes.Answer(nil).Compose()
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
	e := testEncoder(2)
	func() {
		snapshot := oneService(t)
		of := func(key string) *endpointSet { return (&endpointSets{snapshot, e}).Of(key) }
		first := of("web.example|http")
		if len(first.members) != 1 || of("web.example|http") != first {
			t.Errorf("%d members, or made again for the next generation", len(first.members))
		}
		if of("web.example|grpc"); e.Endpoints.Len() != 1 {
			t.Errorf("%d sets are kept, of them some that mean nothing", e.Endpoints.Len())
		}
		for _, key := range []string{"web.example|http,w", "web.example|http,x", "web.example|http,y", "web.example|http,z"} {
			if len(of(key).members) != 1 {
				t.Errorf("%s has no members", key)
			}
		}
		if e.Endpoints.Len() != 2 {
			t.Errorf("%d sets are kept, want the bound", e.Endpoints.Len())
		}
		runtime.KeepAlive(snapshot)
	}()
	for range 100 {
		if runtime.GC(); e.Endpoints.Len() == 0 {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d sets are kept of a service that is gone", e.Endpoints.Len())
}

// TestListenersAtAProxysAddress are encoded for it, those at another are shared
// by all; and who asks again costs nothing.
func TestListenersAtAProxysAddress(t *testing.T) {
	e, config := testEncoder(0), testConfig(1)
	for i := range 10 {
		config.Listeners = append(config.Listeners, &ir.Listener{IP: "10.200.0.1", Port: 3000 + i, TCP: &ir.TCPListener{Routes: []ir.TCPRoute{{Clusters: ir.Whole("db")}}}})
	}
	config.Listeners = append(config.Listeners, &ir.Listener{Port: 8080, Direction: ir.Inbound, HTTP: &ir.HTTPListener{Inline: &ir.RouteTable{Name: "in"}}})
	a := encodeV3(testView(e, config), "10.0.0.1")
	ask := func(ip string) (version string, encoded int64) {
		before := e.V3.Encoded.Load()
		answer, err := a.AnswerListeners(ip, nil)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Version, e.V3.Encoded.Load() - before
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
	answer, _ := a.AnswerListeners("10.0.0.2", nil)
	if text := string(answer.Compose()); !strings.Contains(text, other) || !strings.Contains(text, `"http_10.0.0.2_8080"`) || !strings.Contains(text, `"tcp_10.200.0.1_3009"`) {
		t.Errorf("version %s: %s", other, text)
	}
	runtime.KeepAlive(config)
}

// TestWithdrawnClustersAreNotEncodedAgain while a proxy is handed over.
func TestWithdrawnClustersAreNotEncodedAgain(t *testing.T) {
	e, config := testEncoder(0), testConfig(3)
	older := testView(e, config)
	without := further(config)
	without.Clusters = without.Clusters[1:]
	encodeV3(older, "10.0.0.1")
	a := encodeV3(testView(e, without), "10.0.0.1")
	before := e.V3.Encoded.Load()
	if merged := a.ClustersBeside([]*View{older}); len(merged.Sorted) != 3 || len(a.Clusters.Sorted) != 2 {
		t.Errorf("%d clusters, want 3", len(merged.Sorted))
	}
	if encoded := e.V3.Encoded.Load() - before; encoded != 0 {
		t.Errorf("%d clusters are encoded again", encoded)
	}
	runtime.KeepAlive(config)
}

// TestWithdrawnClustersAreTheProxysOwn: two proxies come to a view from others in
// which a cluster of one name differs, and each keeps its own.
func TestWithdrawnClustersAreTheProxysOwn(t *testing.T) {
	e, config := testEncoder(0), testConfig(3)
	changed := further(config)
	changed.Clusters = slices.Clone(config.Clusters)
	other := *config.Clusters[0]
	other.ConnectTimeout += time.Second
	changed.Clusters[0] = &other
	without := further(config)
	without.Clusters = without.Clusters[1:]
	a := encodeV3(testView(e, without), "10.0.0.1")
	for _, older := range []*ir.Config{config, changed, config} {
		from := testView(e, older)
		want := encodeV3(from, "10.0.0.1").Clusters.Named(other.Name).Hash
		if got := a.ClustersBeside([]*View{from}).Named(other.Name).Hash; got != want {
			t.Error("the cluster of another view is answered")
		}
	}
	runtime.KeepAlive([]*ir.Config{config, changed})
}
