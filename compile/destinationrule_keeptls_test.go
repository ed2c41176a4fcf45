package compile_test

import (
	"slices"
	"testing"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/schema"
)

// TestSubsetsKeepTLSOfOtherRules checks that the subset of one DestinationRule does not
// turn off the TLS that the policy of another one asks for, and that it may turn off
// what its own rule asks for.
func TestSubsetsKeepTLSOfOtherRules(t *testing.T) {
	simple, disable := spec{"tls": spec{"mode": "SIMPLE"}}, spec{"tls": spec{"mode": "DISABLE"}}
	at := func(port int, policy spec) spec {
		return spec{"portLevelSettings": []spec{{"port": spec{"number": port}, "tls": policy["tls"]}}}
	}
	rule := func(name string, policy, subset spec) *schema.Object {
		out := spec{"host": "reviews"}
		if policy != nil {
			out["trafficPolicy"] = policy
		}
		if subset != nil {
			out["subsets"] = []spec{{"name": "v1", "labels": spec{"version": "v1"}, "trafficPolicy": subset}}
		}
		return object(t, "DestinationRule", name, out)
	}
	for name, c := range map[string]struct {
		rules []*schema.Object
		tls   bool
	}{
		"the subset turns it off":                           {[]*schema.Object{rule("a", simple, nil), rule("b", nil, disable)}, true},
		"the subset comes first":                            {[]*schema.Object{rule("b", simple, nil), rule("a", nil, disable)}, true},
		"the policy is for the port":                        {[]*schema.Object{rule("a", at(80, simple), nil), rule("b", nil, disable)}, true},
		"the policy is for another port":                    {[]*schema.Object{rule("a", at(81, simple), nil), rule("b", nil, disable)}, false},
		"the subset turns it off at the port":               {[]*schema.Object{rule("a", simple, nil), rule("b", nil, at(80, disable))}, true},
		"both are for the port":                             {[]*schema.Object{rule("a", at(80, simple), nil), rule("b", nil, at(80, disable))}, true},
		"the subset is for another port":                    {[]*schema.Object{rule("a", simple, nil), rule("b", nil, at(81, disable))}, true},
		"one rule turns off its own":                        {[]*schema.Object{rule("a", simple, disable)}, false},
		"one rule turns off its own, and another has none":  {[]*schema.Object{rule("a", simple, disable), rule("b", connectIn("2s"), nil)}, false},
		"the subset of the rule with the policy and a twin": {[]*schema.Object{rule("a", nil, disable), rule("b", simple, disable)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			config, problems := compiled(t, "sidecar~10.99.0.1~caller~default.svc.cluster.local", append(c.rules,
				hostIn(t, "default", "reviews"),
				object(t, "VirtualService", "reviews", spec{"hosts": []string{"reviews"}, "http": []spec{
					{"route": []spec{{"destination": spec{"host": "reviews", "subset": "v1"}}}},
				}})))
			to := slices.IndexFunc(config.Clusters, func(cl *ir.Cluster) bool {
				return cl.Name == routeTo(t, config, reviewsHost).Clusters[0].Name
			})
			if got := config.Clusters[to].TLS != nil; got != c.tls {
				t.Errorf("TLS %t, want %t\n%v", got, c.tls, problems)
			}
			told := slices.ContainsFunc(problems, func(p diag.Problem) bool { return p.Code == diag.RuleClaimed })
			if c.tls && !told {
				t.Errorf("nobody is told that TLS stays on: %v", problems)
			}
		})
	}
}
