package hostile

import "fmt"

// entrySpec is a service of so many lists.
func (d *draw) entrySpec(hosts, ports, addresses, endpoints int) spec {
	protocol := d.protocol()
	out := spec{
		"hosts": d.hosts(hosts, covering...), "ports": portList(ports, d.firstPort(protocol), protocol),
		"location": pick(d, "MESH_INTERNAL", "MESH_EXTERNAL"), "resolution": "STATIC",
	}
	if addresses > 0 {
		out["addresses"] = items(addresses, func(i int) string { return address(60+d.named%50, i) })
	}
	if endpoints > 0 {
		out["endpoints"] = items(endpoints, func(i int) spec {
			e := spec{"address": address(120+d.named%50, i), "labels": spec{"v": fmt.Sprint(i % 7), "app": "hostile"}}
			if i%3 == 0 {
				e["locality"] = fmt.Sprintf("region-%d/zone-%d", i%10, i)
			}
			return e
		})
	}
	return out
}

// service is a ServiceEntry that callers of all namespaces see.
func (d *draw) service(hosts, ports, addresses, endpoints int) *object {
	o := d.add("ServiceEntry", pick(d, namespaces...), d.entrySpec(hosts, ports, addresses, endpoints))
	delete(o.spec, "exportTo")
	names, port := o.spec["hosts"].([]string), o.spec["ports"].([]spec)[0]
	if d.apart && endpoints > 0 && names[0][0] != '*' && port["protocol"] != "UDP" && o.spec["location"] == "MESH_INTERNAL" {
		o.probe = &probe{cluster: names[0] + "|p-0", endpoints: endpoints}
	}
	return o
}

func (d *draw) entry() {
	n := d.factors(256, 256, 256, 4096)
	d.service(n[0], n[1], n[2]-1, n[3])
}

// manyEntries fill the budget of the mesh with objects that are within their own.
func (d *draw) manyEntries() {
	for range d.upTo(60) {
		n := d.factors(64, 64, 8, 256)
		d.service(n[0], n[1], n[2]-1, n[3]-1)
	}
}

// selections are services that select the same workloads.
func (d *draw) selections() {
	ns, workloads := d.namespace(), d.upTo(150)
	for i := range workloads {
		d.add("WorkloadEntry", ns, spec{"address": address(200, i), "labels": spec{"app": "many", "v": fmt.Sprint(i)}, "locality": fmt.Sprintf("r/z%d", i)})
	}
	for range d.upTo(30) {
		s := d.entrySpec(d.upTo(32), d.upTo(32), 0, 0)
		s["workloadSelector"] = spec{"labels": spec{"app": "many"}}
		d.add("ServiceEntry", ns, s)
	}
}

// manyPorts are ports at which every proxy has a table, or a listener.
func (d *draw) manyPorts() {
	for i := range d.upTo(12) {
		protocol := d.protocol()
		s := d.entrySpec(1, 1, d.upTo(3)-1, 1)
		s["ports"] = portList(d.upTo(256), 20_000+256*i, protocol)
		d.add("ServiceEntry", d.namespace(), s)
	}
}

// inbound are services of one workload, which is the hostile proxy's: at each of its
// ports it has the rules of all of them.
func (d *draw) inbound() {
	services, ports := d.upTo(100), d.upTo(40)
	for i := range services {
		host := d.word() + ".hostile-a.svc.cluster.local"
		d.add("ServiceEntry", namespaces[0], spec{
			"hosts": []string{host}, "location": "MESH_INTERNAL", "resolution": "STATIC",
			"ports": portList(ports, 20_000+ports*i, "HTTP"), "endpoints": []spec{{"address": hostileAddress}},
		})
		if d.oneIn(2) {
			d.add("VirtualService", namespaces[0], spec{"hosts": []string{host}, "http": d.httpRoutes(d.upTo(60), d.upTo(4), 1)})
			continue
		}
		for range d.upTo(6) {
			d.add("RouteRule", namespaces[0], spec{"destination": spec{"service": host}, "match": spec{"request": spec{"headers": spec{"uri": spec{"prefix": "/" + d.word()}}}}})
		}
	}
}

func (d *draw) egress() {
	for i := range d.upTo(40) {
		service := fmt.Sprintf("%s%s.example", pick(d, "", "*."), d.word())
		protocol := pick(d, "http", "http2", "grpc", "https", "tcp")
		if protocol == "tcp" && d.oneIn(2) {
			service = fmt.Sprintf("172.%d.%d.0/24", 16+i%16, i)
		}
		d.add("EgressRule", pick(d, namespaces...), spec{"destination": spec{"service": service}, "ports": items(d.upTo(256), func(i int) spec {
			return spec{"port": 30_000 + i, "protocol": protocol}
		})})
	}
}
