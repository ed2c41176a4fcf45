package compile

import (
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
)

// gatewaySet are the names of the Gateways that a router has, in tie-break
// order, joined by line ends, which none has.
type gatewaySet string

func (s gatewaySet) names() []string {
	if s == "" {
		return nil
	}
	return strings.Split(string(s), "\n")
}

// gatewaysFor are those whose selector a router fits.
func (p *plan) gatewaysFor(fits func(selector mesh.Labels) bool) gatewaySet {
	var names []string
	for _, gw := range p.gateways.rules(p) {
		if fits(gw.selector) {
			names = append(names, gw.name())
		}
	}
	return gatewaySet(strings.Join(names, "\n"))
}

// gatewaySets are those of the routers that bear the labels of one selector, and
// no others: each Gateway is in one.
func (p *plan) gatewaySets() []gatewaySet {
	var out []gatewaySet
	selectors := map[string]bool{}
	for _, gw := range p.gateways.rules(p) {
		if selectors[gw.selector.String()] {
			continue
		}
		selectors[gw.selector.String()] = true
		out = append(out, p.gatewaysFor(func(other mesh.Labels) bool { return other.SubsetOf(gw.selector) }))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// edgeSurvey is what becomes of Gateways at some router.
type edgeSurvey struct {
	served   map[binding]bool
	arrivals map[*virtualService][]arrival
	problems diag.List
}

// surveyEdges is about the routers of gatewaySets.
func (p *plan) surveyEdges() *edgeSurvey {
	out := &edgeSurvey{served: map[binding]bool{}, arrivals: map[*virtualService][]arrival{}}
	for _, set := range p.gatewaySets() {
		edges := p.edges.Get(p.r, set)
		for b := range edges.served {
			out.served[b] = true
		}
		for vs, all := range edges.arrivals {
			out.arrivals[vs] = append(out.arrivals[vs], all...)
		}
		out.problems = append(out.problems, unlike(out.problems, edges.problems)...)
	}
	return out
}

// unlike are the problems of a list that are not known.
func unlike(known, list diag.List) diag.List {
	if len(list) == 0 {
		return nil
	}
	seen := make(map[diag.Problem]bool, len(known))
	for _, problem := range known {
		seen[problem] = true
	}
	var out diag.List
	for _, problem := range list {
		if !seen[problem] {
			out = append(out, problem)
		}
	}
	return out
}

// gatewaySet are the Gateways of the router. One that has none, where there are
// some, was hardly started for that.
func (c *writer) gatewaySet() gatewaySet {
	set := c.plan.gatewaysFor(c.caller.bears)
	if set != "" {
		return set
	}
	for _, gw := range c.plan.gateways.rules(c.plan) {
		c.plan.notHonoured(diag.SelectsNothing, gw.ref, "spec.selector", "a router that has none of these labels opens no port: let its node state them in metadata.LABELS "+
			"(istioctl bootstrap --labels), or register an instance with them at its address")
	}
	return set
}
