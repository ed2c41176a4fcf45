package schema

import (
	"strings"
	"testing"
)

// TestPortSettingsWithoutTLS checks the warnings of settings of a port that turn off the TLS
// of a policy above them, and only of those.
func TestPortSettingsWithoutTLS(t *testing.T) {
	const (
		tls     = "tls: {mode: SIMPLE, insecureSkipVerify: true}"
		off     = "tls: {mode: DISABLE}"
		ports   = "portLevelSettings: [{port: {number: 80}, loadBalancer: {simple: RANDOM}}]"
		tlsPort = "portLevelSettings: [{port: {number: 80}, loadBalancer: {simple: RANDOM}, " + tls + "}]"
		offPort = "portLevelSettings: [{port: {number: 80}, loadBalancer: {simple: RANDOM}, " + off + "}]"
	)
	ofHost := []string{"warning NotHonoured spec.trafficPolicy.portLevelSettings[0].tls"}
	ofSubset := []string{"warning NotHonoured spec.subsets[0].trafficPolicy.portLevelSettings[0].tls"}
	for _, c := range []struct {
		name, host, subset string
		want               []string
	}{
		{"TLS of the host", tls + ", " + ports, "", ofHost},
		{"TLS of the host, said off for the port", tls + ", " + offPort, "", nil},
		{"TLS of the host and the port", tls + ", " + tlsPort, "", nil},
		{"no TLS", ports, ports, nil},
		{"TLS is off", off + ", " + ports, "", nil},
		{"TLS of another port", "portLevelSettings: [{port: {number: 81}, " + tls + "}, {port: {number: 80}, loadBalancer: {simple: RANDOM}}]", ports, nil},
		{"TLS of the subset", "", tls + ", " + ports, ofSubset},
		{"TLS of the host, lost in a subset", tls, ports, ofSubset},
		{"TLS of the port of the host, lost in a subset", tlsPort, ports, ofSubset},
		{"TLS of the host, off for its port", tls + ", " + offPort, ports, nil},
		{"TLS of the host, off in the subset", tls, off + ", " + ports, nil},
		{"TLS of the host, and of the port of the subset", tls, tlsPort, nil},
	} {
		text := "host: a\n"
		if c.host != "" {
			text += "trafficPolicy: {" + c.host + "}\n"
		}
		if c.subset != "" {
			text += "subsets: [{name: s, trafficPolicy: {" + c.subset + "}}]\n"
		}
		testSpecs(t, "networking.istio.io/v1", "DestinationRule", []specCase{{c.name, text, c.want}})
	}
}

func TestDestinationRule(t *testing.T) {
	testSpecs(t, "networking.istio.io/v1", "DestinationRule", []specCase{
		{"the least", "host: a", nil},
		{"nothing", "{}", []string{"error FieldValueRequired spec.host"}},
		{"hosts of a domain", "host: '*.google.com'", nil},
		{"bad host", "host: 'a b'", []string{"error FieldValueInvalid spec.host"}},
		{"everything", `host: a
trafficPolicy:
  loadBalancer: {consistentHash: {httpCookie: {name: user, path: /, ttl: 0s, attributes: [{name: SameSite, value: Lax}]}, maglev: {tableSize: 65537}}, warmup: {duration: 1m, minimumPercent: 10, aggression: 1.5}}
  connectionPool:
    tcp: {maxConnections: 100, connectTimeout: 30ms, maxConnectionDuration: 1h, idleTimeout: 0s, tcpKeepalive: {probes: 3, time: 7200s, interval: 75s}}
    http: {http1MaxPendingRequests: 1, http2MaxRequests: 2, maxRequestsPerConnection: 3, maxRetries: 4, idleTimeout: 5s, h2UpgradePolicy: UPGRADE, maxConcurrentStreams: 6, http2KeepAlive: {interval: 1s, timeout: 1s}}
  outlierDetection: {consecutive5xxErrors: 0, consecutiveGatewayErrors: 5, splitExternalLocalOriginErrors: true, consecutiveLocalOriginFailures: 3, interval: 15.5s, baseEjectionTime: 1m, maxEjectionPercent: 100, minHealthPercent: 0, outlierDetectionHttpErrorCodes: [429]}
  tls: {mode: MUTUAL, clientCertificate: /a, privateKey: /b, caCertificates: /c, subjectAltNames: [d], sni: e.f}
  portLevelSettings: [{port: {number: 80}, loadBalancer: {simple: ROUND_ROBIN}}]
  tunnel: {protocol: POST, targetHost: a.b, targetPort: 443}
  retryBudget: {percent: 12.5, minRetryConcurrency: 3, budgetInterval: 0s}
subsets: [{name: v1, labels: {version: v1}, trafficPolicy: {proxyProtocol: {version: V2}}}, {name: all}]
exportTo: [.]
workloadSelector: {matchLabels: {app: b}}`, []string{"warning NotHonoured spec.trafficPolicy.portLevelSettings[0].tls"}},
		{"proto spelling", "host: a\ntraffic_policy: {load_balancer: {simple: 5}, outlier_detection: {consecutive_5xx_errors: 7}}", nil},
		{"subset twice", "host: a\nsubsets: [{name: v1}, {name: v1}]", []string{"error FieldValueDuplicate spec.subsets[1].name"}},
		{"bad subset", "host: a\nsubsets: [{labels: {a: '*'}}, {name: a.b}]", []string{
			"error FieldValueRequired spec.subsets[0].name", "error FieldValueInvalid spec.subsets[0].labels.a", "error FieldValueInvalid spec.subsets[1].name"}},
		{"selector without labels", "host: a\nworkloadSelector: {}", []string{"warning NotHonoured spec.workloadSelector"}},
		{"selector for all", "host: a\nworkloadSelector: {matchLabels: {a: b}}\nexportTo: ['*']", []string{"error FieldValueInvalid spec.exportTo"}},
		{"export to none", "host: a\nexportTo: ['~']", []string{"error FieldValueNotSupported spec.exportTo[0]"}},
	})
}

func TestTrafficPolicy(t *testing.T) {
	var cases []specCase
	for _, c := range []struct{ name, policy, want string }{
		{"nothing", "{}", "error FieldValueRequired spec.trafficPolicy"},
		{"nothing for a port", "{portLevelSettings: [{port: {number: 80}}]}", "error FieldValueRequired spec.trafficPolicy.portLevelSettings[0]"},
		{"no port", "{portLevelSettings: [{tls: {}}]}", "error FieldValueRequired spec.trafficPolicy.portLevelSettings[0].port"},
		{"port twice", "{portLevelSettings: [{port: {number: 80}, tls: {}}, {port: {number: 80}, tls: {}}]}", "warning NotHonoured spec.trafficPolicy.portLevelSettings[1]"},
		{"tunnel and proxy protocol", "{tunnel: {targetHost: a, targetPort: 1}, proxyProtocol: {}}", "error FieldValueForbidden spec.trafficPolicy.proxyProtocol"},
		{"tunnel by GET", "{tunnel: {protocol: GET, targetHost: a, targetPort: 1}}", "error FieldValueNotSupported spec.trafficPolicy.tunnel.protocol"},

		{"unknown balancer", "{loadBalancer: {simple: BEST}}", "error FieldValueNotSupported spec.trafficPolicy.loadBalancer.simple"},
		{"two balancers", "{loadBalancer: {simple: RANDOM, consistentHash: {useSourceIp: true}}}", "error FieldValueForbidden spec.trafficPolicy.loadBalancer.consistentHash"},
		{"two keys", "{loadBalancer: {consistentHash: {useSourceIp: true, httpHeaderName: a}}}", "error FieldValueForbidden spec.trafficPolicy.loadBalancer.consistentHash.useSourceIp"},
		{"no key", "{loadBalancer: {consistentHash: {}}}", "warning NotHonoured spec.trafficPolicy.loadBalancer.consistentHash"},
		{"table of no prime", "{loadBalancer: {consistentHash: {useSourceIp: true, maglev: {tableSize: 65536}}}}", "error FieldValueInvalid spec.trafficPolicy.loadBalancer.consistentHash.maglev.tableSize"},
		{"ring of too many points", "{loadBalancer: {consistentHash: {useSourceIp: true, minimumRingSize: 8388609}}}", "error FieldValueInvalid spec.trafficPolicy.loadBalancer.consistentHash.minimumRingSize"},
		{"new ring of too many points", "{loadBalancer: {consistentHash: {useSourceIp: true, ringHash: {minimumRingSize: 99999999}}}}", "error FieldValueInvalid spec.trafficPolicy.loadBalancer.consistentHash.ringHash.minimumRingSize"},
		{"ring of many points", "{loadBalancer: {consistentHash: {useSourceIp: true, ringHash: {minimumRingSize: 8388608}}}}", ""},
		{"cookie of two words", "{loadBalancer: {consistentHash: {httpCookie: {name: 'a b', ttl: 0s}}}}", "error FieldValueInvalid spec.trafficPolicy.loadBalancer.consistentHash.httpCookie.name"},
		{"table without size", "{loadBalancer: {consistentHash: {useSourceIp: true, maglev: {}}}}", "error FieldValueInvalid spec.trafficPolicy.loadBalancer.consistentHash.maglev.tableSize"},
		{"cookie attribute twice", "{loadBalancer: {consistentHash: {httpCookie: {name: a, attributes: [{name: b}, {name: c}, {name: b}]}}}}", "error FieldValueDuplicate spec.trafficPolicy.loadBalancer.consistentHash.httpCookie.attributes[2].name"},
		{"half of a keep-alive", "{connectionPool: {http: {http2KeepAlive: {interval: 1s}}}}", "error FieldValueRequired spec.trafficPolicy.connectionPool.http.http2KeepAlive.timeout"},
		{"two warmups", "{loadBalancer: {simple: RANDOM, warmupDurationSecs: 1s, warmup: {duration: 1s}}}", "warning NotHonoured spec.trafficPolicy.loadBalancer.warmupDurationSecs"},

		{"empty pool", "{connectionPool: {}}", "error FieldValueRequired spec.trafficPolicy.connectionPool"},
		{"negative limit", "{connectionPool: {tcp: {maxConnections: -1}}}", "error FieldValueInvalid spec.trafficPolicy.connectionPool.tcp.maxConnections"},
		{"two protocols", "{connectionPool: {http: {h2UpgradePolicy: UPGRADE, useClientProtocol: true}}}", "error FieldValueForbidden spec.trafficPolicy.connectionPool.http.useClientProtocol"},
		{"time without unit", "{connectionPool: {tcp: {connectTimeout: '30'}}}", "error FieldValueInvalid spec.trafficPolicy.connectionPool.tcp.connectTimeout"},
		{"local failures not counted", "{outlierDetection: {consecutiveLocalOriginFailures: 1}}", "error FieldValueInvalid spec.trafficPolicy.outlierDetection.consecutiveLocalOriginFailures"},
		{"old errors", "{outlierDetection: {consecutiveErrors: 1}}", ""},
		{"old errors and new", "{outlierDetection: {consecutiveErrors: 1, consecutive5xxErrors: 2}}", "warning NotHonoured spec.trafficPolicy.outlierDetection.consecutiveErrors"},
		{"too many percent", "{outlierDetection: {maxEjectionPercent: 101}}", "error FieldValueInvalid spec.trafficPolicy.outlierDetection.maxEjectionPercent"},

		{"the longest server name", "{tls: {mode: SIMPLE, sni: " + strings.Repeat("a", 255) + "}}", ""},
		{"a longer server name", "{tls: {mode: SIMPLE, sni: " + strings.Repeat("a", 256) + "}}", "error FieldValueInvalid spec.trafficPolicy.tls.sni"},
		{"NUL in a server name", `{tls: {mode: SIMPLE, sni: "a\0"}}`, "error FieldValueInvalid spec.trafficPolicy.tls.sni"},
		{"the longest duration", "{connectionPool: {tcp: {connectTimeout: 9223372035.999s}}}", ""},
		{"a longer duration", "{connectionPool: {tcp: {connectTimeout: 9223372036s}}}", "error FieldValueInvalid spec.trafficPolicy.connectionPool.tcp.connectTimeout"},
		{"simple TLS", "{tls: {mode: SIMPLE, insecureSkipVerify: true}}", ""},
		{"mutual TLS by secret", "{tls: {mode: MUTUAL, credentialName: a}}", ""},
		{"mutual TLS without key", "{tls: {mode: MUTUAL, clientCertificate: /a}}", "error FieldValueRequired spec.trafficPolicy.tls.privateKey"},
		{"secret and file", "{tls: {mode: SIMPLE, credentialName: a, caCertificates: /a}}", "error FieldValueForbidden spec.trafficPolicy.tls.caCertificates"},
		{"checked and not", "{tls: {mode: SIMPLE, subjectAltNames: [a], insecureSkipVerify: true}}", "error FieldValueForbidden spec.trafficPolicy.tls.subjectAltNames"},
		{"secret and not checked", "{tls: {mode: SIMPLE, credentialName: a, insecureSkipVerify: true}}", "error FieldValueForbidden spec.trafficPolicy.tls.credentialName"},
		{"file with TLS of the mesh", "{tls: {mode: ISTIO_MUTUAL, clientCertificate: /a}}", "warning NotHonoured spec.trafficPolicy.tls.mode"},

		{"shares", "{loadBalancer: {localityLbSetting: {distribute: [{from: a/b/*, to: {a/b/c: 20, 'd/*': 80}}]}}}", ""},
		{"shares of 90", "{loadBalancer: {localityLbSetting: {distribute: [{from: a, to: {a: 90}}]}}}", "error FieldValueInvalid spec.trafficPolicy.loadBalancer.localityLbSetting.distribute[0].to"},
		{"share of 0", "{loadBalancer: {localityLbSetting: {distribute: [{from: a, to: {a: 100, b: 0}}]}}}", "error FieldValueInvalid spec.trafficPolicy.loadBalancer.localityLbSetting.distribute[0].to.b"},
		{"star in the middle", "{loadBalancer: {localityLbSetting: {distribute: [{from: a/*/c, to: {a: 100}}]}}}", "error FieldValueInvalid spec.trafficPolicy.loadBalancer.localityLbSetting.distribute[0].from"},
		{"overlapping callers", "{loadBalancer: {localityLbSetting: {distribute: [{from: a/b, to: {a: 100}}, {from: 'a/*', to: {b: 100}}]}}}", "error FieldValueDuplicate spec.trafficPolicy.loadBalancer.localityLbSetting.distribute[1].from"},
		{"failover to itself", "{outlierDetection: {}, loadBalancer: {localityLbSetting: {failover: [{from: a, to: a}]}}}", "error FieldValueInvalid spec.trafficPolicy.loadBalancer.localityLbSetting.failover[0].to"},
		{"failover of a zone", "{outlierDetection: {}, loadBalancer: {localityLbSetting: {failover: [{from: a/b, to: c}]}}}", "error FieldValueInvalid spec.trafficPolicy.loadBalancer.localityLbSetting.failover[0].from"},
		{"failover without detection", "{loadBalancer: {localityLbSetting: {failover: [{from: a, to: b}]}}}", "warning NotHonoured spec.trafficPolicy.loadBalancer.localityLbSetting"},
		{"shares and failover", "{outlierDetection: {}, loadBalancer: {localityLbSetting: {distribute: [{from: a, to: {a: 100}}], failover: [{from: a, to: b}]}}}", "error FieldValueForbidden spec.trafficPolicy.loadBalancer.localityLbSetting.failover"},
		{"localities and zones", "{loadBalancer: {localityLbSetting: {}, zoneAwareLbSetting: {minClusterSize: 1}}}", "error FieldValueForbidden spec.trafficPolicy.loadBalancer.zoneAwareLbSetting"},
	} {
		var want []string
		if c.want != "" {
			want = []string{c.want}
		}
		cases = append(cases, specCase{c.name, "host: a\ntrafficPolicy: " + c.policy, want})
	}
	testSpecs(t, "networking.istio.io/v1", "DestinationRule", cases)
}
