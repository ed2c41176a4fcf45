// Package meshgen draws meshes for property tests: any set of config objects of any kind,
// and nodes with different views of them. Names, hosts, addresses, ports and labels come
// from small pools, so that objects collide and refer to each other. All objects decode,
// but not all are valid: their readers must cope with everything that may be stored.
// Package meshgen also makes requests that show the effect of the objects.
//
//	meshgen.go         Objects, Nodes, and what kinds share
//	registry.go        ServiceEntry, WorkloadEntry
//	routerule.go       RouteRule
//	policies.go        DestinationPolicy, DestinationRule
//	edges.go           EgressRule, IngressRule, Gateway
//	virtualservice.go  VirtualService
//	sidecar.go         Sidecar
//	nodes.go           Nodes, Proxies
//	requests.go        Requests for a configuration
//	nearmisses.go      requests that match, or that fail one condition
//	example.go         a text that an expression matches
package meshgen

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/schema"
)

// spec is an object's spec as a person writes it.
type spec map[string]any

// kinds lists the kinds in the order of their draws, each with its maximum number.
var kinds = []struct {
	name string
	most int
	draw func(*rapid.T) spec
}{
	{"ServiceEntry", 4, serviceEntry},
	{"WorkloadEntry", 2, workloadEntry},
	{"RouteRule", 6, routeRule},
	{"DestinationPolicy", 4, destinationPolicy},
	{"EgressRule", 3, egressRule},
	{"IngressRule", 4, ingressRule},
	{"Gateway", 2, gateway},
	{"DestinationRule", 4, destinationRule},
	{"VirtualService", 4, virtualService},
	{"Sidecar", 2, sidecar},
}

// Objects draws a mesh, sorted by kind and name. Most meshes have a typical service that
// rules can refer to.
func Objects(t *rapid.T) []*schema.Object {
	var out []*schema.Object
	if often(t, "has a usual service") {
		out = append(out, object(t, "ServiceEntry", "a-usual", usualService()))
	}
	for _, k := range kinds {
		for i := range k.most {
			if rapid.Bool().Draw(t, "has "+k.name) {
				out = append(out, object(t, k.name, fmt.Sprintf("o%d", i), k.draw(t)))
			}
		}
	}
	return out
}

func object(t *rapid.T, kindName, name string, s spec) *schema.Object {
	kind, ok := schema.KindByName(kindName)
	if !ok {
		t.Fatalf("no kind %s", kindName)
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Namespace: schema.DefaultNamespace, Name: name, Labels: labels(t, "own labels")}
	if kindName == "ServiceEntry" && seldom(t, "has a health check") {
		meta.Annotations = map[string]string{schema.HealthCheckAnnotation: pick(t, "health check",
			"{http: {path: /healthz}}", "{tcp: {}, interval: 1s}", "{grpc: {}}", "{tcp: {}, http: {}}")}
	}
	o, err := schema.New(kind, meta, text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Spec(); err != nil {
		t.Fatalf("%s %s does not decode: %v\n%s", kindName, name, err, text)
	}
	return o
}

func pick[T any](t *rapid.T, label string, from ...T) T {
	return rapid.SampledFrom(from).Draw(t, label)
}

// some draws a non-empty part of the pool.
func some[T comparable](t *rapid.T, label string, most int, from ...T) []T {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(from), 1, most, rapid.ID[T]).Draw(t, label)
}

// coins returns the number of heads of two coins. Other draws prefer small or first
// values.
func coins(t *rapid.T, label string) int {
	heads := 0
	for range 2 {
		if rapid.Bool().Draw(t, label) {
			heads++
		}
	}
	return heads
}

func often(t *rapid.T, label string) bool { return coins(t, label) > 0 }

func seldom(t *rapid.T, label string) bool { return coins(t, label) == 2 }

// often sets an optional field most of the time.
func (s spec) often(t *rapid.T, field string, draw func() any) {
	if often(t, "has "+field) {
		s[field] = draw()
	}
}

// seldom sets an optional field some of the time.
func (s spec) seldom(t *rapid.T, field string, draw func() any) {
	if seldom(t, "has "+field) {
		s[field] = draw()
	}
}

func host(t *rapid.T) string {
	return pick(t, "host", "a.default.svc.cluster.local", "b.default.svc.cluster.local", "b", "*.example.com", "c.example.com")
}

func labels(t *rapid.T, label string) map[string]string {
	return pick(t, label, nil, map[string]string{"v": "1"}, map[string]string{"v": "2"}, map[string]string{"v": "2", "x": "y"})
}

func port(t *rapid.T) int { return pick(t, "port", 80, 90, 443) }

func address(t *rapid.T) string { return pick(t, "address", "10.1.0.1", "10.1.0.2") }

// stringMatch draws one of the ways to match a value.
func stringMatch(t *rapid.T, values ...string) spec {
	kind := pick(t, "way", "exact", "prefix", "regex")
	if kind == "regex" {
		return spec{kind: pick(t, "expression", "/[a-c]+", "/a(/b)?", "(?i)/A", "^(.*?;)?(user=jason)(;.*)?$", ".*")}
	}
	return spec{kind: pick(t, "value", values...)}
}

func path(t *rapid.T) spec { return stringMatch(t, "/", "/a", "/a/b", "/c?q=1") }

func headers(t *rapid.T) spec {
	out := spec{}
	for _, name := range some(t, "header", 2, "x-user", "cookie", "end-user") {
		out[name] = stringMatch(t, "jason", "user=jason", "dog.cat")
	}
	return out
}

// seconds draws a duration in the text form of both generations of kinds.
func seconds(t *rapid.T) string { return pick(t, "time", "1s", "1.5s", "0.250s") }

func percent(t *rapid.T) int { return pick(t, "percent", 100, 10, 0) }

func cors(t *rapid.T) spec {
	out := spec{"allowMethods": []string{"GET", "PUT"}}
	out.often(t, "allowHeaders", func() any { return []string{"x-a", "x-b"} })
	out.often(t, "exposeHeaders", func() any { return []string{"x-c"} })
	out.often(t, "maxAge", func() any { return "300s" })
	out.often(t, "allowCredentials", func() any { return rapid.Bool().Draw(t, "credentials") })
	return out
}

// weights draws weights that add up to a hundred.
func weights(t *rapid.T) []int {
	return pick(t, "weights", []int{100}, []int{75, 25}, []int{100, 0}, []int{34, 33, 33})
}
