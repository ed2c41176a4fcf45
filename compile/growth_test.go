package compile_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// manyOf are meshes with n of something that could be looked through for each
// of n others, while what comes out grows as n does.
var manyOf = map[string]func(t testing.TB, n int) []*schema.Object{
	"hosts of a gateway, each with a VirtualService": func(t testing.TB, n int) []*schema.Object {
		var hosts []string
		var out []*schema.Object
		for i := range n {
			host := fmt.Sprintf("h%d.example.com", i)
			hosts = append(hosts, host)
			out = append(out, object(t, "VirtualService", fmt.Sprintf("v%d", i), spec{
				"hosts": []string{host}, "gateways": []string{"edge"},
				"http": []spec{{"route": []spec{{"destination": spec{"host": "web"}}}}},
			}))
		}
		return append(out, webService(t), object(t, "Gateway", "edge", spec{
			"servers": []spec{{"port": spec{"number": 80, "name": "http", "protocol": "HTTP"}, "hosts": hosts}},
		}))
	},
	"hosts of a gateway, all in one VirtualService": func(t testing.TB, n int) []*schema.Object {
		var hosts []string
		for i := range n {
			hosts = append(hosts, fmt.Sprintf("h%d.example.com", i))
		}
		return []*schema.Object{webService(t), object(t, "Gateway", "edge", spec{
			"servers": []spec{{"port": spec{"number": 80, "name": "http", "protocol": "HTTP"}, "hosts": hosts}},
		}), object(t, "VirtualService", "v", spec{
			"hosts": hosts, "gateways": []string{"edge"},
			"http": []spec{{"route": []spec{{"destination": spec{"host": "web"}}}}},
		})}
	},
	"servers of a gateway": func(t testing.TB, n int) []*schema.Object {
		var servers []spec
		for i := range n {
			servers = append(servers, spec{"port": spec{"number": 1024 + i, "name": fmt.Sprintf("http-%d", i), "protocol": "HTTP"}, "hosts": []string{"web.example.com"}})
		}
		return []*schema.Object{webService(t), object(t, "Gateway", "edge", spec{"servers": servers}), object(t, "VirtualService", "v", spec{
			"hosts": []string{"web.example.com"}, "gateways": []string{"edge"},
			"http": []spec{{"route": []spec{{"destination": spec{"host": "web"}}}}},
		})}
	},
	"gateways": func(t testing.TB, n int) []*schema.Object {
		out := []*schema.Object{webService(t)}
		var names []string
		for i := range n {
			name := fmt.Sprintf("edge-%d", i)
			names = append(names, name)
			out = append(out, object(t, "Gateway", name, spec{
				"servers": []spec{{"port": spec{"number": 80, "name": "http", "protocol": "HTTP"}, "hosts": []string{"web.example.com"}}},
			}))
		}
		return append(out, object(t, "VirtualService", "v", spec{
			"hosts": []string{"web.example.com"}, "gateways": names,
			"http": []spec{{"route": []spec{{"destination": spec{"host": "web"}}}}},
		}))
	},
	"subsets, each with a route": func(t testing.TB, n int) []*schema.Object {
		var subsets, routes []spec
		for i := range n {
			name := fmt.Sprintf("s%d", i)
			subsets = append(subsets, spec{"name": name, "labels": spec{"version": name}})
			routes = append(routes, spec{
				"match": []spec{{"uri": spec{"prefix": "/" + name}}},
				"route": []spec{{"destination": spec{"host": "web", "subset": name}}},
			})
		}
		return []*schema.Object{
			webService(t),
			object(t, "DestinationRule", "d", spec{"host": "web", "subsets": subsets}),
			object(t, "VirtualService", "v", spec{"hosts": []string{"web"}, "http": routes}),
		}
	},
	"rules of one destination": func(t testing.TB, n int) []*schema.Object {
		out := []*schema.Object{webService(t)}
		for i := range n {
			out = append(out, object(t, "RouteRule", fmt.Sprintf("r%d", i), spec{
				"destination": spec{"name": "web"}, "precedence": i + 1,
				"match": spec{"request": spec{"headers": spec{"uri": spec{"prefix": fmt.Sprintf("/p%d", i)}}}},
				"route": []spec{{"labels": spec{"version": fmt.Sprintf("v%d", i)}}},
			}))
		}
		return out
	},
	"policies of one destination": func(t testing.TB, n int) []*schema.Object {
		out := []*schema.Object{webService(t)}
		for i := range n {
			out = append(out, object(t, "DestinationPolicy", fmt.Sprintf("p%d", i), spec{
				"destination":   spec{"name": "web", "labels": spec{"version": fmt.Sprintf("v%d", i)}},
				"loadBalancing": spec{"name": "RANDOM"},
			}), object(t, "RouteRule", fmt.Sprintf("r%d", i), spec{
				"destination": spec{"name": "web"}, "precedence": i + 1,
				"match": spec{"request": spec{"headers": spec{"uri": spec{"prefix": fmt.Sprintf("/p%d", i)}}}},
				"route": []spec{{"labels": spec{"version": fmt.Sprintf("v%d", i)}}},
			}))
		}
		return out
	},
	"VirtualServices of one host": func(t testing.TB, n int) []*schema.Object {
		out := []*schema.Object{webService(t)}
		for i := range n {
			out = append(out, object(t, "VirtualService", fmt.Sprintf("v%d", i), spec{
				"hosts": []string{"web"}, "http": []spec{{"route": []spec{{"destination": spec{"host": "web"}}}}},
			}))
		}
		return out
	},
	"DestinationRules of one host": func(t testing.TB, n int) []*schema.Object {
		out := []*schema.Object{webService(t)}
		for i := range n {
			name := fmt.Sprintf("s%d", i)
			out = append(out, object(t, "DestinationRule", name, spec{
				"host": "web", "trafficPolicy": spec{"loadBalancer": spec{"simple": "RANDOM"}},
				"subsets": []spec{{"name": name, "labels": spec{"version": name}}},
			}))
		}
		return out
	},
	"VirtualServices of one gateway host": func(t testing.TB, n int) []*schema.Object {
		out := []*schema.Object{webService(t), object(t, "Gateway", "edge", spec{
			"servers": []spec{{"port": spec{"number": 80, "name": "http", "protocol": "HTTP"}, "hosts": []string{"*"}}},
		})}
		for i := range n {
			out = append(out, object(t, "VirtualService", fmt.Sprintf("v%d", i), spec{
				"hosts": []string{"web.example.com"}, "gateways": []string{"edge"},
				"http": []spec{
					{"match": []spec{{"uri": spec{"prefix": fmt.Sprintf("/p%d", i)}}}, "route": []spec{{"destination": spec{"host": "web"}}}},
					{"route": []spec{{"destination": spec{"host": "web"}}}},
				},
			}))
		}
		return out
	},
	"ports of a service": func(t testing.TB, n int) []*schema.Object {
		var ports []spec
		for i := range n {
			ports = append(ports, spec{"number": 1024 + i, "name": fmt.Sprintf("http-%d", i), "protocol": "HTTP"})
		}
		return []*schema.Object{object(t, "ServiceEntry", "web", spec{
			"hosts": []string{"web.default.svc.cluster.local"}, "location": "MESH_INTERNAL", "resolution": "STATIC",
			"ports": ports, "endpoints": []spec{{"address": "10.1.0.1"}},
		})}
	},
	"hosts of a service": func(t testing.TB, n int) []*schema.Object {
		var hosts []string
		for i := range n {
			hosts = append(hosts, fmt.Sprintf("h%d.example.com", i))
		}
		return []*schema.Object{object(t, "ServiceEntry", "web", spec{
			"hosts": hosts, "location": "MESH_EXTERNAL", "resolution": "DNS",
			"ports": []spec{{"number": 80, "name": "http", "protocol": "HTTP"}},
		})}
	},
	"ingress rules": func(t testing.TB, n int) []*schema.Object {
		out := []*schema.Object{webService(t)}
		for i := range n {
			out = append(out, object(t, "IngressRule", fmt.Sprintf("r%d", i), spec{
				"destination": spec{"name": "web"}, "port": "80",
				"match": spec{"request": spec{"headers": spec{"uri": spec{"prefix": fmt.Sprintf("/p%d", i)}}}},
			}))
		}
		return out
	},
}

func webService(t testing.TB) *schema.Object {
	return object(t, "ServiceEntry", "web", spec{
		"hosts": []string{"web.default.svc.cluster.local"}, "location": "MESH_INTERNAL", "resolution": "STATIC",
		"ports": []spec{{"number": 80, "name": "http", "protocol": "HTTP"}}, "endpoints": []spec{{"address": "10.1.0.1"}},
	})
}

// TestCompilingIsNotQuadratic: four times as many of anything take about four
// times as long, and not sixteen times. One good measurement among several is
// enough, and a busy machine cannot make all of them bad.
func TestCompilingIsNotQuadratic(t *testing.T) {
	outside.Slow(t)
	const few, tries = 500, 6
	for name, objects := range manyOf {
		t.Run(name, func(t *testing.T) {
			less, more := objects(t, few), objects(t, 4*few)
			var ratios []float64
			for range tries {
				short, long := compiling(t, less), compiling(t, more)
				ratio := float64(long) / float64(short)
				if ratio < 8 {
					t.Logf("%v and %v", short, long)
					return
				}
				ratios = append(ratios, ratio)
			}
			t.Errorf("four times as many take longer by factors of %.1f", ratios)
		})
	}
}

// compiling is how long it takes to compile for a sidecar and both edges.
func compiling(t testing.TB, objects []*schema.Object) time.Duration {
	start := time.Now()
	s := mesh.NewSnapshot(1, mesh.DefaultSettings(), objects)
	for _, role := range []string{"sidecar", "ingress", "router"} {
		compile.Proxy(s, s.TraitsOf(proxy(t, role+"~10.9.0.1~a.default~default.svc.cluster.local")))
	}
	return time.Since(start)
}
