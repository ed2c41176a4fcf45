package envoy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/pilot-api/pilot-api/envoy/envoytest"
	v1 "github.com/pilot-api/pilot-api/envoy/v1"
	"github.com/pilot-api/pilot-api/ir"
)

// largeConfig returns a configuration of n services. Each has a route for a cookie and a
// prefix, to a 90/10 split, and a default route.
func largeConfig(n int) *ir.Config {
	t := &ir.RouteTable{Name: "80"}
	cfg := config([]*ir.RouteTable{t}, []*ir.Listener{outbound(80, "80")})
	for i := range n {
		host := fmt.Sprintf("svc-%04d.default.svc.cluster.local", i)
		stable, canary := registryCluster(host+"|http"), registryCluster(host+"|http|version=v2")
		cfg.Clusters = append(cfg.Clusters, stable, canary)
		t.VirtualHosts = append(t.VirtualHosts, &ir.VirtualHost{
			Name: host + "|http", Domains: []string{host + ":80", host},
			Routes: []*ir.Route{
				{
					Match: ir.Match{Prefix: "/api", Headers: []ir.HeaderMatch{
						{Name: "cookie", Regex: "^(.*?;)?(user=jason)(;.*)?$"},
					}},
					Clusters: []ir.WeightedCluster{{Name: stable.Name, Weight: 90}, {Name: canary.Name, Weight: 10}},
					Timeout:  10 * time.Second,
				},
				{Operation: "default-route", Clusters: all(stable.Name)},
			},
		})
	}
	return cfg
}

var dialects = map[string]func(testing.TB, *ir.Config) []byte{"v1": encodeV1, "v3": encodeV3}

// encodeV1 and encodeV3 return all answers for a configuration.
func encodeV1(tb testing.TB, cfg *ir.Config) []byte {
	clusters, _ := v1.Clusters(cfg)
	listeners, _ := v1.Listeners(cfg, envoytest.ProxyIP)
	answers := []any{clusters, listeners}
	for _, table := range cfg.RouteTables {
		routes, _ := v1.Routes(table)
		answers = append(answers, routes)
	}
	text, err := json.Marshal(answers)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

func encodeV3(tb testing.TB, cfg *ir.Config) []byte {
	var out []byte
	add := func(m proto.Message) {
		text, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(out, m)
		if err != nil {
			tb.Fatal(err)
		}
		out = text
	}
	r := envoytest.Encode(cfg)
	for _, m := range r.Clusters {
		add(m)
	}
	for _, m := range r.Listeners {
		add(m)
	}
	for _, m := range r.Routes {
		add(m)
	}
	return out
}

// TestEqualConfigsHaveEqualBytes makes and encodes each configuration several times, with new
// maps. So an encoding that depends on the order of a map differs.
func TestEqualConfigsHaveEqualBytes(t *testing.T) {
	all := func() []aCase { return append(cases(), aCase{"large", largeConfig(10)}) }
	first := all()
	for range 10 {
		for i, c := range all() {
			for name, encode := range dialects {
				if !bytes.Equal(encode(t, first[i].config), encode(t, c.config)) {
					t.Errorf("%s in %s differs from one encoding to the next", c.name, name)
				}
			}
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	cfg := largeConfig(1000)
	for name, encode := range dialects {
		b.Run(name+"/services=1000", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.SetBytes(int64(len(encode(b, cfg))))
			}
		})
	}
}
