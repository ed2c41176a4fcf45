package compile

import (
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
)

// gatewaySet is the names of a router's Gateways in tie-break order, joined by
// newlines, which no name contains.
type gatewaySet string

func (s gatewaySet) names() []string {
	if s == "" {
		return nil
	}
	return strings.Split(string(s), "\n")
}

// gatewaysFor returns the Gateways whose selector fits.
func (rd *reader) gatewaysFor(fits func(selector mesh.Labels) bool) gatewaySet {
	var names []string
	for _, gw := range rd.gateways.rules(rd) {
		if fits(gw.selector) {
			names = append(names, gw.name())
		}
	}
	return gatewaySet(strings.Join(names, "\n"))
}

// gatewaySets returns, for each selector, the Gateways of a router that has exactly
// the labels of the selector. Each Gateway is in at least one set.
func (rd *reader) gatewaySets() []gatewaySet {
	var out []gatewaySet
	selectors := map[string]bool{}
	for _, gw := range rd.gateways.rules(rd) {
		if selectors[gw.selector.String()] {
			continue
		}
		selectors[gw.selector.String()] = true
		out = append(out, rd.gatewaysFor(func(other mesh.Labels) bool { return other.SubsetOf(gw.selector) }))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// edgeSurvey is the result of Gateways at any router.
type edgeSurvey struct {
	served   map[binding]bool
	arrivals map[*virtualService][]arrival
	problems diag.List
}

// surveyEdges covers the routers of gatewaySets.
func (rd *reader) surveyEdges() *edgeSurvey {
	out := &edgeSurvey{served: map[binding]bool{}, arrivals: map[*virtualService][]arrival{}}
	for _, set := range rd.gatewaySets() {
		edges := rd.edges.Get(rd.r, set)
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

// unlike returns the problems of a list that are not in known.
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

// gatewaySet returns the Gateways of the router. If there are Gateways but the
// router has none, it reports that, as this is hardly intended.
func (c *writer) gatewaySet() gatewaySet {
	set := c.plan.gatewaysFor(c.caller.bears)
	if set != "" {
		return set
	}
	for _, gw := range c.plan.gateways.rules(&c.plan.reader) {
		c.plan.notHonoured(diag.SelectsNothing, gw.ref, "spec.selector", "a router that has none of these labels opens no port: let its node state them in metadata.LABELS "+
			"(istioctl bootstrap --labels), or register an instance with them at its address")
	}
	return set
}
