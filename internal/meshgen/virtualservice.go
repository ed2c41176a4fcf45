package meshgen

import "pgregory.net/rapid"

func virtualService(t *rapid.T) spec {
	if seldom(t, "is delegated to") {
		return spec{"http": rapid.SliceOfN(rapid.Custom(httpRoute), 1, 2).Draw(t, "delegated")}
	}
	out := spec{"hosts": some(t, "hosts", 2, "a", "b", "a.default.svc.cluster.local", "c.example.com", "shop.example", "*.example.com")}
	out.seldom(t, "gateways", func() any { return some(t, "gateways", 2, "mesh", "o0", "default/o1") })
	if seldom(t, "has tcp") {
		out["tcp"] = rapid.SliceOfN(rapid.Custom(tcpRoute), 1, 2).Draw(t, "tcp")
	}
	if seldom(t, "has tls") {
		out["gateways"] = pick(t, "gateways of tls", []string{"mesh"}, []string{"o0", "mesh"}, []string{"o0", "o1"})
		names := out["hosts"].([]string)
		out["tls"] = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) spec { return tlsRoute(t, names) }), 1, 2).Draw(t, "tls")
	}
	out["http"] = rapid.SliceOfN(rapid.Custom(httpRoute), 1, 3).Draw(t, "http")
	return out
}

func httpRoute(t *rapid.T) spec {
	out := spec{}
	out.seldom(t, "name", func() any { return "n" })
	out.often(t, "match", func() any { return rapid.SliceOfN(rapid.Custom(httpMatch), 1, 2).Draw(t, "matches") })
	if seldom(t, "redirects") {
		out["redirect"] = pick(t, "redirect", spec{"uri": "/y"}, spec{"authority": "b"}, spec{"uri": "/y", "redirectCode": 302}, spec{"scheme": "https", "derivePort": "FROM_REQUEST_PORT"})
		return out
	}
	if seldom(t, "answers") {
		out["directResponse"] = pick(t, "answer", spec{"status": 403}, spec{"status": 503}, spec{"status": 200, "body": spec{"string": "text"}})
		return out
	}
	if seldom(t, "delegates") {
		out["delegate"] = spec{"name": pick(t, "delegate", "o0", "o1", "o2", "o3")}
	} else {
		out["route"] = httpDestinations(t)
	}
	out.seldom(t, "rewrite", func() any { return pick(t, "rewrite", spec{"uri": "/w"}, spec{"authority": "w.example"}) })
	out.seldom(t, "timeout", func() any { return seconds(t) })
	out.seldom(t, "retries", func() any {
		out := spec{"attempts": rapid.IntRange(0, 3).Draw(t, "attempts"), "perTryTimeout": seconds(t)}
		out.seldom(t, "backoff", func() any { return seconds(t) })
		out.seldom(t, "retryIgnorePreviousHosts", func() any { return rapid.Bool().Draw(t, "other hosts") })
		out.seldom(t, "retryRemoteLocalities", func() any { return rapid.Bool().Draw(t, "other localities") })
		return out
	})
	out.often(t, "fault", func() any { return serviceFault(t) })
	out.seldom(t, "mirror", func() any { return destination(t) })
	out.seldom(t, "corsPolicy", func() any {
		policy := cors(t)
		policy["allowOrigins"] = []spec{{"exact": "http://a.example"}, pick(t, "origins", spec{"exact": "*"}, spec{"prefix": "http://b."}, spec{"regex": "https?://.*"}, spec{"regex": "("})}
		policy.seldom(t, "unmatchedPreflights", func() any { return pick(t, "preflights", "FORWARD", "IGNORE") })
		return policy
	})
	out.seldom(t, "headers", func() any { return headerChanges(t) })
	return out
}

func headerChanges(t *rapid.T) spec {
	operations := pick(t, "operation", spec{"add": map[string]string{"x-added": "50%%"}}, spec{"add": map[string]string{"x-user-too": "%REQ(x-user)%"}},
		spec{"add": map[string]string{"x-added": "50%"}},
		spec{"set": map[string]string{"x-set": ""}}, spec{"remove": []string{"x-secret"}})
	return spec{pick(t, "changed", "request", "response"): operations}
}

func httpMatch(t *rapid.T) spec {
	out := spec{}
	out.seldom(t, "name", func() any { return "m" })
	out.seldom(t, "statPrefix", func() any { return "s" })
	out.often(t, "uri", func() any { return path(t) })
	out.seldom(t, "ignoreUriCase", func() any { return true })
	out.seldom(t, "method", func() any { return stringMatch(t, "GET", "POST") })
	out.seldom(t, "authority", func() any { return stringMatch(t, "a", "b") })
	out.seldom(t, "headers", func() any { return headers(t) })
	out.seldom(t, "withoutHeaders", func() any {
		return spec{"x-out": pick(t, "without", spec{}, spec{"exact": "1"}, spec{"regex": ".*"}, spec{"regex": "[0-9]*"})}
	})
	out.seldom(t, "queryParams", func() any {
		return spec{pick(t, "parameter", "q", "page"): pick(t, "query value", spec{"exact": "1"}, spec{"regex": "[0-9]+"}, spec{"exact": ""})}
	})
	out.seldom(t, "sourceLabels", func() any { return map[string]string{"v": pick(t, "source version", "1", "2")} })
	out.seldom(t, "gateways", func() any { return []string{pick(t, "gateway", "mesh", "o0")} })
	out.seldom(t, "port", func() any { return port(t) })
	return out
}

func destination(t *rapid.T) spec {
	out := spec{"host": pick(t, "destination host", "a", "b", "a.default.svc.cluster.local", "c.example.com", "nobody")}
	out.often(t, "subset", func() any { return pick(t, "subset", "v1", "v2", "v3") })
	out.seldom(t, "port", func() any { return spec{"number": port(t)} })
	return out
}

func httpDestinations(t *rapid.T) []spec {
	var out []spec
	for _, weight := range weights(t) {
		to := spec{"destination": destination(t), "weight": weight}
		to.seldom(t, "headers", func() any { return headerChanges(t) })
		out = append(out, to)
	}
	return out
}

func serviceFault(t *rapid.T) spec {
	out := spec{}
	out.often(t, "delay", func() any { return spec{"percentage": spec{"value": percent(t)}, "fixedDelay": seconds(t)} })
	out.often(t, "abort", func() any {
		if seldom(t, "aborts gRPC") {
			return spec{"percentage": spec{"value": percent(t)}, "grpcStatus": pick(t, "gRPC status", "UNAVAILABLE", "OK")}
		}
		return spec{"percentage": spec{"value": percent(t)}, "httpStatus": pick(t, "status", 418, 503)}
	})
	return out
}

func tcpRoute(t *rapid.T) spec {
	out := spec{"route": []spec{{"destination": destination(t)}}}
	out.often(t, "match", func() any {
		match := spec{"port": port(t)}
		match.seldom(t, "destinationSubnets", func() any { return []string{"10.0.0.0/24"} })
		return []spec{match}
	})
	return out
}

// tlsRoute draws a route that is mostly for some of the hosts.
func tlsRoute(t *rapid.T, hosts []string) spec {
	match := spec{"sniHosts": some(t, "server names", 2, append([]string{"www.example.com"}, hosts...)...)}
	match.seldom(t, "port", func() any { return port(t) })
	match.seldom(t, "sourceLabels", func() any { return map[string]string{"v": "1"} })
	match.seldom(t, "gateways", func() any { return []string{pick(t, "gateway", "mesh", "o0")} })
	match.seldom(t, "destinationSubnets", func() any { return []string{"10.0.0.0/24"} })
	to := []spec{{"destination": destination(t)}}
	if seldom(t, "divides") {
		to[0]["weight"] = 30
		to = append(to, spec{"destination": destination(t), "weight": 70})
	}
	return spec{"match": []spec{match}, "route": to}
}
