package ads_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilot-api/pilot-api/server/ads"
)

// TestTheGreediestConnectionIsEnded when all together hold too much, whatever it
// holds, and the others are served.
func TestTheGreediestConnectionIsEnded(t *testing.T) {
	for what, take := range map[string]func(c *client){
		"names": func(c *client) { c.subscribe(eds, unknown(0, 40_000)...) },
		"names it came with": func(c *client) {
			versions := map[string]string{}
			for _, name := range unknown(0, 30_000) {
				versions[name] = "1"
			}
			c.say(request{typeURL: cds, initial: versions})
		},
		"names added one by one": func(c *client) {
			for i := range 400 {
				c.subscribe(rds, unknown(i, 100)...)
			}
		},
		"requests": func(c *client) {
			values := make([]*structpb.Value, 700_000)
			for i := range values {
				values[i] = structpb.NewNullValue()
			}
			c.node.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{"MUCH": structpb.NewListValue(&structpb.ListValue{Values: values})}}
			c.subscribe(cds)
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				registry := prometheus.NewRegistry()
				src := newSource(service("web.example", 80, 1, "a"))
				s := serveAs(t, ads.Options{Memory: 2 << 20, Registry: registry}, src)
				honest := newEnvoy(s.connect(delta, nodeA)).start()
				greedy := s.connect(delta, nodeB)
				take(greedy)
				time.Sleep(10 * time.Second)
				if got := greedy.ended(); got != codes.ResourceExhausted {
					t.Errorf("the greedy stream ended with %v", got)
				}
				src.publish(service("other.example", 80, 2, "a"))
				honest.play()
				if !honest.routesTo("out.other.example|http") {
					t.Error("the proxy beside it is told nothing any more")
				}
				if got := valueOf(t, registry, "pilot_stream_connections_evicted_total"); got != 1 {
					t.Errorf("%v connections were ended, want 1", got)
				}
				if got := valueOf(t, registry, "pilot_stream_memory_bytes"); got > 1000 {
					t.Errorf("%v bytes are counted of an honest proxy", got)
				}
			})
		})
	}
}

// TestAGreedyHostRests checks that after a connection was ended for holding too
// much, the next one from its host is not read for a second and then served. The
// time doubles each time, up to half a minute, until the host has asked for little
// for a minute.
func TestAGreedyHostRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveAs(t, ads.Options{Memory: 2 << 20}, newSource(service("web.example", 80, 1, "a")))
		for _, rest := range []time.Duration{1, 2, 4, 8, 16, 32, 32} {
			greedy := s.connect(delta, nodeB)
			greedy.subscribe(eds, unknown(0, 40_000)...)
			if got := greedy.ended(); got != codes.ResourceExhausted {
				t.Fatalf("the greedy stream ended with %v", got)
			}
			next := newEnvoy(s.connect(delta, nodeB))
			next.start()
			time.Sleep(rest*time.Second - time.Millisecond)
			if next.play(); next.routesTo("out.web.example|http") {
				t.Errorf("the next connection is served in less than %d s", rest)
			}
			time.Sleep(2 * time.Millisecond)
			if next.play(); !next.routesTo("out.web.example|http") {
				t.Errorf("the next connection is not served after %d s", rest)
			}
			next.end()
		}
		time.Sleep(2 * time.Minute)
		if next := newEnvoy(s.connect(delta, nodeB)).start(); !next.routesTo("out.web.example|http") {
			t.Error("the host rests for ever")
		}
	})
}

// TestUnknownNamesAreAllAnswered although not in one response.
func TestUnknownNamesAreAllAnswered(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		const names = 10_000
		s := serve(t, newSource(service("web.example", 80, 1, "a")))
		c := s.connect(kind, nodeA)
		c.subscribe(cds)
		c.ack(c.told()...)
		known := "web.example|http"
		c.subscribe(eds, append(unknown(0, names), known)...)
		told := map[string]bool{}
		for range 10 {
			for _, r := range c.told() {
				for name := range r.resources {
					told[name] = true
				}
				if len(r.resources) > names/2 {
					t.Errorf("%d resources are in one response", len(r.resources))
				}
				c.ack(r)
			}
		}
		if len(told) != names+1 || !told[known] {
			t.Errorf("told of %d of %d names, of the known one: %v", len(told), names+1, told[known])
		}
		c.nothing("after all names were answered")
	})
}

// TestCompressedRequestsAreRefused, because they could not be counted before they
// are large.
func TestCompressedRequestsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, newSource(service("web.example", 80, 1, "a")))
		conn := s.dial()
		defer conn.Close()
		stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(t.Context(), grpc.UseCompressor(gzip.Name))
		if err != nil {
			t.Fatal(err)
		}
		_ = stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: cds})
		if _, err := stream.Recv(); status.Code(err) != codes.Unimplemented || !strings.Contains(err.Error(), "gzip") {
			t.Errorf("got %v", err)
		}
	})
}

func unknown(from, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("nobody-%d-%d.example|http", from, i)
	}
	return all
}

func valueOf(t *testing.T, registry *prometheus.Registry, name string) (sum float64) {
	t.Helper()
	all, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range all {
		if family.GetName() == name {
			for _, m := range family.GetMetric() {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
			return sum
		}
	}
	t.Errorf("there is no metric %s", name)
	return 0
}
