package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// inMergeOrder sorts the VirtualServices of one host of one listener by age. If one of
// them is withheld, it returns only that one, so that the host is closed: we do not
// know which requests its routes would take from those of others.
func (rd *reader) inMergeOrder(bound []*boundHost) []*boundHost {
	for i, b := range bound {
		if len(b.vs.http) > 0 && rd.withheld(b.vs.declared) {
			return bound[i : i+1]
		}
	}
	out := slices.Clone(bound)
	slices.SortStableFunc(out, func(a, b *boundHost) int { return rd.inAgeOrder(a.vs.declared, b.vs.declared) })
	return out
}

// byHost groups the bindings of a group of servers by host, in the order in which
// the hosts were first bound.
func (rd *reader) byHost(bound []*boundHost) [][]*boundHost {
	var out [][]*boundHost
	at := map[string]int{}
	for _, b := range bound {
		key := strings.ToLower(b.host)
		i, known := at[key]
		if !known {
			i = len(out)
			at[key] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], b)
	}
	for i := range out {
		out[i] = rd.inMergeOrder(out[i])
	}
	return out
}

// mergedRoutes merges the routes that several VirtualServices have for one host, as
// Istio does. The routes keep their order, but the catch-all route of each
// VirtualService moves behind all others, and only the first of these is used. The
// routes of a VirtualService end with its catch-all route.
func mergedRoutes(lists [][]plannedRoute) []plannedRoute {
	if len(lists) == 1 {
		return lists[0]
	}
	var out, last []plannedRoute
	for _, routes := range lists {
		end := slices.IndexFunc(routes, plannedRoute.takesAll)
		if end < 0 {
			out = append(out, routes...)
			continue
		}
		out = append(out, routes[:end]...)
		last = append(last, routes[end])
	}
	return append(out, last[:min(1, len(last))]...)
}

// takesAll reports whether the route was written for every request. A route that
// was written for some requests, and is closed for more, was not: it keeps its
// place, as later routes must not get requests that it might have refused.
func (planned plannedRoute) takesAll() bool {
	return !planned.partly && takesEvery(planned.route.Match)
}

// takesEvery reports whether Istio knows that every request matches.
func takesEvery(m ir.Match) bool {
	if m.Regex == ".*" {
		m.Regex = ""
	}
	return m.CatchAll()
}

// checkMerged reports routes that are never used because an earlier VirtualService
// of the host takes all their requests.
func (p *plan) checkMerged(listener *edgeListener, bound []*boundHost) {
	if len(bound) < 2 {
		return
	}
	earlier := takenRequests{prefixes: map[string]*virtualService{}, paths: map[string]*virtualService{}}
	for _, b := range bound {
		own := p.matchesAt(b, listener.port)
		for _, at := range own {
			if first := earlier.by(at.match); first != nil {
				p.conflict(diag.GatewayClaimed, b.vs.ref, fieldIn(at.route, b.vs), fmt.Sprintf(
					"requests for %s at port %d that the route is for follow %s, which comes first", b.host, listener.port, first.ref))
			}
		}
		for _, at := range own {
			earlier.take(at.match, b.vs)
		}
	}
}

// matchAt is a route and one of its matches.
type matchAt struct {
	route *httpRoute
	match routeMatch
}

// matchesAt returns the matches through which requests of any source reach the
// routes of a host at a port, up to one that takes every request.
func (rd *reader) matchesAt(b *boundHost, port int) []matchAt {
	var out []matchAt
	for _, r := range rd.httpRoutesOf(b.vs) {
		for _, m := range r.matches {
			if m.sidecarOnly || m.source != nil || m.port != 0 && int(m.port) != port || !b.serves(m.gateways) {
				continue
			}
			out = append(out, matchAt{r, m})
			if !m.closed && takesEvery(m.match) {
				return out
			}
		}
	}
	return out
}

// takenRequests records the requests that VirtualServices take by path alone. It
// ignores conditions on headers and regular expressions. So each match that it
// reports is never used, but it does not find all that are never used.
type takenRequests struct {
	every           *virtualService
	last            *virtualService // of the open catch-all route: it takes the requests that are left
	prefixes, paths map[string]*virtualService
}

func (t *takenRequests) take(m routeMatch, vs *virtualService) {
	of, at := t.paths, m.match.Path
	switch every := takesEvery(m.match); {
	case every && m.closed && t.every == nil:
		t.every = vs
		return
	case every && t.last == nil:
		t.last = vs
		return
	case every || m.match.IgnoreCase || m.match.Regex != "" || len(m.match.Headers)+len(m.match.Query) > 0:
		return
	case at == "":
		of, at = t.prefixes, m.match.Prefix
	}
	if of[at] == nil {
		of[at] = vs
	}
}

// by returns the first VirtualService that takes all requests of a match, or nil.
func (t *takenRequests) by(m routeMatch) *virtualService {
	switch {
	case t.every != nil:
		return t.every
	case takesEvery(m.match) && !m.closed:
		return t.last
	case m.match.Regex != "" || m.match.IgnoreCase:
		return nil
	case m.match.Path != "" && t.paths[m.match.Path] != nil:
		return t.paths[m.match.Path]
	}
	path := m.match.Path + m.match.Prefix
	for end := range len(path) {
		if vs := t.prefixes[path[:end+1]]; vs != nil {
			return vs
		}
	}
	return nil
}

// fieldIn returns the field of a route in a VirtualService. For a route of a
// delegate, which is in another object, it returns spec.http.
func fieldIn(r *httpRoute, vs *virtualService) string {
	if r.virtual == vs {
		return r.field
	}
	return "spec.http"
}
