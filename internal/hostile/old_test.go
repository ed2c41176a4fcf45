package hostile

import "fmt"

// oldService is one that rules of Istio 0.x find by its short name.
func (d *draw) oldService(ports, endpoints int) (name, namespace string) {
	name, namespace = d.word(), namespaces[0]
	d.add("ServiceEntry", namespace, spec{
		"hosts": []string{name + "." + namespace + ".svc.cluster.local"}, "location": "MESH_INTERNAL", "resolution": "STATIC",
		"ports": portList(ports, 20_000, "HTTP"),
		"endpoints": items(endpoints, func(i int) spec {
			return spec{"address": address(90, i), "labels": spec{"v": fmt.Sprint(i)}}
		}),
	})
	return name, namespace
}

// routeRules are many rules for each port of one service.
func (d *draw) routeRules() {
	service, ns := d.oldService(d.upTo(100), d.upTo(20))
	for i := range d.upTo(150) {
		rule := spec{"destination": spec{"name": service}, "precedence": i % 50}
		headers := spec{"uri": spec{pick(d, "prefix", "exact"): fmt.Sprintf("/r%d", i)}}
		for n := range d.upTo(20) {
			headers[fmt.Sprintf("x-%d", n)] = spec{"regex": d.regex()}
		}
		rule["match"] = spec{"request": spec{"headers": headers}}
		if d.oneIn(3) {
			rule["match"].(spec)["source"] = spec{"name": "web", "namespace": "quiet"}
		}
		n := pick(d, 1, 2, 10, 100)
		rule["route"] = items(n, func(i int) spec { return spec{"labels": spec{"v": fmt.Sprint(i)}, "weight": 100 / n} })
		d.add("RouteRule", ns, rule)
	}
}

// policies are for versions of one service, each of which becomes a cluster.
func (d *draw) policies() {
	service, ns := d.oldService(d.upTo(50), d.upTo(200))
	versions := d.upTo(100)
	for i := range versions {
		d.add("DestinationPolicy", ns, spec{
			"destination":    spec{"name": service, "labels": spec{"v": fmt.Sprint(i)}},
			"circuitBreaker": spec{"simpleCb": spec{"maxConnections": i + 1, "sleepWindow": "1s", "httpDetectionInterval": "1s"}},
		})
	}
	for i := range d.upTo(versions) {
		d.add("RouteRule", ns, spec{"destination": spec{"name": service}, "precedence": i, "route": []spec{{"labels": spec{"v": fmt.Sprint(i)}}}})
	}
}

func (d *draw) ingressRules() {
	service, ns := d.oldService(d.upTo(20), 1)
	switch d.IntN(3) {
	case 0:
		for i := range d.upTo(100) {
			d.add("RouteRule", ns, spec{"destination": spec{"name": service}, "match": spec{"request": spec{"headers": spec{"uri": spec{"prefix": fmt.Sprintf("/%s/%d/", service, i)}}}}})
		}
	case 1:
		d.add("VirtualService", ns, spec{"hosts": []string{service + "." + ns + ".svc.cluster.local"}, "http": d.httpRoutes(d.upTo(400), d.upTo(10), 1)})
	}
	for i := range d.upTo(150) {
		headers := spec{"uri": spec{pick(d, "prefix", "exact"): fmt.Sprintf("/%s/%d", service, i)}}
		if d.oneIn(2) {
			headers["authority"] = spec{"exact": fmt.Sprintf("h%d.%s.example", i, service)}
		}
		d.add("IngressRule", ns, spec{
			"destination": spec{"name": service}, "destinationPort": 20_000, "match": spec{"request": spec{"headers": headers}},
		})
	}
}
