package meshgen

import "pgregory.net/rapid"

func sidecar(t *rapid.T) spec {
	s := spec{}
	s.often(t, "workloadSelector", func() any { return spec{"labels": labels(t, "workload")} })
	s.often(t, "egress", func() any {
		var out []spec
		for range rapid.IntRange(1, 2).Draw(t, "listeners") {
			l := spec{"hosts": some(t, "import", 2, "*/*", "./*", "default/a.default.svc.cluster.local", "*/c.example.com", "~/*", "other/*", "*/*.example.com")}
			l.seldom(t, "port", func() any { return spec{"number": port(t), "protocol": "HTTP", "name": "p"} })
			l.seldom(t, "captureMode", func() any { return "NONE" })
			out = append(out, l)
		}
		return out
	})
	s.seldom(t, "ingress", func() any {
		l := spec{"port": spec{"number": port(t), "protocol": pick(t, "protocol", "HTTP", "TCP", "GRPC"), "name": "p"}}
		l.seldom(t, "defaultEndpoint", func() any {
			return pick(t, "endpoint", "127.0.0.1:8080", "0.0.0.0:80", "[::1]:9090")
		})
		return []spec{l}
	})
	s.seldom(t, "outboundTrafficPolicy", func() any { return spec{"mode": pick(t, "mode", "ALLOW_ANY", "REGISTRY_ONLY")} })
	return s
}
