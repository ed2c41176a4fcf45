package xds

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/envoy/v3"
	"github.com/pilot-api/pilot-api/internal/meshgen"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

func testParts() *V3Parts {
	return &V3Parts{Contain: func(step string, do func() error) (err error) {
		defer func() {
			if recover() != nil {
				err = errors.New("internal error in step " + step)
			}
		}()
		return do()
	}}
}

func testHost(i int) *ir.VirtualHost {
	name := fmt.Sprintf("service-%04d", i)
	return &ir.VirtualHost{Name: name, Domains: []string{name, name + ":80"}, Routes: []*ir.Route{
		{Operation: "default-route", Clusters: []ir.WeightedCluster{{Name: "out." + name, Weight: ir.WholeWeight}}},
	}}
}

func TestSetHasUniqueNames(t *testing.T) {
	p := testParts()
	s := NewSet(ClusterType, []*Resource{
		p.Cluster(&ir.Cluster{Name: "b", ConnectTimeout: 1}, v3.Streamed),
		p.Cluster(&ir.Cluster{Name: "a", ConnectTimeout: 1}, v3.Streamed),
		p.Cluster(&ir.Cluster{Name: "b", ConnectTimeout: 2, Origins: []diag.Ref{{Name: "second"}}}, v3.Streamed),
	})
	if len(s.Sorted) != 2 || s.Named("b") == nil || s.Named("c") != nil {
		t.Errorf("%d resources, problems %v", len(s.Sorted), s.Problems)
	}
	if len(s.Problems) != 1 || s.Problems.List()[0].Object.Name != "second" {
		t.Errorf("problems: %v", s.Problems)
	}
}

// TestJSONIsMadeOnDemand, once for each part.
func TestJSONIsMadeOnDemand(t *testing.T) {
	p := testParts()
	clusters := []*ir.Cluster{{Name: "a", ConnectTimeout: 1}, {Name: "b", ConnectTimeout: 1}}
	s := p.ClusterSet(clusters, v3.Streamed)
	for _, r := range s.Sorted {
		if r.Shell.fields.Peek() != nil {
			t.Error("JSON that nobody asked for")
		}
	}
	answer := s.Answer(nil)
	answer.Compose()
	text := s.Sorted[0].Shell.JSON()
	if again := p.ClusterSet(slices.Clone(clusters), v3.Streamed).Sorted[0].Shell.JSON(); &again[0] != &text[0] {
		t.Error("the JSON of a part was made twice")
	}
	runtime.KeepAlive(clusters)
}

// TestPartsThatEnvoyRefuses are closed, or left out where there is no such thing,
// and nothing beside them is.
func TestPartsThatEnvoyRefuses(t *testing.T) {
	p := testParts()
	bad := &ir.Cluster{Name: "bad", Type: ir.Registry, ConnectTimeout: -time.Second, Origins: []diag.Ref{{Name: "rule"}}}
	r := p.Cluster(bad, v3.Polled(time.Second))
	wantProblem(t, r.Problems.List(), "rule", "is closed")
	if text := string(r.appendJSON(nil)); !strings.Contains(text, `"type":"STATIC"`) && strings.Contains(text, "EDS") {
		t.Errorf("the cluster is open: %s", text)
	}
	r = p.Listener(&ir.Listener{IP: "nowhere", Port: 80, TCP: &ir.TCPListener{}, Origins: []diag.Ref{{Name: "rule"}}}, v3.Polled(time.Second))
	wantProblem(t, r.Problems.List(), "rule", "is left out")
	if s := NewSet(ListenerType, []*Resource{r}); len(s.Sorted) != 0 || len(s.Problems) != 1 {
		t.Errorf("a refused listener is served, or not told of: %v", s.Problems)
	}
	twice := &ir.RouteTable{Name: "80", VirtualHosts: []*ir.VirtualHost{testHost(1), {Name: "x", Domains: []string{"SERVICE-0001"}}}}
	r = p.Table(twice)
	wantProblem(t, r.Problems.List(), "", "must occur only once")
	if len(r.Hosts) != 1 || !strings.Contains(string(r.Hosts[0].JSON()), "503") {
		t.Error("a table that Envoy refuses is not closed")
	}
}

// TestPartThatPanics is closed like one that is refused, and costs nobody else.
func TestPartThatPanics(t *testing.T) {
	p := testParts()
	broken := &ir.VirtualHost{Name: "broken", Domains: []string{"broken.example"}, Routes: []*ir.Route{{
		Clusters: []ir.WeightedCluster{{Name: "open", Weight: ir.WholeWeight}},
		CORS:     &ir.CORS{AllowOrigins: []ir.OriginMatch{{Exact: "\xff"}}}, // What is embedded must be UTF-8.
		Origins:  []diag.Ref{{Name: "rule"}},
	}}}
	r := p.Table(&ir.RouteTable{Name: "80", VirtualHosts: []*ir.VirtualHost{broken, testHost(1)}})
	wantProblem(t, r.Problems.List(), "rule", "internal error")
	if len(r.Hosts) != 2 {
		t.Fatalf("%d virtual hosts", len(r.Hosts))
	}
	if text := string(r.Hosts[0].JSON()); !strings.Contains(text, "broken.example") || !strings.Contains(text, `"status":503`) {
		t.Errorf("the broken one says %s", text)
	}
	if text := string(r.Hosts[1].JSON()); strings.Contains(text, "503") {
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
		compiled, _ := compile.Proxy(snapshot, snapshot.TraitsOf(proxy))
		config, _ := ir.Close(compiled)
		p := testParts()
		for _, table := range config.RouteTables {
			want, problems := v3.Routes(table)
			r := p.Table(table)
			// Each problem is kept once, whatever number of hosts has it.
			if got, want := once(r.Problems.List()), once(problems); !maps.Equal(got, want) {
				rt.Errorf("problems %v, want %v", r.Problems.List(), problems)
			}
			got := &routev3.RouteConfiguration{}
			if err := proto.Unmarshal(r.Binary(), got); err != nil || !proto.Equal(got, want) {
				rt.Fatalf("binary (%v): got %v, want %v", err, got, want)
			}
			var response discoveryv3.DiscoveryResponse
			answer := r.Answer()
			if err := protojson.Unmarshal(answer.Compose(), &response); err != nil || len(response.GetResources()) != 1 {
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
