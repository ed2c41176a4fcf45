package hostile

import (
	"fmt"
	"strings"
)

const quietHost = "web.quiet.svc.cluster.local"

// toQuiet is a destination that is always there.
func toQuiet(n int) []spec {
	return items(n, func(i int) spec {
		return spec{"destination": spec{"host": quietHost, "port": spec{"number": 80}}, "weight": 1}
	})
}

// match is a condition that no other one of an object is.
func (d *draw) match(i int) spec {
	out := spec{"uri": spec{pick(d, "prefix", "exact"): fmt.Sprintf("/p%d/", i)}}
	if d.oneIn(8) {
		out["uri"] = spec{"regex": fmt.Sprintf("/r%d/", i) + d.regex()}
	}
	if d.oneIn(6) {
		headers := spec{}
		for n := range d.upTo(40) {
			headers[fmt.Sprintf("x-%d", n)] = spec{pick(d, "exact", "prefix", "regex"): "v"}
		}
		out[pick(d, "headers", "withoutHeaders", "queryParams")] = headers
	}
	return out
}

func (d *draw) matches(n int) []spec { return items(n, d.match) }

// actions are texts that each route has a copy of.
func (d *draw) actions(route spec) spec {
	if d.oneIn(6) {
		set := spec{}
		for n := range d.upTo(50) {
			set[fmt.Sprintf("x-set-%d", n)] = strings.Repeat("v", d.upTo(1000))
		}
		route["headers"] = spec{pick(d, "request", "response"): spec{pick(d, "set", "add"): set}}
	}
	if d.oneIn(8) {
		route["mirrors"] = items(d.upTo(64), func(int) spec { return spec{"destination": spec{"host": quietHost}, "percentage": spec{"value": 1}} })
	}
	return route
}

// httpRoutes are so many, each with matches and destinations.
func (d *draw) httpRoutes(routes, matches, destinations int) []spec {
	return items(routes, func(i int) spec {
		return d.actions(spec{"match": items(matches, func(j int) spec { return d.match(i*matches + j) }), "route": toQuiet(destinations)})
	})
}

// probed has the judge look what becomes of a host of a VirtualService: proxies of the
// namespace follow it at port 80.
func (d *draw) probed(o *object) {
	hosts := o.spec["hosts"].([]string)
	if d.apart && o.namespace == namespaces[0] && hosts[0][0] != '*' {
		o.probe = &probe{domain: hosts[0]}
	}
}

func (d *draw) routes() {
	n := d.factors(1024, 500, 200, 64)
	if d.oneIn(2) {
		d.manyPorts()
	}
	ns := d.namespace()
	d.probed(d.add("VirtualService", ns, spec{"hosts": d.hosts(n[0], overlapped...), "http": d.httpRoutes(n[1], n[2], n[3])}))
}

func (d *draw) delegates() {
	ns, outer, inner := d.namespace(), d.factors(256, 64), d.factors(256, 64)
	var names []string
	for range d.upTo(5) {
		o := d.add("VirtualService", ns, spec{"http": d.httpRoutes(min(inner[0], 400), min(inner[1], 64), d.upTo(3))})
		names = append(names, o.name)
	}
	for range d.upTo(3) {
		d.add("VirtualService", ns, spec{"hosts": d.hosts(d.upTo(64), overlapped...), "http": items(outer[0], func(i int) spec {
			return spec{"match": items(outer[1], func(j int) spec { return d.match(i*outer[1] + j) }), "delegate": spec{"name": pick(d, names...)}}
		})})
	}
}

// wildcardRoutes are routes for each of many services.
func (d *draw) wildcardRoutes() {
	ending := d.word() + ".example"
	for i := range d.upTo(100) {
		s := d.entrySpec(1, d.upTo(8), 0, 1)
		s["hosts"] = items(d.upTo(16), func(j int) string { return fmt.Sprintf("h%d-%d.%s", i, j, ending) })
		d.add("ServiceEntry", pick(d, namespaces...), s)
	}
	for range d.upTo(20) {
		host := pick(d, "*."+ending, "*.example")
		d.add("VirtualService", d.namespace(), spec{"hosts": []string{host}, "http": d.httpRoutes(d.upTo(200), d.upTo(10), d.upTo(4))})
	}
}

func (d *draw) connections() {
	n := d.factors(16, 100, 200)
	service := d.service(1, n[1], n[0], 1)
	hosts := service.spec["hosts"].([]string)
	kind := pick(d, "tcp", "tls")
	d.add("VirtualService", pick(d, namespaces...), spec{"hosts": hosts, kind: items(min(n[2]*4, 1000), func(i int) spec {
		m := spec{"destinationSubnets": items(d.upTo(30), func(j int) string { return address(10+j%40, i) })}
		if kind == "tls" {
			m = spec{"sniHosts": items(d.upTo(30), func(j int) string { return fmt.Sprintf("s%d-%d.%s", i, j, strings.TrimPrefix(hosts[0], "*.")) })}
			if hosts[0][0] != '*' {
				m = spec{"sniHosts": hosts}
			}
		}
		return spec{"match": []spec{m}, "route": []spec{{"destination": spec{"host": quietHost}}}}
	})})
}

// longTexts are few parts of many bytes.
func (d *draw) longTexts() {
	for range d.upTo(6) {
		size := d.upTo(16_000) // What an Envoy takes in a header.
		route := spec{"route": toQuiet(1)}
		switch d.IntN(4) {
		case 0:
			route = spec{"directResponse": spec{"status": 200, "body": spec{"string": strings.Repeat("b", min(size, 4000))}}}
		case 1:
			route["headers"] = spec{"request": spec{"set": spec{"x-long": strings.Repeat("v", size)}}}
		case 2:
			route["corsPolicy"] = spec{"allowOrigins": items(d.upTo(256), func(i int) spec { return spec{"regex": fmt.Sprintf("%d", i) + d.regex()} })}
		case 3:
			route["rewrite"] = spec{"uri": "/" + strings.Repeat("w", size)}
		}
		route["match"] = d.matches(d.upTo(200))
		d.probed(d.add("VirtualService", d.namespace(), spec{"hosts": d.hosts(d.upTo(100), overlapped...), "http": []spec{route}}))
	}
}

func (d *draw) subsetList(n int) []spec {
	return items(n, func(i int) spec {
		out := spec{"name": fmt.Sprintf("s%d", i), "labels": spec{"v": fmt.Sprint(i % 9)}}
		if d.oneIn(4) {
			out["trafficPolicy"] = d.policy(d.upTo(20))
		}
		return out
	})
}

func (d *draw) policy(ports int) spec {
	return spec{
		"connectionPool":   spec{"tcp": spec{"maxConnections": 1 + d.IntN(1000)}},
		"outlierDetection": spec{"consecutive5xxErrors": 3},
		"portLevelSettings": items(ports, func(i int) spec {
			return spec{"port": spec{"number": 20_000 + i}, "loadBalancer": spec{"simple": "ROUND_ROBIN"}}
		}),
	}
}

// subsets divide the endpoints of a service.
func (d *draw) subsets() {
	n := d.factors(1024, 64, 2048)
	service := d.service(pick(d, 1, 1, 8), n[1], 0, n[2])
	for range d.upTo(3) {
		rule := spec{"host": service.spec["hosts"].([]string)[0], "subsets": d.subsetList(n[0])}
		if d.oneIn(2) {
			rule["trafficPolicy"] = d.policy(d.upTo(1000))
		}
		d.add("DestinationRule", service.namespace, rule)
	}
	d.add("VirtualService", service.namespace, spec{"hosts": service.spec["hosts"], "http": items(d.upTo(n[0]), func(i int) spec {
		return spec{"match": d.matches(1), "route": []spec{{"destination": spec{"host": service.spec["hosts"].([]string)[0], "subset": fmt.Sprintf("s%d", i)}}}}
	})})
}

// wildcardRules have subsets for each of many services.
func (d *draw) wildcardRules() {
	ending := d.word() + ".example"
	for i := range d.upTo(40) {
		s := d.entrySpec(1, d.upTo(4), 0, d.upTo(50))
		s["hosts"] = items(d.upTo(16), func(j int) string { return fmt.Sprintf("h%d-%d.%s", i, j, ending) })
		d.add("ServiceEntry", pick(d, namespaces...), s)
	}
	for range d.upTo(10) {
		d.add("DestinationRule", pick(d, namespaces...), spec{"host": "*." + ending, "subsets": d.subsetList(d.upTo(200))})
	}
	d.add("VirtualService", pick(d, namespaces...), spec{"hosts": []string{"*." + ending}, "http": d.httpRoutes(d.upTo(100), d.upTo(10), 1)})
}
