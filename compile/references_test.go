package compile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

const related = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: reviews}
spec:
  hosts: [reviews.default.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 9080, name: http, protocol: HTTP}]
  workloadSelector: {labels: {app: reviews}}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: reviews-1}
spec: {address: 10.1.0.1, labels: {app: reviews, version: v1}}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: reviews-2}
spec: {address: 10.1.0.2, labels: {app: reviews, version: v2}}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: reviews}
spec:
  host: reviews
  subsets: [{name: v1, labels: {version: v1}}, {name: v3, labels: {version: v3}}]
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: shop, namespace: edge}
spec:
  selector: {istio: ingressgateway}
  servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: [shop.example.com]}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: shop}
spec:
  hosts: [shop.example.com]
  gateways: [edge/shop, edge/gone]
  http:
  - match: [{uri: {prefix: /a}}]
    delegate: {name: part}
  - match: [{uri: {prefix: /b}}]
    delegate: {name: gone}
  - mirror: {host: nowhere}
    route:
    - {destination: {host: reviews, subset: v1}, weight: 1}
    - {destination: {host: reviews, subset: v9}, weight: 1}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: part}
spec:
  http: [{route: [{destination: {host: reviews}}]}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: raw}
spec:
  hosts: ["*.default.svc.cluster.local"]
  tcp: [{route: [{destination: {host: reviews}}]}]
  tls: [{match: [{sniHosts: ["*.default.svc.cluster.local"]}], route: [{destination: {host: api.example}}]}]
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: some}
spec: {egress: [{hosts: ["./*", "~/x"]}]}
---
apiVersion: config.istio.io/v1alpha2
kind: RouteRule
metadata: {name: old}
spec:
  destination: {name: reviews}
  match: {source: {name: api, labels: {a: b}}}
  route: [{labels: {version: v2}, weight: 50}, {destination: {service: api.example}, weight: 50}]
---
apiVersion: config.istio.io/v1alpha2
kind: DestinationPolicy
metadata: {name: old}
spec:
  destination: {name: reviews, labels: {version: v1}}
  loadBalancing: {name: RANDOM}
---
apiVersion: config.istio.io/v1alpha2
kind: EgressRule
metadata: {name: api}
spec: {destination: {service: api.example}, ports: [{port: 80, protocol: http}]}
---
apiVersion: config.istio.io/v1alpha2
kind: IngressRule
metadata: {name: in}
spec: {destination: {name: reviews}, destinationPort: 9080}
`

const naming = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  servers:
  - {port: {number: 443, name: a, protocol: HTTPS}, hosts: [a.example], tls: {mode: SIMPLE, credentialName: front}}
  - {port: {number: 443, name: b, protocol: HTTPS}, hosts: [b.example], tls: {mode: MUTUAL, credentialName: front}}
  - {port: {number: 443, name: c, protocol: HTTPS}, hosts: [c.example], tls: {mode: MUTUAL, credentialNames: [gone], caCertCredentialName: roots}}
  - {port: {number: 443, name: d, protocol: HTTPS}, hosts: [d.example], tls: {mode: SIMPLE, credentialName: filed}}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: out, namespace: other}
spec:
  host: out.example
  trafficPolicy:
    tls: {mode: MUTUAL, credentialName: front}
    portLevelSettings: [{port: {number: 1}, tls: {mode: SIMPLE, credentialName: onproxies}}]
  subsets: [{name: v1, trafficPolicy: {tls: {mode: SIMPLE, credentialName: gone}}}]
`

// TestReferencesToSecrets: of a name that stands for files, there is no object that it
// refers to.
func TestReferencesToSecrets(t *testing.T) {
	settings := mesh.DefaultSettings()
	settings.SecretFiles = map[string]mesh.SecretFile{"default/filed": {CAFile: "/a"}}
	settings.ClientCertificates = map[string]mesh.Certificate{"onproxies": {CAFile: "/a"}}
	c := compile.NewCompiler()
	c.Advance(mesh.NewSnapshot(1, settings, append(objects(t, naming), object(t, "Secret", "front", spec{}), object(t, "Secret", "front-cacert", spec{}))))
	wantReferences(t, c, map[string][]string{
		"Gateway default/edge": {
			"spec.servers[0].tls.credentialName → Secret default/front: secret default/front",
			"spec.servers[1].tls.credentialName → Secret default/front: secret default/front",
			"spec.servers[1].tls.credentialName → Secret default/front-cacert: authorities default/front-cacert",
			"spec.servers[2].tls.credentialNames[0] ✗ Secret default/gone: secret default/gone",
			"spec.servers[2].tls.caCertCredentialName ✗ Secret default/roots: secret default/roots",
		},
		"DestinationRule other/out": {
			"spec.host ✗ : host out.example",
			"spec.trafficPolicy.tls.credentialName ✗ Secret other/front: secret other/front",
			"spec.subsets[0].trafficPolicy.tls.credentialName ✗ Secret other/gone: secret other/gone",
		},
		"Secret default/front": {
			"Gateway default/edge spec.servers[0].tls.credentialName: secret default/front",
			"Gateway default/edge spec.servers[1].tls.credentialName: secret default/front",
		},
		"Secret default/front-cacert": {
			"Gateway default/edge spec.servers[1].tls.credentialName: authorities default/front-cacert",
		},
	})
}

// TestReferences: what each object names is told, whether it is there or not, and
// by it who names each.
func TestReferences(t *testing.T) {
	c := compile.NewCompiler()
	c.Advance(mesh.NewSnapshot(1, mesh.DefaultSettings(), objects(t, related)))
	wantReferences(t, c, map[string][]string{
		"ServiceEntry default/reviews": {
			"spec.workloadSelector → WorkloadEntry default/reviews-1: its instances",
			"spec.workloadSelector → WorkloadEntry default/reviews-2: its instances",
			"DestinationPolicy default/old spec.destination: host reviews.default.svc.cluster.local",
			"DestinationRule default/reviews spec.host: host reviews.default.svc.cluster.local",
			"IngressRule default/in spec.destination: host reviews.default.svc.cluster.local",
			"RouteRule default/old spec.destination: host reviews.default.svc.cluster.local",
			"Sidecar default/some spec.egress[0].hosts: hosts ./*",
			"VirtualService default/part spec.http[0].route[0].destination.host: host reviews.default.svc.cluster.local",
			"VirtualService default/raw spec.hosts[0]: host *.default.svc.cluster.local",
			"VirtualService default/raw spec.tcp[0].route[0].destination.host: host reviews.default.svc.cluster.local",
			"VirtualService default/shop spec.http[2].route[0].destination.host: host reviews.default.svc.cluster.local",
			"VirtualService default/shop spec.http[2].route[1].destination.host: host reviews.default.svc.cluster.local",
		},
		"VirtualService default/shop": {
			"spec.gateways[0] → Gateway edge/shop: gateway edge/shop",
			"spec.gateways[1] ✗ Gateway edge/gone: gateway edge/gone",
			"spec.http[0].delegate → VirtualService default/part: delegate default/part",
			"spec.http[1].delegate ✗ VirtualService default/gone: delegate default/gone",
			"spec.http[2].route[0].destination.host → ServiceEntry default/reviews: host reviews.default.svc.cluster.local",
			"spec.http[2].route[0].destination.subset → DestinationRule default/reviews: subset v1 of reviews.default.svc.cluster.local",
			"spec.http[2].route[1].destination.host → ServiceEntry default/reviews: host reviews.default.svc.cluster.local",
			"spec.http[2].route[1].destination.subset ✗ DestinationRule default/reviews: subset v9 of reviews.default.svc.cluster.local",
			"spec.http[2].mirror.host ✗ : host nowhere.default.svc.cluster.local",
		},
		"DestinationRule default/reviews": {
			"spec.host → ServiceEntry default/reviews: host reviews.default.svc.cluster.local",
			"spec.subsets[0] → WorkloadEntry default/reviews-1: subset v1, version=v1 of reviews.default.svc.cluster.local",
			"spec.subsets[1] ✗ : subset v3, version=v3 of reviews.default.svc.cluster.local",
			"VirtualService default/shop spec.http[2].route[0].destination.subset: subset v1 of reviews.default.svc.cluster.local",
			"VirtualService default/shop spec.http[2].route[1].destination.subset: subset v9 of reviews.default.svc.cluster.local",
		},
		"WorkloadEntry default/reviews-1": {
			"DestinationPolicy default/old spec.destination.labels: version=v1 of reviews.default.svc.cluster.local",
			"DestinationRule default/reviews spec.subsets[0]: subset v1, version=v1 of reviews.default.svc.cluster.local",
			"ServiceEntry default/reviews spec.workloadSelector: its instances",
		},
		"RouteRule default/old": {
			"spec.destination → ServiceEntry default/reviews: host reviews.default.svc.cluster.local",
			"spec.match.source ✗ : host api.default.svc.cluster.local",
			"spec.route[0].labels → WorkloadEntry default/reviews-2: version=v2 of reviews.default.svc.cluster.local",
			"spec.route[1] → EgressRule default/api: host api.example",
		},
		"EgressRule default/api": {
			"RouteRule default/old spec.route[1]: host api.example",
			"Sidecar default/some spec.egress[0].hosts: hosts ./*",
			"VirtualService default/raw spec.tls[0].route[0].destination.host: host api.example",
		},
		"VirtualService default/part": {
			"spec.http[0].route[0].destination.host → ServiceEntry default/reviews: host reviews.default.svc.cluster.local",
			"VirtualService default/shop spec.http[0].delegate: delegate default/part",
		},
		"VirtualService default/raw": {
			"spec.hosts[0] → ServiceEntry default/reviews: host *.default.svc.cluster.local",
			"spec.tls[0].route[0].destination.host → EgressRule default/api: host api.example",
			"spec.tcp[0].route[0].destination.host → ServiceEntry default/reviews: host reviews.default.svc.cluster.local",
			"Sidecar default/some spec.egress[0].hosts: hosts ./*",
		},
		"Gateway edge/shop": {"VirtualService default/shop spec.gateways[0]: gateway edge/shop"},
		"Gateway edge/gone": {"VirtualService default/shop spec.gateways[1]: gateway edge/gone"},
		"Sidecar default/some": {
			"spec.egress[0].hosts → ServiceEntry default/reviews: hosts ./*",
			"spec.egress[0].hosts → EgressRule default/api: hosts ./*",
			"spec.egress[0].hosts → VirtualService default/raw: hosts ./*",
		},
		"IngressRule default/in": {"spec.destination → ServiceEntry default/reviews: host reviews.default.svc.cluster.local"},
	})
	if c.Size() != sizeWithout(t) {
		t.Errorf("looking left %d values, of %d before", c.Size(), sizeWithout(t))
	}
}

// wantReferences are those that each object has and is named by, in order.
func wantReferences(t *testing.T, c *compile.Compiler, all map[string][]string) {
	t.Helper()
	for of, want := range all {
		if got := referenceLines(c, keyOf(of)); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: got\n\t%s\nwant\n\t%s", of, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
		}
	}
}

func keyOf(text string) schema.Key {
	kind, name, _ := strings.Cut(text, " ")
	namespace, name, _ := strings.Cut(name, "/")
	return schema.Key{Kind: kind, Namespace: namespace, Name: name}
}

func referenceLines(c *compile.Compiler, key schema.Key) []string {
	var lines []string
	found := c.References(key)
	for _, r := range found.RefersTo {
		arrow := "→"
		if r.Missing {
			arrow = "✗"
		}
		lines = append(lines, fmt.Sprintf("%s %s %s: %s", r.Field, arrow, r.To, r.Names))
	}
	for _, r := range found.ReferredBy {
		lines = append(lines, fmt.Sprintf("%s %s: %s", r.From, r.Field, r.Names))
	}
	return lines
}

// sizeWithout is what a compiler holds that nobody has asked for references.
func sizeWithout(t *testing.T) int {
	c := compile.NewCompiler()
	c.Advance(mesh.NewSnapshot(1, mesh.DefaultSettings(), objects(t, related)))
	return c.Size()
}

const maxReferences = 1000 // As in docs/api.md.

// TestReferencesAreBounded: of many there are the first, and how many more.
func TestReferencesAreBounded(t *testing.T) {
	const services = maxReferences + 5
	all := objects(t, "apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {name: all}\nspec: {egress: [{hosts: [\"*/*\"]}]}\n")
	for i := range services {
		all = append(all, object(t, "ServiceEntry", fmt.Sprintf("s-%d", i), spec{
			"hosts": []string{fmt.Sprintf("s-%d.example", i)}, "resolution": "DNS", "ports": []any{spec{"number": 80, "name": "http", "protocol": "HTTP"}},
		}))
	}
	c := compile.NewCompiler()
	c.Advance(mesh.NewSnapshot(1, mesh.DefaultSettings(), all))
	if got := c.References(schema.Key{Kind: "Sidecar", Namespace: "default", Name: "all"}); len(got.RefersTo) != maxReferences || got.Omitted != 5 {
		t.Errorf("%d, and %d omitted", len(got.RefersTo), got.Omitted)
	}
	of := diag.Ref{Kind: "ServiceEntry", Namespace: "default", Name: "s-7"}
	if got := c.References(schema.Key(of)); len(got.ReferredBy) != 1 || got.ReferredBy[0].To != of {
		t.Errorf("got %+v", got)
	}
}

// TestManyReferrersAreBounded: of many that name an object there are the first by their
// names, however many were gathered before them.
func TestManyReferrersAreBounded(t *testing.T) {
	const referrers = 3*maxReferences + 7
	all := []*schema.Object{object(t, "ServiceEntry", "s", spec{
		"hosts": []string{"s.example"}, "resolution": "DNS", "ports": []any{spec{"number": 80, "name": "http", "protocol": "HTTP"}},
	})}
	var names []string
	for i := range referrers {
		name := fmt.Sprintf("r-%d", referrers-i)
		names = append(names, name)
		all = append(all, object(t, "DestinationRule", name, spec{"host": "s.example"}))
	}
	slices.Sort(names)
	c := compile.NewCompiler()
	c.Advance(mesh.NewSnapshot(1, mesh.DefaultSettings(), all))
	got := c.References(schema.Key{Kind: "ServiceEntry", Namespace: "default", Name: "s"})
	if len(got.ReferredBy) != maxReferences || got.Omitted != referrers-maxReferences {
		t.Fatalf("%d, and %d omitted", len(got.ReferredBy), got.Omitted)
	}
	for i, one := range got.ReferredBy {
		if one.From.Name != names[i] {
			t.Fatalf("number %d is %s, want %s", i, one.From.Name, names[i])
		}
	}
}
