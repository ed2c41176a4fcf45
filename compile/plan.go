package compile

import (
	"fmt"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// plan is all that compiling needs and that no view changes. It is made once a
// snapshot and not changed after that, so views may be compiled in parallel.
type plan struct {
	snap     *mesh.Snapshot
	rules    map[string][]*routeRule        // by destination host, first to apply first
	routes   map[servicePort][]plannedRoute // of HTTP ports, the last one without source or match
	policies map[string][]*policy           // by destination host, first to win first
	versions map[labelled]bool              // whether any instance is of the version
	routed   map[labelled]bool              // versions that some route goes to
	problems diag.List
}

// servicePort is needed where ports are told apart: the hosts of one
// ServiceEntry have the very same ports.
type servicePort struct {
	service *mesh.Service
	port    *mesh.Port
}

type planKey struct{}

func planOf(s *mesh.Snapshot) *plan {
	return s.Derived(planKey{}, func() any { return newPlan(s) }).(*plan)
}

func newPlan(s *mesh.Snapshot) *plan {
	p := &plan{
		snap:     s,
		rules:    map[string][]*routeRule{},
		routes:   map[servicePort][]plannedRoute{},
		policies: map[string][]*policy{},
		versions: map[labelled]bool{},
		routed:   map[labelled]bool{},
	}
	p.planRouteRules()
	p.planRoutes()
	p.planDestinationPolicies()
	p.reportWithoutEffect("EgressRule")
	p.reportWithoutEffect("IngressRule")
	return p
}

func (p *plan) report(problem diag.Problem) { p.problems = append(p.problems, problem) }

// specs hands over the typed specs of a kind in tie-break order, and reports
// those that do not decode.
func specs[T any](p *plan, kind string, take func(*schema.Object, *T)) {
	for _, o := range p.snap.Objects(kind) {
		spec, err := o.Spec()
		typed, ok := spec.(*T)
		if err != nil || !ok {
			p.report(diag.Problem{
				Severity: diag.Warning, Reason: diag.Malformed, Object: o.Key().Ref(), Field: "spec",
				Message: fmt.Sprintf("the object is left out, its spec does not decode: %v", err),
			})
			continue
		}
		take(o, typed)
	}
}

func (p *plan) reportNoDestination(o *schema.Object) {
	p.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.FieldRequired, Object: o.Key().Ref(), Field: "spec.destination",
		Message: "the object is left out: it must say which service it is for",
	})
}

// reportWithoutEffect tells authors of kinds that are stored but not yet
// compiled.
func (p *plan) reportWithoutEffect(kind string) {
	for _, o := range p.snap.Objects(kind) {
		p.report(diag.Problem{
			Severity: diag.Warning, Reason: diag.NotHonoured, Object: o.Key().Ref(),
			Message: "the object is stored, but proxies do not follow this kind yet",
		})
	}
}
