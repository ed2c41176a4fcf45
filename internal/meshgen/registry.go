package meshgen

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/mesh"
)

func serviceEntry(t *rapid.T) spec {
	resolution := pick(t, "resolution", "STATIC", "STATIC", "DNS", "NONE", "DNS_ROUND_ROBIN")
	out := spec{
		"hosts":      some(t, "hosts", 2, "a.default.svc.cluster.local", "b.default.svc.cluster.local", "b", "*.example.com", "c.example.com"),
		"location":   pick(t, "location", "MESH_INTERNAL", "MESH_EXTERNAL"),
		"resolution": resolution,
		"ports":      ports(t),
	}
	out.seldom(t, "addresses", func() any {
		return some(t, "virtual address", 3, "10.0.0.1", "10.0.0.2", "10.0.0.0/24", "10.0.0.0/31", "2001:db8::1")
	})
	out.seldom(t, "subjectAltNames", func() any { return some(t, "alternative name", 2, "a.example", "spiffe://b") })
	switch {
	case resolution == "NONE":
	case seldom(t, "selects"):
		out["workloadSelector"] = spec{"labels": map[string]string{"v": pick(t, "selected", "1", "2")}}
	default:
		endpoints := []spec{}
		for range rapid.IntRange(0, 2).Draw(t, "endpoints") {
			endpoints = append(endpoints, workloadEntry(t))
		}
		out["endpoints"] = endpoints
	}
	return out
}

// usualService has two versions and two HTTP ports.
func usualService() spec {
	return spec{
		"hosts": []string{"a.default.svc.cluster.local"}, "location": "MESH_INTERNAL", "resolution": "STATIC",
		"ports": []spec{
			{"number": 80, "name": "p80", "protocol": "HTTP", "targetPort": 8080},
			{"number": 90, "name": "p90", "protocol": "HTTP2"},
		},
		"endpoints": []spec{
			{"address": "10.1.0.1", "labels": map[string]string{"v": "1"}},
			{"address": "10.1.0.2", "labels": map[string]string{"v": "2"}},
		},
	}
}

func ports(t *rapid.T) []spec {
	var out []spec
	for _, number := range some(t, "ports", 3, 80, 90, 443, 15001) {
		p := spec{
			"number": number, "name": fmt.Sprintf("p%d", number),
			"protocol": pick(t, "protocol", "HTTP", "HTTP", "HTTP", "HTTP2", "GRPC", "HTTPS", "TCP", "TLS", "MONGO", "REDIS", "UDP"),
		}
		p.seldom(t, "targetPort", func() any { return 8080 })
		out = append(out, p)
	}
	return out
}

// workloadEntry draws the spec of a WorkloadEntry. It also serves as an endpoint of a
// ServiceEntry.
func workloadEntry(t *rapid.T) spec {
	out := spec{"address": address(t), "labels": labels(t, "labels")}
	if seldom(t, "behind a socket") {
		out["address"] = pick(t, "socket", "unix:///run/app/a.sock", "unix:///run/a.sock", "unix://@b")
	}
	out.seldom(t, "locality", func() any { return pick(t, "zone", "region/zone", "region/other", "region/zone/sub", "other/zone") })
	out.seldom(t, "network", func() any { return pick(t, "network", "near", "far") })
	out.seldom(t, "weight", func() any { return pick(t, "weight", 1, 100) })
	return out
}

// Networks returns the gateways of the endpoints' networks.
func Networks() map[string][]mesh.NetworkGateway {
	return map[string][]mesh.NetworkGateway{
		"near": {{Address: "10.3.0.1", Port: 15443}},
		"far":  {{Address: "10.4.0.1", Port: 15443}, {Address: "10.4.0.2", Port: 15443}},
	}
}
