package compile

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// name returns the name that others use to delegate to it.
func (vs *virtualService) name() string { return vs.ref.Namespace + "/" + vs.ref.Name }

// delegateName returns the VirtualService that a route delegates to, or "".
func (vs *virtualService) delegateName(d *networking.Delegate) string {
	switch {
	case d == nil:
		return ""
	case d.GetNamespace() != "":
		return d.GetNamespace() + "/" + d.GetName()
	}
	return vs.ref.Namespace + "/" + d.GetName()
}

// delegateNames returns the delegates of all its routes, each once.
func (vs *virtualService) delegateNames() []string {
	return slices.Sorted(maps.Keys(vs.size.delegating))
}

// delegate returns the VirtualService that a route delegates to, or why there is
// none.
func (rd *reader) delegate(vs *virtualService, d *networking.Delegate) (to *virtualService, missing string) {
	named := rd.virtualNamed.under(rd, vs.delegateName(d))
	switch {
	case len(vs.spec.GetHosts()) == 0:
		return nil, "a delegate cannot delegate again"
	case len(named) == 0:
		return nil, "there is no such VirtualService"
	case len(named[0].spec.GetHosts()) > 0:
		return nil, "it has hosts of its own, so no route can delegate to it"
	case rd.withheld(named[0].declared):
		return nil, "it multiplies to more than the budget"
	case !rd.pilot().AnyNamespaceRules && !mesh.Exported(named[0].exportTo(), named[0].ref.Namespace, vs.ref.Namespace):
		return nil, "it is not exported to namespace " + vs.ref.Namespace
	}
	return named[0], ""
}

// httpRoutesOf returns the HTTP routes, with delegates merged. A withheld
// VirtualService has a single, closed route.
func (rd *reader) httpRoutesOf(vs *virtualService) []*httpRoute {
	switch {
	case len(vs.http) > 0 && rd.withheld(vs.declared):
		return []*httpRoute{vs.closedRoute()}
	case len(vs.size.delegating) == 0:
		return vs.http
	}
	return rd.delegated.Get(rd.r, vs)
}

// closedRoute returns a route that answers all requests with 503.
func (vs *virtualService) closedRoute() *httpRoute {
	return &httpRoute{
		virtual: vs, spec: &networking.HTTPRoute{}, field: "spec.http", closed: true, matches: []routeMatch{{}},
		route: ir.Route{Operation: vs.ref.Name, Origins: []diag.Ref{vs.ref}},
	}
}

// mergeDelegates replaces the routes that delegate with those of their delegates,
// as Istio does. A route without its delegate stays and is closed.
func (rd *reader) mergeDelegates(vs *virtualService) []*httpRoute {
	var out []*httpRoute
	for _, r := range vs.http {
		if r.spec.GetDelegate() == nil {
			out = append(out, r)
			continue
		}
		to, _ := rd.delegate(vs, r.spec.GetDelegate())
		if to == nil {
			out = append(out, r)
			continue
		}
		for _, inner := range to.http {
			if merged := rd.mergeRoute(r, inner); merged != nil {
				out = append(out, merged)
			}
		}
	}
	return out
}

// mergeRoute returns nil if the inner route takes no request that the outer one
// delegates. Problems of either were reported where it is written.
func (rd *reader) mergeRoute(outer, inner *httpRoute) *httpRoute {
	matches := joinedMatches(outer, inner)
	if len(matches) == 0 {
		return nil
	}
	out := rd.context(nil).httpRoute(inner.virtual, inner.field, withDefaults(inner.spec, outer.spec))
	out.matches = matches
	out.route.Operation = outer.virtual.ref.Name
	out.route.Origins = []diag.Ref{outer.virtual.ref, inner.virtual.ref}
	if out.route.WebSocket = inner.route.WebSocket; outer.route.WebSocket != ir.UpgradeByDefault {
		out.route.WebSocket = outer.route.WebSocket
	}
	out.closed = out.closed || inner.closed
	return out
}

// joinedMatches returns the matches of a route reached through another one.
func joinedMatches(outer, inner *httpRoute) []routeMatch {
	var out []routeMatch
	for _, in := range inner.matches {
		for _, of := range outer.matches {
			if m, ok := joinedMatch(of, in, rewritesPath(outer) || rewritesPath(inner)); ok {
				out = append(out, m)
			}
		}
	}
	return out
}

// rewritesPath reports whether the matched part of the path is replaced.
func rewritesPath(r *httpRoute) bool {
	return r.spec.GetRewrite().GetUri() != "" || r.spec.GetRedirect().GetPrefixRewrite() != ""
}

// withDefaults returns the inner route with the outer one's settings where it has
// none.
func withDefaults(inner, outer *networking.HTTPRoute) *networking.HTTPRoute {
	out := proto.CloneOf(inner)
	out.Name = joined(outer.GetName(), inner.GetName())
	or(&out.Rewrite, outer.GetRewrite())
	or(&out.Timeout, outer.GetTimeout())
	or(&out.Retries, outer.GetRetries())
	or(&out.Fault, outer.GetFault())
	or(&out.CorsPolicy, outer.GetCorsPolicy())
	or(&out.Headers, outer.GetHeaders())
	if inner.GetMirror() == nil && len(inner.GetMirrors()) == 0 {
		out.Mirror, out.Mirrors = outer.GetMirror(), outer.GetMirrors()
		//lint:ignore SA1019 Old objects have it.
		out.MirrorPercentage, out.MirrorPercent = outer.GetMirrorPercentage(), outer.GetMirrorPercent()
	}
	return out
}

// or sets a default for an unset value.
func or[T any](given **T, other *T) {
	if *given == nil {
		*given = other
	}
}

func joined(outer, inner string) string {
	if outer == "" || inner == "" {
		return outer + inner
	}
	return outer + "-" + inner
}

// checkDelegates reports routes without their delegate, and routes of a delegate
// that take no request.
func (p *plan) checkDelegates(vs *virtualService) {
	for _, r := range vs.http {
		d := r.spec.GetDelegate()
		if d == nil {
			continue
		}
		to, missing := p.delegate(vs, d)
		if to == nil {
			p.report(diag.Problem{
				Severity: diag.Warning, Reason: diag.NoSuchReference, Code: diag.UnknownDelegate, Object: vs.ref, Field: r.field + ".delegate",
				Value: fmt.Sprintf("%q", vs.delegateName(d)), Message: "the route answers 503: " + missing,
			})
			continue
		}
		for _, inner := range to.http {
			p.checkDelegated(vs, r, to, inner)
		}
	}
	if len(vs.spec.GetHosts()) == 0 && len(p.delegators.under(&p.reader, vs.name())) == 0 {
		p.notHonoured(diag.UnknownDelegate, vs.ref, "spec.hosts", "no request follows it: it has no hosts, and no VirtualService delegates to it")
	}
}

// checkDelegated reports a route that takes no delegated request, or for which no
// proxy can decide which ones it takes.
func (rp *reporter) checkDelegated(vs *virtualService, outer *httpRoute, to *virtualService, inner *httpRoute) {
	matches := slices.DeleteFunc(joinedMatches(outer, inner), func(m routeMatch) bool { return !vs.bound(m.gateways) })
	closed := func(m routeMatch) bool { return m.closed }
	switch {
	case len(matches) == 0:
		rp.conflict(diag.NeverMatches, to.ref, inner.field+".match", fmt.Sprintf("the route gets none of the requests that %s delegates in %s: no request meets the conditions of both",
			vs.ref, outer.field))
		return
	case slices.ContainsFunc(matches, closed) && !slices.ContainsFunc(slices.Concat(outer.matches, inner.matches), closed):
		rp.notHonoured(diag.Closed, to.ref, inner.field+".match", fmt.Sprintf("requests that %s delegates in %s are answered with 503: "+
			"no proxy can compare a path with the regular expressions of both", vs.ref, outer.field))
	}
	if answersItself(inner.spec) {
		rp.checkUnsaid(vs, outer, to, inner)
	}
}

// bound reports whether requests come through one of some gateways; an empty list
// means all that it has.
func (vs *virtualService) bound(gateways []string) bool {
	return len(gateways) == 0 || slices.ContainsFunc(gateways, func(name string) bool { return vs.serves(nil, name) })
}

// checkUnsaid reports settings of a route that its delegate's route does not apply
// because that answers requests itself.
func (rp *reporter) checkUnsaid(vs *virtualService, outer *httpRoute, to *virtualService, inner *httpRoute) {
	if outer.route.Fault != nil && inner.spec.GetFault() == nil {
		rp.notHonoured(diag.Closed, vs.ref, outer.field+".fault", fmt.Sprintf("requests that come to %s in %s are answered with 503: it answers itself, and injects no fault",
			to.ref, inner.field))
	}
	if outer.route.CORS != nil {
		rp.notHonoured(diag.NotFollowed, vs.ref, outer.field+".corsPolicy", fmt.Sprintf("pages of other origins cannot read the answers of %s in %s: it answers itself, and adds no CORS headers",
			to.ref, inner.field))
	}
}
