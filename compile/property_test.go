package compile_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/internal/meshgen"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// spec is an object's spec as a person writes it.
type spec map[string]any

func compiled(tb testing.TB, node string, objs []*schema.Object) (*ir.Config, diag.List) {
	return compiledAs(tb, mesh.V1Compatibility{}, node, objs)
}

func compiledAs(tb testing.TB, pilot mesh.V1Compatibility, node string, objs []*schema.Object) (*ir.Config, diag.List) {
	settings := mesh.DefaultSettings()
	settings.ProxyHTTPPort = 15002
	settings.UnixSocketFolders = []string{"/run/app"}
	settings.V1Compatibility = pilot
	s := mesh.NewSnapshot(1, settings, objs)
	return compile.Proxy(s, s.TraitsOf(proxy(tb, node)))
}

// faultless is a configuration that keeps its promises, from objects that
// nothing is wrong with.
func faultless(t *testing.T, node string, objs []*schema.Object) *ir.Config {
	t.Helper()
	config, problems := compiled(t, node, objs)
	if len(problems) > 0 {
		t.Error(problems)
	}
	if err := ir.Validate(config); err != nil {
		t.Error(err)
	}
	return config
}

// drawPilot is a mesh from Pilot, or one that never saw it.
func drawPilot(rt *rapid.T) mesh.V1Compatibility {
	if rapid.Bool().Draw(rt, "pilot") {
		return mesh.AsPilot()
	}
	return mesh.V1Compatibility{}
}

func TestOrderOfObjectsHasNoEffect(t *testing.T) {
	outside.Slow(t)
	rapid.Check(t, func(rt *rapid.T) {
		objs, pilot := meshgen.Objects(rt), drawPilot(rt)
		node := rapid.SampledFrom(meshgen.Proxies).Draw(rt, "node")
		config, problems := compiledAs(t, pilot, node, objs)
		again, problemsAgain := compiledAs(t, pilot, node, rapid.Permutation(objs).Draw(rt, "order"))
		if d := difference(config, again); d != "" {
			rt.Fatalf("configuration differs:\n%s", d)
		}
		if d := cmp.Diff(problems, problemsAgain); d != "" {
			rt.Fatalf("problems differ:\n%s", d)
		}
	})
}

func TestEveryConfigurationIsValid(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		node := rapid.SampledFrom(meshgen.Proxies).Draw(rt, "node")
		config, problems := compiledAs(t, drawPilot(rt), node, meshgen.Objects(rt))
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
	"no destination":    {"precedence": 9},
	"unknown service":   {"destination": spec{"name": "nobody-at-all"}, "precedence": 9},
	"impossible source": {"destination": spec{"name": "a"}, "precedence": 9, "match": spec{"source": spec{"name": "nobody-at-all"}}},
}

// Those of a known service close what they are for.
var closingObjects = map[string]spec{
	"bad regex":        {"destination": spec{"name": "a"}, "precedence": 9, "match": spec{"request": spec{"headers": spec{"uri": spec{"regex": "(?=x)"}}}}},
	"bad header regex": {"destination": spec{"name": "a"}, "precedence": 9, "match": spec{"request": spec{"headers": spec{"cookie": spec{"regex": "["}}}}},
	"weights":          {"destination": spec{"name": "a"}, "precedence": 9, "route": []spec{{"weight": 1}, {"weight": 2}}},
	"weight below 0":   {"destination": spec{"name": "a"}, "precedence": 9, "route": []spec{{"weight": -1}, {"weight": 101}}},
	"redirect":         {"destination": spec{"name": "a"}, "precedence": 9, "redirect": spec{}},
}

func TestBadRuleChangesNothingElse(t *testing.T) {
	outside.Slow(t)
	for name, bad := range badObjects {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				objs := meshgen.Objects(rt)
				// Inbound routes ignore the source, so only callers are asked.
				node := "sidecar~10.7.7.7~x~default.svc.cluster.local"
				want, before := compiled(t, node, objs)
				got, after := compiled(t, node, append(objs, object(t, "RouteRule", "bad", bad)))
				if d := difference(want, got); d != "" {
					rt.Fatalf("one bad rule changed:\n%s", d)
				}
				if len(after) <= len(before) {
					rt.Fatalf("nobody says what is wrong with the rule: %v", after)
				}
			})
		})
	}
}

// TestBadRuleCloses: what a rule might have refused goes to nobody else, and
// other hosts are as they were.
func TestBadRuleCloses(t *testing.T) {
	outside.Slow(t)
	const node = "sidecar~10.7.7.7~x~default.svc.cluster.local"
	for name, bad := range closingObjects {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				objs := meshgen.Objects(rt)
				want, _ := compiled(t, node, objs)
				got, after := compiled(t, node, append(objs, object(t, "RouteRule", "bad", bad)))
				for i, table := range got.RouteTables {
					for j, host := range table.VirtualHosts {
						if was := want.RouteTables[i].VirtualHosts[j]; !cmp.Equal(was, host) && !closedBy(host, "bad") {
							rt.Fatalf("one bad rule changed:\n%s", cmp.Diff(was, host))
						}
					}
				}
				if !slices.ContainsFunc(after, func(p diag.Problem) bool { return p.Object.Name == "bad" }) {
					rt.Fatalf("nobody says what is wrong with the rule: %v", after)
				}
			})
		})
	}
}

// closedBy reports whether the rule closes service a, and does no more.
func closedBy(host *ir.VirtualHost, rule string) bool {
	closed := 0
	for _, r := range host.Routes {
		if r.Origins[0].Name == rule && r.Response != nil && *r.Response == *ir.Unavailable() {
			closed++
		}
	}
	return closed == 1 && strings.HasPrefix(host.Name, "a.")
}
