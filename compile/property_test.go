package compile_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// The pools are small, so that hosts, ports, addresses and labels collide.
var (
	someHosts     = []string{"a.default.svc.cluster.local", "b.default.svc.cluster.local", "b", "*.example.com", "c.example.com"}
	someNames     = []string{"a", "b", "nobody"}
	someAddresses = []string{"", "10.0.0.1", "10.0.0.2", "10.0.0.0/24", "2001:db8::1"}
	someProtocols = []string{"HTTP", "HTTP2", "GRPC", "HTTPS", "TCP", "TLS", "MONGO", "REDIS", "UDP"}
	someLabels    = []map[string]string{nil, {"v": "1"}, {"v": "2"}, {"v": "2", "x": "y"}}
	someNodes     = []string{
		"sidecar~10.1.0.1~x~default.svc.cluster.local",
		"sidecar~10.1.0.2~x~example.com",
		"sidecar~10.7.7.7~x~",
		"router~10.7.7.8~x~default.svc.cluster.local",
		"ingress~10.7.7.9~x~default.svc.cluster.local",
	}
)

type spec map[string]any

func drawEntry(t *rapid.T) spec {
	resolution := rapid.SampledFrom([]string{"STATIC", "DNS", "NONE"}).Draw(t, "resolution")
	out := spec{
		"hosts":      rapid.SliceOfNDistinct(rapid.SampledFrom(someHosts), 1, 2, rapid.ID).Draw(t, "hosts"),
		"location":   rapid.SampledFrom([]string{"MESH_INTERNAL", "MESH_EXTERNAL"}).Draw(t, "location"),
		"resolution": resolution,
	}
	if address := rapid.SampledFrom(someAddresses).Draw(t, "address"); address != "" {
		out["addresses"] = []string{address}
	}
	var ports []spec
	for _, number := range rapid.SliceOfNDistinct(rapid.SampledFrom([]int{80, 90, 15001}), 1, 3, rapid.ID).Draw(t, "ports") {
		ports = append(ports, spec{
			"number": number, "name": fmt.Sprintf("p%d", number),
			"protocol": rapid.SampledFrom(someProtocols).Draw(t, "protocol"),
		})
	}
	out["ports"] = ports
	if resolution != "NONE" {
		var eps []spec
		for range rapid.IntRange(0, 2).Draw(t, "endpoints") {
			eps = append(eps, spec{
				"address": rapid.SampledFrom([]string{"10.1.0.1", "10.1.0.2"}).Draw(t, "ip"),
				"labels":  rapid.SampledFrom(someLabels).Draw(t, "labels"),
			})
		}
		out["endpoints"] = eps
	}
	return out
}

func drawReference(t *rapid.T, label string) spec {
	if rapid.Bool().Draw(t, label+" by name") {
		return spec{"name": rapid.SampledFrom(someNames).Draw(t, label)}
	}
	return spec{"service": rapid.SampledFrom(someHosts).Draw(t, label)}
}

func drawRule(t *rapid.T) spec {
	out := spec{
		"destination": drawReference(t, "destination"),
		"precedence":  rapid.IntRange(0, 2).Draw(t, "precedence"),
	}
	match := spec{}
	if rapid.Bool().Draw(t, "has source") {
		source := drawReference(t, "source")
		source["labels"] = rapid.SampledFrom(someLabels).Draw(t, "source labels")
		match["source"] = source
	}
	if rapid.Bool().Draw(t, "has request") {
		kind := rapid.SampledFrom([]string{"exact", "prefix", "regex"}).Draw(t, "kind")
		header := rapid.SampledFrom([]string{"uri", "authority", "cookie"}).Draw(t, "header")
		match["request"] = spec{"headers": spec{header: spec{kind: "/x"}}}
	}
	out["match"] = match
	switch rapid.IntRange(0, 3).Draw(t, "action") {
	case 0:
		out["redirect"] = spec{"uri": "/y"}
	case 1:
		out["route"] = []spec{
			{"labels": rapid.SampledFrom(someLabels).Draw(t, "first"), "weight": 30},
			{"destination": drawReference(t, "second"), "weight": 70},
		}
		out["mirror"] = drawReference(t, "mirror")
	case 2:
		out["httpFault"] = spec{"abort": spec{"percent": 50, "httpStatus": 503}}
	}
	return out
}

func drawPolicy(t *rapid.T) spec {
	destination := drawReference(t, "destination")
	destination["labels"] = rapid.SampledFrom(someLabels).Draw(t, "labels")
	return spec{"destination": destination, "loadBalancing": spec{"name": "RANDOM"}}
}

// drawWorld is any set of objects of the kinds that are compiled.
func drawWorld(t *rapid.T, tb testing.TB) []*schema.Object {
	var out []*schema.Object
	for _, some := range []struct {
		kind string
		draw func(*rapid.T) spec
	}{{"ServiceEntry", drawEntry}, {"RouteRule", drawRule}, {"DestinationPolicy", drawPolicy}} {
		for i := range rapid.IntRange(0, 5).Draw(t, some.kind+" count") {
			out = append(out, object(tb, some.kind, fmt.Sprintf("o%d", i), some.draw(t)))
		}
	}
	return out
}

func compiled(tb testing.TB, node string, objs []*schema.Object) (*ir.Config, diag.List) {
	settings := mesh.DefaultSettings()
	settings.ProxyHTTPPort = 15002
	s := mesh.NewSnapshot(1, settings, objs)
	return compile.Proxy(s, s.View(proxy(tb, node)))
}

func TestOrderOfObjectsHasNoEffect(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		objs := drawWorld(rt, t)
		node := rapid.SampledFrom(someNodes).Draw(rt, "node")
		config, problems := compiled(t, node, objs)
		again, problemsAgain := compiled(t, node, rapid.Permutation(objs).Draw(rt, "order"))
		if d := cmp.Diff(config, again); d != "" {
			rt.Fatalf("configuration differs:\n%s", d)
		}
		if d := cmp.Diff(problems, problemsAgain); d != "" {
			rt.Fatalf("problems differ:\n%s", d)
		}
	})
}

func TestEveryConfigurationIsValid(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		node := rapid.SampledFrom(someNodes).Draw(rt, "node")
		config, problems := compiled(t, node, drawWorld(rt, t))
		if err := ir.Validate(config); err != nil {
			rt.Fatal(err)
		}
		v3Answers(t, config, proxy(t, node).IP)
		if err := problems.Err(); err != nil {
			rt.Fatalf("stored objects cannot be refused: %v", err)
		}
		for _, p := range problems {
			if p.Object == (diag.Ref{}) || p.Message == "" {
				rt.Fatalf("nobody can act on %+v", p)
			}
		}
	})
}

// The store would refuse most of these, but not if they were written past it.
var badObjects = map[string]spec{
	"bad regex":         {"destination": spec{"name": "a"}, "precedence": 9, "match": spec{"request": spec{"headers": spec{"uri": spec{"regex": "(?=x)"}}}}},
	"bad header regex":  {"destination": spec{"name": "a"}, "precedence": 9, "match": spec{"request": spec{"headers": spec{"cookie": spec{"regex": "["}}}}},
	"no destination":    {"precedence": 9},
	"unknown service":   {"destination": spec{"name": "nobody-at-all"}, "precedence": 9},
	"impossible source": {"destination": spec{"name": "a"}, "precedence": 9, "match": spec{"source": spec{"name": "nobody-at-all"}}},
	"weights":           {"destination": spec{"name": "a"}, "precedence": 9, "route": []spec{{"weight": 1}, {"weight": 2}}},
	"weight below 0":    {"destination": spec{"name": "a"}, "precedence": 9, "route": []spec{{"weight": -1}, {"weight": 101}}},
}

func TestBadRuleChangesNothingElse(t *testing.T) {
	for name, bad := range badObjects {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				objs := drawWorld(rt, t)
				// Inbound routes ignore the source, so only callers are asked.
				node := "sidecar~10.7.7.7~x~default.svc.cluster.local"
				want, before := compiled(t, node, objs)
				got, after := compiled(t, node, append(objs, object(t, "RouteRule", "bad", bad)))
				if d := cmp.Diff(want, got); d != "" {
					rt.Fatalf("one bad rule changed:\n%s", d)
				}
				if len(after) <= len(before) {
					rt.Fatalf("nobody says what is wrong with the rule: %v", after)
				}
			})
		})
	}
}
