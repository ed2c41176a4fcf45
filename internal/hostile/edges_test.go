package hostile

import "fmt"

// ingress are the labels of the honest gateway's proxy, which all Gateways are for.
var ingress = spec{"istio": "ingressgateway"}

func (d *draw) servers(n int, of func(i int) spec) []spec {
	first := 20_000
	if !d.apart {
		first = pick(d, 80, 443, 20_000)
	}
	return items(n, func(i int) spec {
		s := of(i)
		port := s["port"].(spec)
		port["number"], port["name"] = first+i, fmt.Sprintf("g-%d", i)
		return s
	})
}

// gateways open many ports for many hosts, to which rules are bound.
func (d *draw) gateways() {
	ns, ending := d.namespace(), d.word()+".example"
	n := d.factors(1024, 256, 100)
	host := func(i int) string { return fmt.Sprintf("h%d.%s", i, ending) }
	each := d.upTo(n[1])
	gateway := d.add("Gateway", ns, spec{"selector": ingress, "servers": d.servers(n[0], func(i int) spec {
		hosts := items(each, host)
		if d.oneIn(2) {
			hosts = []string{pick(d, "*", "*."+ending)}
		}
		server := spec{"port": spec{"protocol": pick(d, "HTTP", "HTTP", "HTTP2", "HTTPS")}, "hosts": hosts}
		if server["port"].(spec)["protocol"] == "HTTPS" {
			server["tls"] = spec{"mode": "SIMPLE", "credentialName": fmt.Sprintf("secret-%d", i)}
		} else if d.oneIn(10) {
			server["tls"] = spec{"httpsRedirect": true}
		}
		return server
	})})
	name := ns + "/" + gateway.name
	for range d.upTo(10) {
		d.add("VirtualService", ns, spec{"hosts": items(n[1], host), "gateways": []string{name}, "http": d.httpRoutes(min(n[2], d.upTo(200)), d.upTo(8), 1)})
	}
	if !d.apart && d.oneIn(2) {
		d.add("VirtualService", ns, spec{"hosts": items(d.upTo(1024), host), "gateways": []string{"quiet/edge"}, "http": d.httpRoutes(d.upTo(20), 1, 1)})
	}
}

// passthrough are servers for connections.
func (d *draw) passthrough() {
	ns, ending := d.namespace(), d.word()+".example"
	n := d.factors(256, 128, 128)
	host := func(i int) string { return fmt.Sprintf("h%d.%s", i, ending) }
	kind := pick(d, "tls", "tcp")
	gateway := d.add("Gateway", ns, spec{"selector": ingress, "servers": d.servers(n[0], func(i int) spec {
		if kind == "tcp" {
			return spec{"port": spec{"protocol": "TCP"}, "hosts": []string{"*"}}
		}
		return spec{"port": spec{"protocol": "TLS"}, "hosts": []string{"*." + ending}, "tls": spec{"mode": pick(d, "PASSTHROUGH", "AUTO_PASSTHROUGH")}}
	})})
	for range d.upTo(6) {
		routes := items(n[2], func(i int) spec {
			m := spec{"port": 20_000 + i%n[0]}
			if d.oneIn(2) {
				m = spec{"destinationSubnets": items(d.upTo(20), func(j int) string { return address(10+j, i) })}
			}
			if kind == "tls" {
				m["sniHosts"] = []string{host(i % n[1])}
			}
			return spec{"match": []spec{m}, "route": []spec{{"destination": spec{"host": quietHost}}}}
		})
		d.add("VirtualService", ns, spec{"hosts": items(n[1], host), "gateways": []string{ns + "/" + gateway.name}, kind: routes})
	}
}

// sidecars import many hosts.
func (d *draw) sidecars() {
	if d.oneIn(2) {
		d.manyEntries()
	}
	ns := pick(d, namespaces...)
	listeners := d.upTo(30)
	s := spec{"egress": items(listeners, func(i int) spec {
		e := spec{"hosts": items(d.upTo(2000), func(j int) string {
			return pick(d, "./", "*/", "hostile-b/", fmt.Sprintf("n%d/", j)) + pick(d, "*", fmt.Sprintf("*.x%d.example", j), fmt.Sprintf("h%d.x%d.example", j, i))
		})}
		if i < listeners-1 {
			e["port"] = spec{"number": 21_000 + i, "protocol": "HTTP", "name": fmt.Sprintf("e-%d", i)}
		}
		return e
	})}
	if d.oneIn(2) {
		s["ingress"] = items(d.upTo(200), func(i int) spec {
			return spec{"port": spec{"number": 22_000 + i, "protocol": "HTTP", "name": fmt.Sprintf("i-%d", i)}, "defaultEndpoint": fmt.Sprintf("127.0.0.1:%d", 3000+i)}
		})
	}
	d.add("Sidecar", ns, s)
}
