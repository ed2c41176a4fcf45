package compile

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/compile/query"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// TestExceptionsLeaveOutNobody: callers that no exception names have the routes and
// clusters of the rest, computed without sharing anything between namespaces.
func TestExceptionsLeaveOutNobody(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		settings := mesh.DefaultSettings()
		settings.RootNamespace = "root"
		settings.V1Compatibility.AnyNamespaceRules = rapid.IntRange(0, 9).Draw(rt, "any namespace") == 0
		c := NewCompiler()
		c.Advance(mesh.NewSnapshot(1, settings, drawTeams(rt)))
		c.model.graph.Do(func(r *query.Reader) {
			p := c.model.context(r)
			for _, svc := range p.services() {
				for _, port := range svc.Ports {
					checkRest(rt, p, servicePort{svc, port})
				}
			}
		})
	})
}

// checkRest compares the callers of each namespace that no exception names with the
// rest.
func checkRest(rt *rapid.T, p *plan, at servicePort) {
	apart := p.portExcept.Get(p.r, at)
	rest := unshared(p.forDomain(""), at)
	for _, namespace := range append([]string{"other"}, teamNamespaces...) {
		for _, labels := range []mesh.Labels{{}, {"app": "web"}} {
			d := p.homeWith(namespace, labels)
			if apart.has(namespace) || d.service(at.service.Hostname) != at.service {
				continue
			}
			if found := unshared(d, at); !reflect.DeepEqual(found, rest) {
				rt.Fatalf("callers in namespace %s with labels %v have other rules for %s than the rest, but only %+v are excepted:\n%+v\n%+v",
					namespace, labels, at.service.Hostname, apart, found, rest)
			}
		}
	}
}

// seen is the routes to a port, and the clusters that they lead to.
type seen struct {
	routes   []plannedRoute
	clusters []clusterPart
}

// unshared computes what callers have as if no two namespaces shared anything.
func unshared(d *viewpoint, at servicePort) seen {
	var out seen
	if vs := d.virtualFor(at.service.Hostname); vs != nil {
		out.routes = d.virtualRoutes(layoutKey{vs: vs, at: at, domain: d.domain, selection: d.selection})
	} else {
		out.routes = d.routesTo(at.service, at.port)
	}
	for _, planned := range out.routes {
		for _, t := range planned.targets {
			out.clusters = append(out.clusters, d.clusterOf(clusterKey{target: t, domain: d.domain, selection: d.selection}))
		}
	}
	return out
}

var teamNamespaces = []string{"a", "b", "c", "root"}

// drawTeams draws services of several namespaces, and rules for them and for
// wildcards that only some callers see.
func drawTeams(rt *rapid.T) []*schema.Object {
	var out []*schema.Object
	add := func(kindName, spec string, named ...any) {
		kind, _ := schema.KindByName(kindName)
		meta := metav1.ObjectMeta{Name: fmt.Sprintf("o-%d", len(out)), Namespace: rapid.SampledFrom(teamNamespaces).Draw(rt, "namespace")}
		o, err := schema.New(kind, meta, []byte(fmt.Sprintf(spec, named...)))
		if err != nil {
			rt.Fatal(err)
		}
		out = append(out, o)
	}
	exportTo := func() string {
		return rapid.SampledFrom([]string{`["*"]`, `["."]`, `["a"]`, `["a","c"]`, `[".","b"]`, `["other"]`}).Draw(rt, "exportTo")
	}
	services := []string{"x.a.svc.cluster.local", "y.b.svc.cluster.local", "z.example.com"}
	named := append([]string{"*.a.svc.cluster.local", "*.example.com", "*.local"}, services...)
	host := func() string { return rapid.SampledFrom(named).Draw(rt, "host") }
	for i, service := range services {
		add("ServiceEntry", `{"hosts":[%q],"exportTo":%s,"resolution":"STATIC","location":"MESH_INTERNAL","ports":[{"number":80,"name":"http","protocol":"HTTP"}],"endpoints":[{"address":"10.0.0.%d","labels":{"v":"1"}}]}`,
			service, rapid.SampledFrom([]string{`["*"]`, `["*"]`, `["*"]`, exportTo()}).Draw(rt, "of the service"), i+1)
	}
	for range rapid.IntRange(0, 4).Draw(rt, "VirtualServices") {
		to := rapid.SampledFrom(services).Draw(rt, "destination")
		add("VirtualService", `{"hosts":[%q],"exportTo":%s,"http":[{"route":[{"destination":{"host":%q%s}}]}]}`,
			host(), exportTo(), to, rapid.SampledFrom([]string{"", `,"subset":"v1"`}).Draw(rt, "subset"))
	}
	if rapid.Bool().Draw(rt, "RouteRule") {
		add("RouteRule", `{"destination":{"name":"x","namespace":"a"},"route":[{"destination":{"name":"y","namespace":"b"}}]}`)
	}
	for i := range rapid.IntRange(0, 4).Draw(rt, "DestinationRules") {
		selector := rapid.SampledFrom([]string{"", "", `,"workloadSelector":{"matchLabels":{"app":"web"}}`}).Draw(rt, "selector")
		if selector != "" {
			selector += `,"exportTo":["."]`
		} else {
			selector = `,"exportTo":` + exportTo()
		}
		add("DestinationRule", `{"host":%q,"trafficPolicy":{"connectionPool":{"tcp":{"maxConnections":%d}}},"subsets":[{"name":"v1","labels":{"v":"1"}}]%s}`,
			host(), i+1, selector)
	}
	return out
}
