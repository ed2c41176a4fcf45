package compile_test

import (
	"testing"

	"github.com/pilot-api/pilot-api/compile"
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
			configs[i], _ = compiler.Proxy(s.View(proxy(t, node)))
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
	if n := compiler.Runs() - runs; n > 0 {
		t.Errorf("%d results were computed again", n)
	}
	more = append(more, service("team-a", "more", 80))
	if after := advance(3, more); after[0] == before[0] || after[1] == before[1] {
		t.Error("a new service that is imported concerned nobody")
	}
}
