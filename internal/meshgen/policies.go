package meshgen

import (
	"maps"

	"pgregory.net/rapid"
)

func destinationPolicy(t *rapid.T) spec {
	destination := reference(t)
	destination["labels"] = labels(t, "labels")
	out := spec{"destination": destination}
	out.seldom(t, "source", func() any { return reference(t) })
	out.often(t, "loadBalancing", func() any {
		return spec{"name": pick(t, "balancer", "ROUND_ROBIN", "LEAST_CONN", "RANDOM")}
	})
	out.often(t, "circuitBreaker", func() any {
		breaker := spec{"sleepWindow": "15.5s", "httpDetectionInterval": pick(t, "interval", "10s", "0.5s")}
		for _, field := range []string{
			"maxConnections", "httpMaxPendingRequests", "httpMaxRequests", "httpConsecutiveErrors",
			"httpMaxRequestsPerConnection", "httpMaxEjectionPercent", "httpMaxRetries",
		} {
			breaker.often(t, field, func() any { return rapid.IntRange(0, 100).Draw(t, field) })
		}
		return spec{"simpleCb": breaker}
	})
	return out
}

func destinationRule(t *rapid.T) spec {
	out := spec{"host": pick(t, "host", "a", "b", "a.default.svc.cluster.local", "c.example.com", "*.example.com")}
	out.often(t, "trafficPolicy", func() any { return trafficPolicy(t) })
	var subsets []spec
	for _, version := range some(t, "subsets", 2, "1", "2") {
		subset := spec{"name": "v" + version, "labels": map[string]string{"v": version}}
		subset.seldom(t, "trafficPolicy", func() any { return trafficPolicy(t) })
		subsets = append(subsets, subset)
	}
	out["subsets"] = subsets
	out.seldom(t, "workloadSelector", func() any { return spec{"matchLabels": labels(t, "callers")} })
	return out
}

func trafficPolicy(t *rapid.T) spec {
	out := spec{}
	out.often(t, "loadBalancer", func() any {
		return loadBalancer(t)
	})
	out.often(t, "connectionPool", func() any {
		return connectionPool(t)
	})
	out.seldom(t, "outlierDetection", func() any {
		out := spec{"consecutive5xxErrors": 7, "interval": seconds(t), "baseEjectionTime": "30s", "maxEjectionPercent": 50}
		out.seldom(t, "splitExternalLocalOriginErrors", func() any {
			out["consecutiveLocalOriginFailures"] = 3
			return true
		})
		return out
	})
	out.seldom(t, "tls", func() any { return clientTLS(t) })
	return out
}

func loadBalancer(t *rapid.T) spec {
	out := picker(t)
	out.seldom(t, "localityLbSetting", func() any { return localities(t) })
	return out
}

func localities(t *rapid.T) spec {
	out := spec{}
	switch pick(t, "way", "distribute", "failover", "labels", "off") {
	case "distribute":
		out["distribute"] = []spec{{"from": pick(t, "from", "*", "region/*", "region/zone"), "to": map[string]int{"region/zone": 70, "other/*": 30}}}
	case "failover":
		out["failover"] = []spec{{"from": "region", "to": pick(t, "to", "other", "third")}}
	case "labels":
		out["failoverPriority"] = some(t, "labels", 3, "v", "x=y", "topology.kubernetes.io/zone")
		out.seldom(t, "failover", func() any { return []spec{{"from": "region", "to": "other"}} })
	case "off":
		out["enabled"] = false
	}
	return out
}

func picker(t *rapid.T) spec {
	if seldom(t, "hashes") {
		return spec{"consistentHash": consistentHash(t)}
	}
	out := spec{"simple": pick(t, "balancer", "ROUND_ROBIN", "LEAST_REQUEST", "RANDOM", "PASSTHROUGH")}
	out.seldom(t, "warmup", func() any { return spec{"duration": "60s", "minimumPercent": 20, "aggression": 1.5} })
	return out
}

func consistentHash(t *rapid.T) spec {
	out := pick(t, "key", spec{"httpHeaderName": "x-user"}, spec{"httpQueryParameterName": "q"}, spec{"useSourceIp": true},
		spec{"httpCookie": spec{"name": "user", "ttl": "0s"}}, spec{"httpCookie": spec{"name": "user", "path": "/"}})
	out = maps.Clone(out)
	switch pick(t, "table", "", "ring", "maglev") {
	case "ring":
		out["ringHash"] = spec{"minimumRingSize": 512}
	case "maglev":
		out["maglev"] = spec{"tableSize": 251}
	}
	return out
}

func connectionPool(t *rapid.T) spec {
	tcp := spec{"maxConnections": rapid.IntRange(1, 9).Draw(t, "connections"), "connectTimeout": seconds(t)}
	tcp.seldom(t, "idleTimeout", func() any { return pick(t, "idle", "0s", "90s") })
	tcp.seldom(t, "maxConnectionDuration", func() any { return "1h" })
	tcp.seldom(t, "tcpKeepalive", func() any { return spec{"time": seconds(t), "probes": 3} })
	http := spec{"http1MaxPendingRequests": 5, "maxRequestsPerConnection": rapid.IntRange(0, 9).Draw(t, "requests")}
	http.seldom(t, "idleTimeout", func() any { return "90s" })
	http.seldom(t, "h2UpgradePolicy", func() any { return "UPGRADE" })
	http.seldom(t, "maxConcurrentStreams", func() any { return 100 })
	http.seldom(t, "http2KeepAlive", func() any { return spec{"interval": "1s", "timeout": "1s"} })
	if http["h2UpgradePolicy"] == nil {
		http.seldom(t, "useClientProtocol", func() any { return true })
	}
	return spec{"tcp": tcp, "http": http}
}

func clientTLS(t *rapid.T) spec {
	switch mode := pick(t, "mode", "DISABLE", "SIMPLE", "MUTUAL", "ISTIO_MUTUAL"); mode {
	case "SIMPLE":
		if seldom(t, "unverified") {
			return spec{"mode": mode, "insecureSkipVerify": true}
		}
		out := spec{"mode": mode, "caCertificates": pick(t, "authorities", "", "/ca.pem")}
		out.seldom(t, "sni", func() any { return "c.example.com" })
		out.seldom(t, "subjectAltNames", func() any { return []string{"b", "a"} })
		out.seldom(t, "caCrl", func() any { return "/ca.crl" })
		return out
	case "MUTUAL":
		if seldom(t, "by secret") {
			return spec{"mode": mode, "credentialName": "one"}
		}
		return spec{"mode": mode, "clientCertificate": "/c.pem", "privateKey": "/k.pem", "caCertificates": "/ca.pem"}
	default:
		return spec{"mode": mode}
	}
}
