package meshgen

import (
	"fmt"

	"pgregory.net/rapid"
)

func egressRule(t *rapid.T) spec {
	protocols := []string{"http", "http2", "grpc", "https", "tcp", "mongo"}
	service := pick(t, "service", "c.example.com", "*.example.com", "d.example.com", "10.9.0.0/16", "10.9.1.0/24")
	if service[0] == '1' {
		protocols = protocols[4:]
	}
	var ports []spec
	for _, number := range some(t, "ports", 2, 80, 90, 443) {
		ports = append(ports, spec{"port": number, "protocol": pick(t, "protocol", protocols...)})
	}
	return spec{"destination": spec{"service": service}, "ports": ports}
}

func ingressRule(t *rapid.T) spec {
	out := spec{"destination": reference(t)}
	if rapid.Bool().Draw(t, "port by name") {
		out["destinationPortName"] = pick(t, "port name", "p80", "p90")
	} else {
		out["destinationPort"] = port(t)
	}
	out.seldom(t, "tlsSecret", func() any { return pick(t, "secret", "one", "two") })
	out.often(t, "match", func() any {
		all := spec{}
		all.often(t, "uri", func() any { return path(t) })
		all.seldom(t, "authority", func() any { return spec{"exact": pick(t, "authority", "shop.example", "a")} })
		return spec{"request": spec{"headers": all}}
	})
	return out
}

func gateway(t *rapid.T) spec {
	var servers []spec
	for i := range rapid.IntRange(1, 3).Draw(t, "servers") {
		number := pick(t, "server", 80, 443, 443, 9000)
		server := spec{
			"port":  spec{"number": number, "name": fmt.Sprintf("g%d", i), "protocol": pick(t, "protocol", "HTTP", "HTTP", "HTTPS", "TCP")},
			"hosts": some(t, "hosts", 2, "*", "shop.example", "*.example.com", "c.example.com", "a.default.svc.cluster.local"),
		}
		if number == 443 {
			server["port"].(spec)["protocol"] = pick(t, "protocol of TLS", "HTTPS", "TLS")
			server["tls"] = serverTLS(t)
		}
		servers = append(servers, server)
	}
	return spec{"selector": pick(t, "selector", nil, map[string]string{"istio": "ingressgateway"}, map[string]string{"v": "2"}), "servers": servers}
}

func serverTLS(t *rapid.T) spec {
	mode := pick(t, "TLS of a server", "SIMPLE", "PASSTHROUGH", "PASSTHROUGH", "PASSTHROUGH", "MUTUAL", "OPTIONAL_MUTUAL", "ISTIO_MUTUAL", "AUTO_PASSTHROUGH")
	out := spec{"mode": mode}
	if mode == "SIMPLE" || mode == "MUTUAL" || mode == "OPTIONAL_MUTUAL" {
		out["serverCertificate"], out["privateKey"] = pick(t, "certificate", "/c.pem", "/d.pem"), "/k.pem"
	}
	if mode == "MUTUAL" || mode == "OPTIONAL_MUTUAL" {
		out["caCertificates"] = "/ca.pem"
		out.seldom(t, "caCrl", func() any { return "/ca.crl" })
		out.seldom(t, "subjectAltNames", func() any { return []string{"a"} })
	}
	return out
}
