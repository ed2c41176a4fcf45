package compile_test

// effectWorld is what the examples of TestEffects stand in: two services, one
// with two versions, and a way in.
const effectWorld = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web}
spec:
  hosts: [web.default.svc.cluster.local]
  addresses: [10.2.0.1]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}, {number: 9080, name: tcp, protocol: TCP}, {number: 443, name: https, protocol: HTTPS}]
  endpoints:
  - {address: 10.1.0.1, labels: {version: v1, app: web}}
  - {address: 10.1.0.2, labels: {version: v2, app: web}}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: back}
spec:
  hosts: [back.default.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}, {number: 9080, name: tcp, protocol: TCP}]
  endpoints: [{address: 10.1.0.3, labels: {version: v1}}, {address: 10.1.0.4, labels: {version: v2}}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: back}
spec:
  host: back.default.svc.cluster.local
  subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: picked}
spec:
  hosts: [picked.default.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  workloadSelector: {labels: {version: v2}}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: new}
spec:
  host: new.default.svc.cluster.local
  trafficPolicy: {tls: {mode: SIMPLE, caCertificates: /a}}
  subsets: [{name: v2, labels: {version: v2}}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: verified}
spec:
  host: verified.example.com
  trafficPolicy: {tls: {mode: SIMPLE, caCertificates: /a}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: new}
spec:
  hosts: [new.default.svc.cluster.local]
  http:
  - {match: [{uri: {prefix: /v2}}], route: [{destination: {host: new.default.svc.cluster.local, subset: v2}}]}
  - {route: [{destination: {host: new.default.svc.cluster.local}}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: other}
spec: {http: [{route: [{destination: {host: back.default.svc.cluster.local}}]}]}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  servers: [{port: {number: 8081, name: http, protocol: HTTP}, hosts: ['*']}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: shop}
spec:
  hosts: [open.example.com]
  gateways: [edge, x]
  http:
  - {match: [{uri: {prefix: /web}}], route: [{destination: {host: web.default.svc.cluster.local, subset: v1, port: {number: 80}}}]}
  - {route: [{destination: {host: back.default.svc.cluster.local, port: {number: 80}}}]}
---
apiVersion: config.istio.io/v1alpha2
kind: RouteRule
metadata: {name: rival}
spec:
  destination: {name: web}
  precedence: 1
  match: {request: {headers: {uri: {exact: /rival}}}}
  route: [{labels: {version: v2}}]
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: selected}
spec: {address: 10.1.0.7, labels: {x: v2, version: v2}, ports: {http: 8080}}
`

// effectExamples are specs in which fields can show what they do: what one
// field needs of the others is there. The names are those of effectWorld.
var effectExamples = map[string]string{
	"Secret": `
caCertificates: |
  -----BEGIN CERTIFICATE-----
  MIIBfzCCASWgAwIBAgIUPuNA16KYKkFdyQu5ihWvR4m48bgwCgYIKoZIzj0EAwIw
  FDESMBAGA1UEAwwJYXV0aG9yaXR5MCAXDTI2MTEyMjEzNTIwNloYDzIxMjYxMDI5
  MTM1MjA2WjAUMRIwEAYDVQQDDAlhdXRob3JpdHkwWTATBgcqhkjOPQIBBggqhkjO
  PQMBBwNCAARLsJJH3MsZ0TUnAZ0lodtpOfhBhSepK4616W/LYSO2TZoUL6q33L+4
  oh7n5YVaKzaZCHCWjVdNU0HbWn0rS6PEo1MwUTAdBgNVHQ4EFgQUtBbsc0GG+cWy
  pfvvoLE5eeK14F0wHwYDVR0jBBgwFoAUtBbsc0GG+cWypfvvoLE5eeK14F0wDwYD
  VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiEAmSux6jSY/BCmppPpowME
  X1oCj1LQGnFI1k0HqdfcW8MCIDI5+lYYGfDq715B/FJa3RbPo1o9/iUJzQWm6v5e
  SWC2
  -----END CERTIFICATE-----
`,
	"VirtualService": `
hosts: [web.default.svc.cluster.local]
http:
- match: [{uri: {prefix: /a}}]
  route: [{destination: {host: back.default.svc.cluster.local, subset: v1}, weight: 1}, {destination: {host: web.default.svc.cluster.local, port: {number: 80}}, weight: 1}]
  retries: {attempts: 3}
  mirror: {host: web.default.svc.cluster.local, port: {number: 80}}
  fault: {delay: {fixedDelay: 3s, percentage: {value: 30}}, abort: {httpStatus: 500, percentage: {value: 30}}}
  corsPolicy: {allowOrigins: [{exact: a.b}], allowMethods: [GET]}
  rewrite: {authority: a.b}
- route: [{destination: {host: web.default.svc.cluster.local, port: {number: 80}}}]
tcp:
- match: [{port: 9080}]
  route: [{destination: {host: back.default.svc.cluster.local, subset: v1, port: {number: 9080}}, weight: 1}, {destination: {host: back.default.svc.cluster.local, subset: v2, port: {number: 9080}}, weight: 1}]
tls:
- match: [{port: 443, sniHosts: [web.default.svc.cluster.local]}]
  route: [{destination: {host: back.default.svc.cluster.local, subset: v1, port: {number: 9080}}, weight: 1}, {destination: {host: back.default.svc.cluster.local, subset: v2, port: {number: 9080}}, weight: 1}]
---
hosts: [web.default.svc.cluster.local]
http:
- match: [{uri: {prefix: /a}}]
  redirect: {uri: /b}
  mirrors: [{destination: {host: web.default.svc.cluster.local, port: {number: 80}}}]
---
hosts: [web.default.svc.cluster.local]
http:
- match: [{uri: {prefix: /a}}]
  redirect: {authority: a.b}
---
hosts: [web.default.svc.cluster.local]
http:
- match: [{uri: {prefix: /a}}]
  redirect: {scheme: https}
---
hosts: [web.default.svc.cluster.local]
http:
- match: [{uri: {prefix: /a}}]
  route: [{destination: {host: web.default.svc.cluster.local, port: {number: 80}}}]
  mirrors: [{destination: {host: back.default.svc.cluster.local, port: {number: 80}}, percentage: {value: 30}}]
  fault: {abort: {grpcStatus: ABORTED, percentage: {value: 30}}}
---
hosts: [web.default.svc.cluster.local]
http:
- match: [{uri: {prefix: /a}}]
  directResponse: {status: 403}
---
hosts: [shop.example.com]
gateways: [edge]
http:
- match: [{uri: {prefix: /a}}]
  route: [{destination: {host: web.default.svc.cluster.local, port: {number: 80}}}]
  rewrite: {uriRegexRewrite: {match: a, rewrite: b}}
  mirror: {host: web.default.svc.cluster.local, port: {number: 80}}
  mirrorPercentage: {value: 100}
---
hosts: [web.default.svc.cluster.local]
http:
- match: [{}]
  route: [{destination: {host: web.default.svc.cluster.local, port: {number: 80}}}]
  fault: {delay: {fixedDelay: 3s}, abort: {httpStatus: 500}}
---
hosts: [web.default.svc.cluster.local]
http:
- match: [{uri: {prefix: /a}}]
  delegate: {name: other}
`,
	"DestinationRule": `
host: web.default.svc.cluster.local
trafficPolicy:
  loadBalancer: {simple: RANDOM}
  connectionPool: {tcp: {maxConnections: 5}, http: {maxRetries: 4}}
  outlierDetection: {consecutive5xxErrors: 4}
  portLevelSettings: [{port: {number: 80}, connectionPool: {tcp: {maxConnections: 6}}, outlierDetection: {consecutive5xxErrors: 4}}]
subsets:
- name: v1
  labels: {version: v1}
  trafficPolicy:
    outlierDetection: {consecutive5xxErrors: 4}
    portLevelSettings: [{port: {number: 80}, connectionPool: {tcp: {maxConnections: 6}}, outlierDetection: {consecutive5xxErrors: 4}}]
---
host: web.default.svc.cluster.local
trafficPolicy:
  tls: {mode: MUTUAL, clientCertificate: /c, privateKey: /k, caCertificates: /a, subjectAltNames: [a.b]}
subsets:
- name: v1
  labels: {version: v1}
  trafficPolicy:
    tls: {mode: MUTUAL, clientCertificate: /c, privateKey: /k, caCertificates: /a, subjectAltNames: [a.b]}
---
host: web.default.svc.cluster.local
trafficPolicy:
  portLevelSettings: [{port: {number: 80}, tls: {mode: MUTUAL, clientCertificate: /c, privateKey: /k, caCertificates: /a, subjectAltNames: [a.b]}}]
subsets:
- name: v1
  labels: {version: v1}
  trafficPolicy:
    portLevelSettings: [{port: {number: 80}, tls: {mode: MUTUAL, clientCertificate: /c, privateKey: /k, caCertificates: /a, subjectAltNames: [a.b]}}]
---
host: web.default.svc.cluster.local
trafficPolicy:
  loadBalancer: {consistentHash: {httpCookie: {name: a, path: /, ttl: 3s, attributes: [{name: b}]}}}
subsets:
- {name: v1, labels: {version: v1}, trafficPolicy: {loadBalancer: {consistentHash: {httpHeaderName: a}}}}
---
host: web.default.svc.cluster.local
trafficPolicy:
  portLevelSettings: [{port: {number: 80}, loadBalancer: {consistentHash: {httpCookie: {name: a, path: /, ttl: 3s, attributes: [{name: b}]}}}}]
subsets:
- {name: v1, labels: {version: v1}, trafficPolicy: {loadBalancer: {consistentHash: {httpCookie: {name: a, path: /, ttl: 3s, attributes: [{name: b}]}}}}}
---
host: web.default.svc.cluster.local
subsets:
- name: v1
  labels: {version: v1}
  trafficPolicy:
    portLevelSettings: [{port: {number: 80}, loadBalancer: {consistentHash: {httpCookie: {name: a, path: /, ttl: 3s, attributes: [{name: b}]}}}}]
---
host: web.default.svc.cluster.local
trafficPolicy: {tunnel: {targetHost: a.b, targetPort: 443}}
subsets: [{name: v1, labels: {version: v1}, trafficPolicy: {tunnel: {targetHost: a.b, targetPort: 443}}}]
---
host: web.default.svc.cluster.local
trafficPolicy: {loadBalancer: {simple: ROUND_ROBIN, warmup: {duration: 3s}}, connectionPool: {http: {http2KeepAlive: {interval: 3s, timeout: 3s}}}}
subsets: [{name: v1, labels: {version: v1}, trafficPolicy: {loadBalancer: {simple: ROUND_ROBIN, warmup: {duration: 3s}}}}]
---
host: web.default.svc.cluster.local
trafficPolicy: {portLevelSettings: [{port: {number: 80}, loadBalancer: {simple: ROUND_ROBIN, warmup: {duration: 3s}}}]}
subsets: [{name: v1, labels: {version: v1}, trafficPolicy: {portLevelSettings: [{port: {number: 80}, loadBalancer: {simple: ROUND_ROBIN, warmup: {duration: 3s}}}]}}]
---
host: web.default.svc.cluster.local
trafficPolicy: {outlierDetection: {consecutive5xxErrors: 4}, loadBalancer: {localityLbSetting: {distribute: [{from: a/b, to: {c/d: 100}}]}}}
---
host: web.default.svc.cluster.local
trafficPolicy: {connectionPool: {http: {h2UpgradePolicy: UPGRADE, http2KeepAlive: {interval: 3s, timeout: 3s}}}}
subsets: [{name: v1, labels: {version: v1}, trafficPolicy: {connectionPool: {http: {h2UpgradePolicy: UPGRADE, http2KeepAlive: {interval: 3s, timeout: 3s}}}}}]
---
host: web.default.svc.cluster.local
trafficPolicy: {portLevelSettings: [{port: {number: 80}, connectionPool: {http: {h2UpgradePolicy: UPGRADE, http2KeepAlive: {interval: 3s, timeout: 3s}}}}]}
subsets: [{name: v1, labels: {version: v1}, trafficPolicy: {portLevelSettings: [{port: {number: 80}, connectionPool: {http: {h2UpgradePolicy: UPGRADE, http2KeepAlive: {interval: 3s, timeout: 3s}}}}]}}]
---
host: web.default.svc.cluster.local
trafficPolicy: {portLevelSettings: [{port: {number: 9080}, connectionPool: {tcp: {maxConnections: 6}}}]}
---
host: web.default.svc.cluster.local
trafficPolicy: {outlierDetection: {}, connectionPool: {tcp: {}}}
---
host: web.default.svc.cluster.local
trafficPolicy: {tls: {mode: SIMPLE}}
subsets: [{name: v1, labels: {version: v1}, trafficPolicy: {tls: {mode: SIMPLE}}}]
---
host: web.default.svc.cluster.local
trafficPolicy: {portLevelSettings: [{port: {number: 80}, tls: {mode: SIMPLE}}]}
subsets: [{name: v1, labels: {version: v1}, trafficPolicy: {portLevelSettings: [{port: {number: 80}, tls: {mode: SIMPLE}}]}}]
`,
	"Gateway": `
servers: [{port: {number: 8443, name: https, protocol: HTTPS}, hosts: ['*'], tls: {mode: MUTUAL, serverCertificate: /c, privateKey: /k, caCertificates: /a}}]
---
servers: [{port: {number: 8082, name: http, protocol: HTTP}, hosts: ['*']}]
---
servers: [{port: {number: 8443, name: https, protocol: HTTPS}, hosts: ['*'], tls: {mode: SIMPLE, credentialNames: [a]}}]
---
servers: [{port: {number: 8443, name: https, protocol: HTTPS}, hosts: ['*'], tls: {mode: SIMPLE, credentialName: a}}]
---
servers: [{port: {number: 8443, name: https, protocol: HTTPS}, hosts: ['*'], tls: {mode: SIMPLE, tlsCertificates: [{serverCertificate: /c, privateKey: /k}]}}]
---
servers: [{port: {number: 8080, name: http, protocol: HTTP}, hosts: ['*'], tls: {httpsRedirect: false}}]
---
servers: [{port: {number: 8443, name: https, protocol: HTTPS}, hosts: ['*'], tls: {mode: SIMPLE, serverCertificate: /c, privateKey: /k}}]
`,
	"ServiceEntry": `
hosts: [new.default.svc.cluster.local]
location: MESH_INTERNAL
resolution: STATIC
ports: [{number: 80, name: http, protocol: HTTP}]
endpoints: [{address: 10.1.0.5}]
---
hosts: [new.default.svc.cluster.local]
location: MESH_INTERNAL
resolution: STATIC
ports: [{number: 80, name: http, protocol: HTTP}]
workloadSelector: {labels: {version: v2}}
---
hosts: [verified.example.com]
resolution: DNS
ports: [{number: 443, name: https, protocol: HTTPS}]
---
hosts: [new.example.com]
resolution: DNS
ports: [{number: 80, name: http, protocol: HTTP}]
endpoints: [{address: a.example.com}, {address: b.example.com}]
---
hosts: [new.example.com]
addresses: [10.3.0.1]
ports: [{number: 90, name: tcp, protocol: TCP}]
`,
	"WorkloadEntry": `
address: 10.1.0.6
labels: {version: v2}
`,
	"RouteRule": `
destination: {name: web}
match: {request: {headers: {uri: {prefix: /a}}}}
route: [{labels: {version: v1}, weight: 50}, {labels: {version: v2}, weight: 50}]
httpReqRetries: {simpleRetry: {attempts: 3, perTryTimeout: 1s}}
httpReqTimeout: {simpleTimeout: {timeout: 3s}}
httpFault: {delay: {percent: 30, fixedDelay: 3s}, abort: {percent: 30, httpStatus: 500}}
mirror: {name: back}
corsPolicy: {allowOrigin: [a.b]}
rewrite: {authority: a.b}
---
destination: {name: web}
route: [{destination: {name: back, namespace: default}, labels: {version: v2}}]
mirror: {name: back, namespace: default}
httpFault: {abort: {percent: 30, httpStatus: 500}}
---
destination: {service: web.default.svc.cluster.local}
---
destination: {name: web}
redirect: {uri: /b}
---
destination: {name: web}
match: {source: {name: web}}
route: [{labels: {version: v1}}]
---
destination: {name: web}
route: [{destination: {name: back}}]
`,
	"DestinationPolicy": `
destination: {name: web}
loadBalancing: {name: RANDOM}
circuitBreaker: {simpleCb: {maxConnections: 5, httpConsecutiveErrors: 3, sleepWindow: 3s, httpDetectionInterval: 3s}}
---
destination: {service: web.default.svc.cluster.local}
loadBalancing: {name: RANDOM}
---
destination: {name: web}
source: {name: web, namespace: default, domain: svc.cluster.local, labels: {app: web}}
loadBalancing: {name: RANDOM}
---
destination: {name: web, labels: {version: v1}}
source: {name: web}
circuitBreaker: {simpleCb: {maxConnections: 5, httpConsecutiveErrors: 3, sleepWindow: 3s, httpDetectionInterval: 3s}}
`,
	"RequestAuthentication": `
jwtRules:
- {issuer: "https://a.example", jwks: '{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}'}
- {issuer: "https://b.example", jwks: '{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}', fromHeaders: [{name: x-token}], outputPayloadToHeader: x-claims, outputClaimToHeaders: [{header: x-sub, claim: sub}]}
---
jwtRules: [{issuer: "https://a.example", jwksUri: "https://a.example/keys"}]
---
jwtRules: [{issuer: "https://a.example"}]
`,
	"AuthorizationPolicy": `
action: DENY
rules: [{from: [{source: {namespaces: [a]}}], to: [{operation: {paths: [/a]}}], when: [{key: source.ip, values: [10.9.0.1]}]}]
---
selector: {matchLabels: {app: web}}
rules: [{}]
---
rules: [{from: [{source: {serviceAccounts: [a]}}]}]
---
rules: [{when: [{key: destination.port, values: ["443"]}]}]
---
action: CUSTOM
provider: {name: x}
rules: [{}]
`,
	"PeerAuthentication": `
mtls: {mode: STRICT}
---
selector: {matchLabels: {app: web}}
mtls: {mode: STRICT}
portLevelMtls: {"80": {mode: DISABLE}}
`,
	"Sidecar": `
egress: [{hosts: [./*]}]
---
egress: [{port: {number: 80, protocol: HTTP, name: a}, captureMode: NONE, hosts: [./*]}, {hosts: ['*/*']}]
---
ingress: [{port: {number: 80, protocol: HTTP, name: a}}]
---
outboundTrafficPolicy: {mode: REGISTRY_ONLY}
---
workloadSelector: {labels: {app: web}}
egress: [{hosts: [./*]}]
`,
	"EgressRule": `
destination: {service: new.example.com}
ports: [{port: 80, protocol: http}]
`,
	"IngressRule": `
destination: {name: web}
destinationPort: 80
match: {request: {headers: {uri: {prefix: /a}}}}
---
destination: {name: web}
destinationPort: 80
match: {request: {headers: {authority: {exact: a.b}}}}
---
destination: {name: web}
destinationPortName: http
`,
}

// effectsBeyond are effects of fields that no valid example differs in alone.
var effectsBeyond = map[string]map[string]string{
	// PEM is not found by trying.
	// A port is a name of no other map.
	"PeerAuthentication": {"portLevelMtls.<name>.mode": "v3, v1"},
	// No text that is tried is a key set, or a URL of one beside another key set. Both fields of an entry are required.
	"RequestAuthentication": {
		"jwtRules[].jwks": "v3", "jwtRules[].jwksUri": "v3", "jwtRules[].fromHeaders[].prefix": "v3",
		"jwtRules[].outputClaimToHeaders[].header": "v3", "jwtRules[].outputClaimToHeaders[].claim": "v3",
		"jwtRules[].timeout": "v3", // By the keys that the server has.
	},
	"Secret":    {"certificate": "v3", "privateKey": "v3", "caCertificates": "v3"},
	"RouteRule": {"route[].weight": "v3, v1"}, // All weights are 100 together.
	// Where the mesh settings have gateways.
	"ServiceEntry":  {"endpoints[].network": "v3, v1"},
	"WorkloadEntry": {"network": "v3, v1"},
	// Setting one without attempts ends all retries, and an origin in one way ends
	// the other.
	"VirtualService": {
		"tls[].match[].sniHosts":                  "v3", // They are among the hosts, which change with them.
		"http[].delegate.namespace":               "v3, v1",
		"http[].retries.backoff":                  "v3",
		"http[].retries.retryIgnorePreviousHosts": "v3",
		"http[].corsPolicy.allowOrigins[].prefix": "v3",
		"http[].corsPolicy.allowOrigins[].regex":  "v3",
		"http[].corsPolicy.unmatchedPreflights":   "v3",
	},
	// v1 closes the server, and hashes are of a length that no text here has.
	"Gateway": {
		"servers[].tls.caCrl":                 "v3",
		"servers[].tls.verifyCertificateHash": "v3",
		"servers[].tls.verifyCertificateSpki": "v3",
		"servers[].tls.minProtocolVersion":    "v3",
		"servers[].tls.maxProtocolVersion":    "v3",
	},
	// What v1 gets differs only as it is closed, as there is outlier detection or a hash, or is not,
	// localities matter with outlier detection alone, and no example sends connections of TCP to a subset.
	"DestinationRule": {
		"trafficPolicy.tls.caCrl":                                                                        "v3",
		"trafficPolicy.portLevelSettings[].tls.caCrl":                                                    "v3",
		"subsets[].trafficPolicy.tls.caCrl":                                                              "v3",
		"subsets[].trafficPolicy.portLevelSettings[].tls.caCrl":                                          "v3",
		"trafficPolicy.loadBalancer.localityLbSetting.enabled":                                           "v3",
		"trafficPolicy.loadBalancer.localityLbSetting.distribute[].from":                                 "v3",
		"trafficPolicy.loadBalancer.localityLbSetting.distribute[].to":                                   "v3",
		"trafficPolicy.loadBalancer.localityLbSetting.failover[].from":                                   "v3",
		"trafficPolicy.loadBalancer.localityLbSetting.failover[].to":                                     "v3",
		"trafficPolicy.loadBalancer.localityLbSetting.failoverPriority":                                  "v3",
		"trafficPolicy.portLevelSettings[].loadBalancer.localityLbSetting.enabled":                       "v3",
		"trafficPolicy.portLevelSettings[].loadBalancer.localityLbSetting.distribute[].from":             "v3",
		"trafficPolicy.portLevelSettings[].loadBalancer.localityLbSetting.distribute[].to":               "v3",
		"trafficPolicy.portLevelSettings[].loadBalancer.localityLbSetting.failover[].from":               "v3",
		"trafficPolicy.portLevelSettings[].loadBalancer.localityLbSetting.failover[].to":                 "v3",
		"trafficPolicy.portLevelSettings[].loadBalancer.localityLbSetting.failoverPriority":              "v3",
		"subsets[].trafficPolicy.loadBalancer.localityLbSetting.enabled":                                 "v3",
		"subsets[].trafficPolicy.loadBalancer.localityLbSetting.distribute[].from":                       "v3",
		"subsets[].trafficPolicy.loadBalancer.localityLbSetting.distribute[].to":                         "v3",
		"subsets[].trafficPolicy.loadBalancer.localityLbSetting.failover[].from":                         "v3",
		"subsets[].trafficPolicy.loadBalancer.localityLbSetting.failover[].to":                           "v3",
		"subsets[].trafficPolicy.loadBalancer.localityLbSetting.failoverPriority":                        "v3",
		"subsets[].trafficPolicy.portLevelSettings[].loadBalancer.localityLbSetting.enabled":             "v3",
		"subsets[].trafficPolicy.portLevelSettings[].loadBalancer.localityLbSetting.distribute[].from":   "v3",
		"subsets[].trafficPolicy.portLevelSettings[].loadBalancer.localityLbSetting.distribute[].to":     "v3",
		"subsets[].trafficPolicy.portLevelSettings[].loadBalancer.localityLbSetting.failover[].from":     "v3",
		"subsets[].trafficPolicy.portLevelSettings[].loadBalancer.localityLbSetting.failover[].to":       "v3",
		"subsets[].trafficPolicy.portLevelSettings[].loadBalancer.localityLbSetting.failoverPriority":    "v3",
		"trafficPolicy.outlierDetection.consecutiveLocalOriginFailures":                                  "v3",
		"trafficPolicy.portLevelSettings[].outlierDetection.consecutiveLocalOriginFailures":              "v3",
		"subsets[].trafficPolicy.outlierDetection.consecutiveLocalOriginFailures":                        "v3",
		"subsets[].trafficPolicy.connectionPool.tcp.idleTimeout":                                         "v3",
		"subsets[].trafficPolicy.portLevelSettings[].outlierDetection.consecutiveLocalOriginFailures":    "v3",
		"subsets[].trafficPolicy.portLevelSettings[].connectionPool.tcp.idleTimeout":                     "v3",
		"trafficPolicy.loadBalancer.consistentHash.httpCookie.name":                                      "v3",
		"trafficPolicy.loadBalancer.consistentHash.httpQueryParameterName":                               "v3",
		"trafficPolicy.loadBalancer.consistentHash.useSourceIp":                                          "v3",
		"trafficPolicy.portLevelSettings[].loadBalancer.consistentHash.httpCookie.name":                  "v3",
		"trafficPolicy.portLevelSettings[].loadBalancer.consistentHash.httpQueryParameterName":           "v3",
		"trafficPolicy.portLevelSettings[].loadBalancer.consistentHash.useSourceIp":                      "v3",
		"subsets[].trafficPolicy.loadBalancer.consistentHash.httpCookie.name":                            "v3",
		"subsets[].trafficPolicy.loadBalancer.consistentHash.httpQueryParameterName":                     "v3",
		"subsets[].trafficPolicy.loadBalancer.consistentHash.useSourceIp":                                "v3",
		"subsets[].trafficPolicy.portLevelSettings[].loadBalancer.consistentHash.httpCookie.name":        "v3",
		"subsets[].trafficPolicy.portLevelSettings[].loadBalancer.consistentHash.httpQueryParameterName": "v3",
		"subsets[].trafficPolicy.portLevelSettings[].loadBalancer.consistentHash.useSourceIp":            "v3",
		"subsets[].trafficPolicy.portLevelSettings[].port.number":                                        "v3, v1",
		"trafficPolicy.outlierDetection.minHealthPercent":                                                "v3",
		"trafficPolicy.portLevelSettings[].outlierDetection.minHealthPercent":                            "v3",
		"subsets[].trafficPolicy.outlierDetection.minHealthPercent":                                      "v3",
		"subsets[].trafficPolicy.portLevelSettings[].outlierDetection.minHealthPercent":                  "v3",
	},
}
