package compile_test

import (
	"slices"
	"testing"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// limitOf is the most connections of the one cluster of host b; 0 where no rule
// says so.
func limitOf(t *testing.T, settings *mesh.Settings, node string, objs []*schema.Object) int {
	t.Helper()
	s := mesh.NewSnapshot(1, settings, objs)
	config, _ := compile.Proxy(s, s.TraitsOf(proxy(t, node)))
	at := slices.IndexFunc(config.Clusters, func(c *ir.Cluster) bool { return c.Name == "out.b.default.svc.cluster.local|http" })
	if at < 0 {
		t.Fatalf("%s does not know the host", node)
	}
	if limits := config.Clusters[at].CircuitBreaker; limits != nil {
		return limits.MaxConnections
	}
	return 0
}

func limiting(t *testing.T, namespace, name string, limit int, more spec) *schema.Object {
	s := spec{"host": "b.default.svc.cluster.local", "trafficPolicy": spec{"connectionPool": spec{"tcp": spec{"maxConnections": limit}}}}
	for k, v := range more {
		s[k] = v
	}
	return objectIn(t, namespace, "DestinationRule", name, s)
}

// TestSelectedCallers: a DestinationRule with a selector is for those that it
// fits, of whatever role, and for nobody else, whichever rules a mesh keeps.
func TestSelectedCallers(t *testing.T) {
	selecting := func(labels spec) spec { return spec{"workloadSelector": spec{"matchLabels": labels}} }
	objs := []*schema.Object{
		object(t, "ServiceEntry", "b", spec{
			"hosts": []string{"b.default.svc.cluster.local"}, "location": "MESH_INTERNAL", "resolution": "STATIC",
			"ports": []spec{{"number": 80, "name": "http", "protocol": "HTTP"}}, "endpoints": []spec{{"address": "10.1.0.9"}},
		}),
		object(t, "ServiceEntry", "caller", spec{
			"hosts": []string{"caller.default.svc.cluster.local"}, "location": "MESH_INTERNAL", "resolution": "STATIC",
			"ports": []spec{{"number": 80, "name": "http", "protocol": "HTTP"}}, "endpoints": []spec{{"address": "10.1.0.1", "labels": spec{"app": "web"}}},
		}),
		object(t, "IngressRule", "all", spec{"destination": spec{"name": "b"}, "destinationPort": 80}),
		limiting(t, "default", "all", 1, nil),
		limiting(t, "default", "web", 2, selecting(spec{"app": "web"})),
		limiting(t, "shop", "any", 3, selecting(nil)),
		limiting(t, "shop", "web", 4, selecting(spec{"app": "web"})),
	}
	for _, pilot := range []mesh.V1Compatibility{{}, mesh.AsPilot(), {AnyNamespaceRules: true}, {ShortNamesByCaller: true}} {
		settings := mesh.DefaultSettings()
		settings.V1Compatibility = pilot
		for node, want := range map[string]int{
			"sidecar~10.1.0.1~x~default.svc.cluster.local":                         2,
			"sidecar~10.9.9.9~x~default.svc.cluster.local":                         1,
			"sidecar~10.9.9.9~x~default.svc.cluster.local labels=app=web,v=1":      2,
			"sidecar~10.9.9.9~x~default.svc.cluster.local labels=app=other":        1,
			"sidecar~10.9.9.9~x~other.svc.cluster.local labels=app=web":            1,
			"sidecar~10.9.9.9~x~shop.svc.cluster.local":                            3,
			"sidecar~10.9.9.9~x~ labels=app=web":                                   1,
			"sidecar~10.9.9.9~x~ labels=app=web namespace=default":                 2,
			"router~10.9.9.9~x~default.svc.cluster.local":                          1,
			"router~10.1.0.1~x~default.svc.cluster.local":                          2,
			"ingress~10.9.9.9~x~default.svc.cluster.local":                         1,
			"ingress~10.9.9.9~x~default.svc.cluster.local labels=app=web":          2,
			"ingress~10.1.0.1~x~default.svc.cluster.local":                         2,
			"sidecar~10.9.9.9~x~shop.svc.cluster.local labels=app=other,track=old": 3,
		} {
			if got := limitOf(t, settings, node, objs); got != want {
				t.Errorf("%+v: %s has limit %d, want %d", pilot, node, got, want)
			}
		}
	}
}
