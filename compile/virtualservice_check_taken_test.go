package compile_test

import (
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// TestNoDeadLetter: a rule that fewer callers follow than it is exported to, as another
// object takes its host, says so and names the object; others have no problem.
func TestNoDeadLetter(t *testing.T) {
	const kept = "" // There is no problem.
	entry := func(namespace, host string, exportTo ...string) *schema.Object {
		return objectIn(t, namespace, "ServiceEntry", "entry", spec{
			"hosts": []string{host}, "resolution": "STATIC", "exportTo": exportTo,
			"ports":     []spec{{"number": 80, "name": "http", "protocol": "HTTP"}, {"number": 443, "name": "tls", "protocol": "TLS"}},
			"endpoints": []spec{{"address": "10.66.0.9"}},
		})
	}
	virtual := func(namespace, name, host string, exportTo ...string) *schema.Object {
		return objectIn(t, namespace, "VirtualService", name, spec{
			"hosts": []string{host}, "exportTo": exportTo, "http": []spec{{"directResponse": spec{"status": 403}}},
		})
	}
	connections := func(namespace, name, host string) *schema.Object {
		return objectIn(t, namespace, "VirtualService", name, spec{
			"hosts": []string{host}, "exportTo": []string{"."},
			"tls": []spec{{"match": []spec{{"sniHosts": []string{host}}}, "route": []spec{{"destination": spec{"host": "x.w.example", "port": spec{"number": 443}}}}}},
		})
	}
	rule := func(namespace, host string, exportTo ...string) *schema.Object {
		return objectIn(t, namespace, "DestinationRule", "dr", spec{
			"host": host, "exportTo": exportTo, "trafficPolicy": spec{"connectionPool": spec{"tcp": spec{"connectTimeout": "3s"}}},
		})
	}
	for _, test := range []struct {
		name    string
		of      diag.Ref
		objects []*schema.Object
		code    diag.Code
		problem string
	}{
		{"a wildcard of the host's namespace", vsRef("default", "mine"), []*schema.Object{
			virtual("default", "mine", "x.w.example", "."), entry("evil", "x.w.example"), virtual("evil", "w", "*.w.example"),
		}, diag.RuleClaimed, "VirtualService evil/w is for *.w.example, which covers x.w.example, and is in the host's own namespace"},
		{"a wildcard for all", vsRef("default", "mine"), []*schema.Object{
			virtual("default", "mine", "x.w.example", "."), entry("evil", "x.w.example"), virtual("evil", "w", "*"),
		}, diag.RuleClaimed, "VirtualService evil/w is for *, which covers x.w.example,"},
		{"the host itself", vsRef("default", "mine"), []*schema.Object{
			virtual("default", "mine", "x.w.example", "."), entry("evil", "x.w.example"), virtual("evil", "w", "x.w.example"),
		}, diag.RuleClaimed, "VirtualService evil/w is for x.w.example too and is in the host's own namespace"},
		{"one that these callers do not see", vsRef("default", "mine"), []*schema.Object{
			virtual("default", "mine", "x.w.example", "."), entry("evil", "x.w.example"), virtual("evil", "w", "*.w.example", "."),
		}, "", kept},
		{"a late declarer with no rule", vsRef("default", "mine"), []*schema.Object{
			virtual("default", "mine", "x.w.example", "."), entry("evil", "x.w.example"),
		}, "", kept},
		{"a late declarer, of a rule for all", vsRef("default", "mine"), []*schema.Object{
			virtual("default", "mine", "x.w.example"), entry("evil", "x.w.example"),
		}, diag.FollowedByFew, "ServiceEntry evil/entry declares it"},
		{"a wildcard of the same namespace", vsRef("evil", "mine"), []*schema.Object{
			virtual("evil", "mine", "x.w.example"), entry("evil", "x.w.example"), virtual("evil", "w", "*.w.example"),
		}, "", kept},
		{"a wildcard by a wildcard that is declared", vsRef("default", "mine"), []*schema.Object{
			virtual("default", "mine", "*.w.example", "."), entry("evil", "*.w.example"), virtual("evil", "w", "*.example"),
		}, diag.RuleClaimed, "VirtualService evil/w is for *.example, which covers *.w.example,"},
		{"a host beneath, by the same wildcard", vsRef("default", "mine"), []*schema.Object{
			virtual("default", "mine", "*.w.example", "."), entry("evil", "x.w.example"), virtual("evil", "w", "*.w.example"),
		}, diag.FollowedByFew, "requests to x.w.example do not follow it: VirtualService evil/w is for *.w.example"},
		{"a host beneath, by a wider one", vsRef("default", "mine"), []*schema.Object{
			virtual("default", "mine", "*.w.example", "."), entry("evil", "x.w.example"), virtual("evil", "w", "*.example"),
		}, diag.FollowedByFew, "requests to x.w.example do not follow it: VirtualService evil/w is for *.example"},
		{"a host beneath, by itself", vsRef("default", "mine"), []*schema.Object{
			virtual("default", "mine", "*.w.example", "."), entry("evil", "x.w.example"), virtual("evil", "w", "x.w.example"),
		}, "", kept},
		{"all hosts beneath that it has routes for", vsRef("default", "mine"), []*schema.Object{
			connections("default", "mine", "*.w.example"), entry("evil", "x.w.example"), virtual("evil", "w", "x.w.example"),
		}, diag.RuleClaimed, "VirtualService evil/w for x.w.example"},
		{"connections", vsRef("default", "mine"), []*schema.Object{
			connections("default", "mine", "x.w.example"), entry("evil", "x.w.example"), virtual("evil", "w", "*.w.example"),
		}, diag.RuleClaimed, "VirtualService evil/w is for *.w.example"},
		{"the root namespace, by a namespace for its own callers", vsRef("istio-system", "mine"), []*schema.Object{
			virtual("istio-system", "mine", "x.w.example"), virtual("evil", "w", "*.w.example", "."),
		}, diag.FollowedByFew, "callers in namespace evil do not follow it: VirtualService evil/w is for *.w.example, which covers x.w.example, and is in the callers' own namespace"},
		{"the root namespace, by the owner", vsRef("istio-system", "mine"), []*schema.Object{
			virtual("istio-system", "mine", "x.w.example"), entry("evil", "x.w.example"), virtual("evil", "w", "*.w.example"),
		}, diag.RuleClaimed, "VirtualService evil/w is for *.w.example"},
		{"the root namespace, by the owner for some", vsRef("istio-system", "mine"), []*schema.Object{
			virtual("istio-system", "mine", "x.w.example"), entry("evil", "x.w.example"), virtual("evil", "w", "*.w.example", "third"),
		}, diag.FollowedByFew, "callers in namespace third do not follow it: VirtualService evil/w"},
		{"the root namespace, more precise", vsRef("istio-system", "mine"), []*schema.Object{
			virtual("istio-system", "mine", "*.w.example"), virtual("default", "w", "x.w.example", "."),
		}, "", kept},
		{"an older one for some", vsRef("evil", "mine"), []*schema.Object{
			virtual("evil", "mine", "x.w.example"), entry("evil", "x.w.example"), virtual("evil", "a", "x.w.example", "third"),
		}, diag.FollowedByFew, "callers in namespace third do not follow it: VirtualService evil/a is for x.w.example too"},
		{"an older one for its own callers", vsRef("evil", "mine"), []*schema.Object{
			virtual("evil", "mine", "x.w.example"), entry("evil", "x.w.example"), virtual("evil", "a", "x.w.example", "."),
		}, diag.FollowedByFew, "callers in namespace evil do not follow it: VirtualService evil/a"},
		{"for another namespace, beside a wildcard for its own", vsRef("evil", "mine"), []*schema.Object{
			virtual("evil", "mine", "x.w.example", "third"), entry("evil", "x.w.example"), virtual("evil", "a", "*.w.example", "."),
		}, "", kept},
		{"for namespaces of which one has another", vsRef("evil", "mine"), []*schema.Object{
			virtual("evil", "mine", "x.w.example", "third", "fourth"), entry("evil", "x.w.example"), virtual("evil", "a", "x.w.example", "fourth"),
		}, diag.FollowedByFew, "callers in namespace fourth do not follow it: VirtualService evil/a"},
		{"private services of one name", vsRef("default", "mine"), []*schema.Object{
			entry("default", "x.w.example", "."), virtual("default", "mine", "x.w.example"), entry("evil", "x.w.example", "."), virtual("evil", "w", "x.w.example"),
		}, "", kept},

		{"a DestinationRule of the root namespace", drRef("istio-system"), []*schema.Object{
			entry("evil", "x.w.example"), rule("istio-system", "x.w.example"), rule("evil", "x.w.example"),
		}, diag.FollowedByFew, "only callers in namespace istio-system follow it: DestinationRule evil/dr is for x.w.example and is in the host's own namespace"},
		{"a DestinationRule of the root namespace, by a wildcard", drRef("istio-system"), []*schema.Object{
			entry("evil", "x.w.example"), rule("istio-system", "x.w.example"), rule("evil", "*.w.example"),
		}, diag.FollowedByFew, "DestinationRule evil/dr is for *.w.example and is in the host's own namespace"},
		{"a DestinationRule for a namespace that has its own", drRef("evil"), []*schema.Object{
			entry("evil", "x.w.example"), rule("evil", "x.w.example", "third"), rule("third", "x.w.example", "."),
		}, diag.RuleClaimed, "the rule has no effect: DestinationRule third/dr is for x.w.example and is in the callers' own namespace"},
		{"a DestinationRule with an exception", drRef("evil"), []*schema.Object{
			entry("evil", "x.w.example"), rule("evil", "x.w.example"), rule("third", "x.w.example", "."),
		}, "", kept},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, problems := compiled(t, "sidecar~10.99.0.1~caller~default.svc.cluster.local", test.objects)
			var found diag.List
			for _, p := range problems {
				if p.Object == test.of && (p.Code == diag.RuleClaimed || p.Code == diag.FollowedByFew) {
					found = append(found, p)
				}
			}
			switch {
			case test.problem == kept && len(found) > 0:
				t.Errorf("problems:\n%v", found)
			case test.problem != kept && (len(found) != 1 || found[0].Code != test.code || !strings.Contains(found[0].Message, test.problem)):
				t.Errorf("want %s %q in:\n%v", test.code, test.problem, found)
			}
		})
	}
}

func vsRef(namespace, name string) diag.Ref {
	return diag.Ref{Kind: "VirtualService", Namespace: namespace, Name: name}
}

func drRef(namespace string) diag.Ref {
	return diag.Ref{Kind: "DestinationRule", Namespace: namespace, Name: "dr"}
}
