package hostile

import "fmt"

// quiet is the honest mesh: services, rules and a gateway of namespace quiet. The judge
// finds what belongs to it by the word quiet.
func quiet() []object {
	service := func(name, host string, i int, endpoints int) object {
		return object{kind: "ServiceEntry", name: name, spec: spec{
			"hosts": []string{host}, "location": "MESH_INTERNAL", "resolution": "STATIC", "addresses": []string{address(3, i)},
			"ports": []spec{{"number": 80, "name": "http", "protocol": "HTTP"}, {"number": 9000, "name": "tcp", "protocol": "TCP"}},
			"endpoints": items(endpoints, func(n int) spec {
				return spec{"address": address(1, 10*i+n), "labels": spec{"v": fmt.Sprint(n)}}
			}),
		}}
	}
	out := []object{
		service("web", quietHost, 0, 2),
		service("api", "api.quiet.svc.cluster.local", 1, 3),
		service("shop", "shop.quiet.example", 2, 1),
		{kind: "VirtualService", name: "web", spec: spec{"hosts": []string{quietHost}, "http": []spec{
			{"match": []spec{{"uri": spec{"prefix": "/v1"}}}, "route": []spec{{"destination": spec{"host": quietHost, "subset": "v1"}}}},
			{"route": toQuiet(1), "timeout": "3s"},
		}}},
		{kind: "VirtualService", name: "all", spec: spec{"hosts": []string{"*.quiet.svc.cluster.local"}, "http": []spec{{"route": []spec{{"destination": spec{"host": "api.quiet.svc.cluster.local"}}}, "timeout": "5s"}}}},
		{kind: "VirtualService", name: "nobodys", spec: spec{"hosts": []string{"nobody.quiet.example"}, "http": []spec{{"route": toQuiet(1)}}}},
		{kind: "DestinationRule", name: "web", spec: spec{"host": quietHost, "subsets": []spec{{"name": "v1", "labels": spec{"v": "1"}}}}},
		{kind: "Gateway", name: "edge", spec: spec{"selector": ingress, "servers": []spec{
			{"port": spec{"number": 80, "name": "http", "protocol": "HTTP"}, "hosts": []string{"*"}},
			{"port": spec{"number": 8080, "name": "more", "protocol": "HTTP"}, "hosts": []string{"*.quiet.example"}},
		}}},
		{kind: "VirtualService", name: "edge", spec: spec{"hosts": []string{"shop.quiet.example"}, "gateways": []string{"edge"}, "http": []spec{{"route": toQuiet(1)}}}},
		{kind: "RouteRule", name: "api", spec: spec{"destination": spec{"name": "api"}, "route": []spec{{"labels": spec{"v": "2"}}}}},
		{kind: "IngressRule", name: "api", spec: spec{"destination": spec{"name": "api"}, "destinationPort": 80, "match": spec{"request": spec{"headers": spec{"authority": spec{"exact": "api.quiet.example"}}}}}},
		{kind: "WorkloadEntry", name: "one", spec: spec{"address": "10.1.200.1", "labels": spec{"app": "quiet"}}},
	}
	for i := range out {
		out[i].namespace = "quiet"
	}
	return out
}

// hostileAddress is that of the hostile proxy.
const hostileAddress = "10.9.0.6"

// proxies are those of the honest mesh, and the last one is of a hostile namespace.
var proxies = []proxy{
	{name: "workload", id: "sidecar~10.1.0.1~web-%d.quiet~quiet.svc.cluster.local"},
	{name: "beside", id: "sidecar~10.9.0.1~job-%d.quiet~quiet.svc.cluster.local"},
	{name: "elsewhere", id: "sidecar~10.9.0.2~job-%d.other~other.svc.cluster.local"},
	{name: "gateway", id: "router~10.9.0.3~edge-%d.quiet~quiet.svc.cluster.local", labels: map[string]string{"istio": "ingressgateway"}},
	{name: "ingress", id: "ingress~10.9.0.4~ingress-%d.quiet~quiet.svc.cluster.local"},
	{name: "old", id: "sidecar~10.9.0.5~old-%d.third~third.svc.cluster.local", v1: true},
	{name: "hostile", id: "sidecar~" + hostileAddress + "~x-%d.hostile-a~hostile-a.svc.cluster.local"},
}

// isHostile reports whether what the proxy sees is up to hostile objects.
func (p proxy) isHostile() bool { return p.name == "hostile" }
