package compile_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/internal/meshgen"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// TestOutsideOfASidecar: what proxies do not import concerns them not at all, and
// all that follow one Sidecar share what is not their own.
func TestOutsideOfASidecar(t *testing.T) {
	service := func(namespace, name string, port int) *schema.Object {
		return objectIn(t, namespace, "ServiceEntry", name, spec{
			"hosts": []string{name + ".example"}, "resolution": "DNS",
			"ports": []spec{{"number": port, "name": "http", "protocol": "HTTP"}, {"number": port + 1, "name": "tcp", "protocol": "TCP"}},
		})
	}
	inside := objectIn(t, "team-a", "ServiceEntry", "caller", spec{
		"hosts": []string{"caller.team-a.svc.cluster.local"}, "location": "MESH_INTERNAL", "resolution": "STATIC",
		"ports":     []spec{{"number": 80, "name": "http", "protocol": "HTTP"}},
		"endpoints": []spec{{"address": "10.1.0.1", "labels": spec{"v": "1"}}, {"address": "10.1.0.2", "labels": spec{"v": "2"}}},
	})
	objs := []*schema.Object{
		inside, service("team-a", "mine", 80), service("team-b", "imported", 80), service("team-b", "other", 80),
		objectIn(t, "team-a", "Sidecar", "default", spec{"egress": []spec{{"hosts": []string{"./*", "team-b/imported.example"}}}}),
	}
	compiler, settings := compile.NewCompiler(), mesh.DefaultSettings()
	var configs [2]*ir.Config
	advance := func(revision int64, objs []*schema.Object) [2]*ir.Config {
		s := mesh.NewSnapshot(revision, settings, objs)
		compiler.Advance(s)
		for i, node := range []string{"sidecar~10.1.0.1~a~team-a.svc.cluster.local", "sidecar~10.1.0.2~b~team-a.svc.cluster.local"} {
			configs[i], _ = compiler.Proxy(s.TraitsOf(proxy(t, node)))
		}
		return configs
	}
	before := advance(1, objs)
	if before[0] == before[1] || before[0].RouteTables[0] != before[1].RouteTables[0] {
		t.Error("two views that follow one Sidecar do not share their outbound routes")
	}
	runs := compiler.Runs()
	more := append([]*schema.Object{}, objs...)
	more = append(more, service("team-b", "new", 80), service("team-c", "new", 90),
		objectIn(t, "team-b", "VirtualService", "other", spec{"hosts": []string{"other.example"}, "http": []spec{{"directResponse": spec{"status": 403}}}}),
		objectIn(t, "team-b", "DestinationRule", "other", spec{"host": "other.example"}),
		objectIn(t, "team-b", "Sidecar", "default", spec{"egress": []spec{{"hosts": []string{"./*"}}}}))
	if after := advance(2, more); after != before {
		t.Error("what is not imported made another configuration")
	}
	// What the new VirtualService multiplies to, for which the HTTP ports are counted,
	// whether its host is that of an EgressRule, and which hosts have rules; then whether
	// callers of different namespaces follow others for the host, and for a host of its
	// group; whether these follow one, which of the group, whether any, and all that they
	// follow.
	const counted = 10
	if n := compiler.Runs() - runs; n > counted {
		t.Errorf("%d results were computed again", n-counted)
	}
	more = append(more, service("team-a", "more", 80))
	if after := advance(3, more); after[0] == before[0] || after[1] == before[1] {
		t.Error("a new service that is imported concerned nobody")
	}
}

// TestDotImportsTheOwnNamespace: a rule that holds for callers of every namespace
// holds for those that import it by a dot, too.
func TestDotImportsTheOwnNamespace(t *testing.T) {
	rule := objectIn(t, "team-a", "VirtualService", "ratings", spec{
		"hosts": []string{"ratings.team-a.svc.cluster.local"}, "http": []spec{{"directResponse": spec{"status": 403}}},
	})
	for _, home := range []string{"team-a", mesh.DefaultSettings().RootNamespace} {
		for _, hosts := range [][]string{
			{"./*"}, {"./ratings.team-a.svc.cluster.local"}, {"./*.team-a.svc.cluster.local"}, {"./*", "istio-system/*"}, {"team-a/*"}, {"*/*"},
		} {
			config := faultless(t, "sidecar~10.99.0.1~caller~team-a.svc.cluster.local", []*schema.Object{
				hostIn(t, "team-a", "ratings"), rule,
				objectIn(t, home, "Sidecar", "default", spec{"egress": []spec{{"hosts": hosts}}}),
			})
			if to := routeTo(t, config, "ratings.team-a.svc.cluster.local"); to.Response == nil || to.Response.Status != 403 {
				t.Errorf("a Sidecar of %s with %v: the route to ratings is %+v", home, hosts, to)
			}
		}
	}
}

// TestDotIsTheCallersNamespace: what proxies are told who follow a Sidecar, of
// their own namespace or the root namespace, is what they are told by one that
// writes their namespace out.
func TestDotIsTheCallersNamespace(t *testing.T) {
	root := mesh.DefaultSettings().RootNamespace
	rapid.Check(t, func(rt *rapid.T) {
		caller := rapid.SampledFrom([]string{schema.DefaultNamespace, "other"}).Draw(rt, "caller's namespace")
		var others []*schema.Object
		for _, o := range meshgen.Objects(rt) {
			if o.Kind.Kind != "Sidecar" {
				o = inNamespace(t, o, rapid.SampledFrom([]string{schema.DefaultNamespace, "other", root}).Draw(rt, "namespace"))
				others = append(others, o)
			}
		}
		host := rapid.SampledFrom([]string{"*", "a.default.svc.cluster.local", "c.example.com", "*.example.com", "*.local"}).Draw(rt, "import")
		further := rapid.SampledFrom([][]string{nil, {root + "/*"}, {"default/b.default.svc.cluster.local"}, {"*/*.com"}}).Draw(rt, "further imports")
		home := rapid.SampledFrom([]string{caller, root}).Draw(rt, "of the Sidecar")
		importing := func(namespace string) *schema.Object {
			return objectIn(t, home, "Sidecar", "default", spec{"egress": []spec{{"hosts": append([]string{namespace + "/" + host}, further...)}}})
		}
		pilot, node := drawPilot(rt), "sidecar~10.1.0.1~x~"+caller+".svc.cluster.local"
		want, _ := compiledAs(t, pilot, node, append(slices.Clone(others), importing(caller)))
		got, _ := compiledAs(t, pilot, node, append(slices.Clone(others), importing(".")))
		if d := difference(want, got); d != "" {
			rt.Fatalf("written out (-) and by a dot (+):\n%s", d)
		}
	})
}

// TestImportOfNobody: by whatever pattern a Sidecar asks for hosts of a namespace
// that has none such, its author hears of it.
func TestImportOfNobody(t *testing.T) {
	const nothing = "it imports nothing by "
	for host, want := range map[string]bool{
		"nosuchns/*": true, "nosuchns/ratings.team-a.svc.cluster.local": true, "team-a/*.team-b.svc.cluster.local": true,
		"./nobody.example": true, "./*.nobody.example": true, "team-b/*": true,
		"team-a/*": false, "./*": false, "*/*": false, "istio-system/*": false, "*/*.team-a.svc.cluster.local": false,
		"./*.team-a.svc.cluster.local": false, "team-a/ratings.team-a.svc.cluster.local": false, "~/*": false,
	} {
		_, problems := compiled(t, "sidecar~10.99.0.1~caller~team-a.svc.cluster.local", []*schema.Object{
			hostIn(t, "team-a", "ratings"), hostIn(t, "team-b", "hidden", "."),
			objectIn(t, "team-a", "Sidecar", "default", spec{"egress": []spec{{"hosts": []string{host}}}}),
		})
		got := len(problems) == 1 && strings.Contains(problems[0].Message, nothing+host+":")
		if got != want || len(problems) > 1 {
			t.Errorf("%s: %v", host, problems)
		}
	}
}

// TestSocketBehindSidecar: the port of a Sidecar stays taken when what listens behind it
// is a socket that the settings do not allow, so that calls to it fail.
func TestSocketBehindSidecar(t *testing.T) {
	objs := objects(t, `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: own}
spec:
  hosts: [own.default.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 10.1.0.7}]
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: own}
spec:
  ingress:
  - {port: {number: 80, protocol: HTTP, name: http}, defaultEndpoint: 'unix:///run/app/http.sock'}
`)
	for _, test := range []struct {
		folders, private []string
		hosts, problems  int
	}{
		{nil, nil, 0, 1},
		{[]string{"/run/other"}, nil, 0, 1},
		{[]string{"/run"}, []string{"/run/app"}, 0, 1},
		{[]string{"/run/app"}, []string{"/data"}, 1, 0},
	} {
		settings := mesh.DefaultSettings()
		settings.UnixSocketFolders, settings.PrivateFolders = test.folders, test.private
		snapshot := mesh.NewSnapshot(1, settings, objs)
		config, problems := compile.Proxy(snapshot, snapshot.TraitsOf(proxy(t, "sidecar~10.1.0.7~own.default~default.svc.cluster.local")))
		if len(problems) != test.problems || test.problems > 0 && (problems[0].Field != "spec.ingress[0].defaultEndpoint" || problems[0].Reason != diag.NotHonoured) {
			t.Errorf("with %q: %v", test.folders, problems)
		}
		if !slices.ContainsFunc(config.Listeners, func(l *ir.Listener) bool { return l.Port == 80 && l.Direction == ir.Inbound }) {
			t.Errorf("with %q nobody takes the calls to the port", test.folders)
		}
		at := slices.IndexFunc(config.Clusters, func(c *ir.Cluster) bool { return c.Name == "in.80" })
		if at < 0 || len(config.Clusters[at].Hosts) != test.hosts {
			t.Errorf("with %q what is behind the port is %+v", test.folders, config.Clusters)
		}
	}
}
