package compile

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// name is what others delegate by.
func (vs *virtualService) name() string { return vs.ref.Namespace + "/" + vs.ref.Name }

// delegateName is the VirtualService that a route delegates to; "" for none.
func (vs *virtualService) delegateName(d *networking.Delegate) string {
	switch {
	case d == nil:
		return ""
	case d.GetNamespace() != "":
		return d.GetNamespace() + "/" + d.GetName()
	}
	return vs.ref.Namespace + "/" + d.GetName()
}

// delegateNames are those of all its routes, each once.
func (vs *virtualService) delegateNames() []string {
	var out []string
	for _, r := range vs.http {
		if name := vs.delegateName(r.spec.GetDelegate()); name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// delegate is the one that a route delegates to, and why there is none.
func (p *plan) delegate(vs *virtualService, d *networking.Delegate) (to *virtualService, missing string) {
	named := p.virtualNamed.under(p, vs.delegateName(d))
	switch {
	case len(vs.spec.GetHosts()) == 0:
		return nil, "what was delegated is not delegated again"
	case len(named) == 0:
		return nil, "there is no such VirtualService"
	case len(named[0].spec.GetHosts()) > 0:
		return nil, "it has hosts of its own, and so nothing is delegated to it"
	case !p.pilot().AnyNamespaceRules && !mesh.Exported(named[0].exportTo(), named[0].ref.Namespace, vs.ref.Namespace):
		return nil, "it is not exported to namespace " + vs.ref.Namespace
	}
	return named[0], ""
}

// httpRoutesOf are the HTTP routes with those that they delegate to.
func (p *plan) httpRoutesOf(vs *virtualService) []*httpRoute {
	if len(vs.delegateNames()) == 0 {
		return vs.http
	}
	return p.delegated.Get(p.r, vs)
}

// mergeDelegates puts the routes of delegates in the place of those that delegate
// to them, as Istio does. A route without its delegate stays, and is closed.
func (p *plan) mergeDelegates(vs *virtualService) []*httpRoute {
	var out []*httpRoute
	for _, r := range vs.http {
		if r.spec.GetDelegate() == nil {
			out = append(out, r)
			continue
		}
		to, _ := p.delegate(vs, r.spec.GetDelegate())
		if to == nil {
			out = append(out, r)
			continue
		}
		for _, inner := range to.http {
			if merged := p.mergeRoute(r, inner); merged != nil {
				out = append(out, merged)
			}
		}
	}
	return out
}

// mergeRoute is nil for a route that asks for what the other one rules out. What
// is wrong with either was reported where it stands.
func (p *plan) mergeRoute(outer, inner *httpRoute) *httpRoute {
	matches, ok := mergeMatches(outer.spec.GetMatch(), inner.spec.GetMatch())
	if !ok {
		return nil
	}
	out := p.context(nil).httpRoute(inner.of, inner.field, withDefaults(inner.spec, outer.spec, matches))
	out.route.Operation = outer.of.ref.Name
	out.route.Origins = []diag.Ref{outer.of.ref, inner.of.ref}
	if out.route.WebSocket = inner.route.WebSocket; outer.route.WebSocket != ir.UpgradeByDefault {
		out.route.WebSocket = outer.route.WebSocket
	}
	out.closed = out.closed || inner.closed
	return out
}

// withDefaults is the inner route with what only the outer one says.
func withDefaults(inner, outer *networking.HTTPRoute, matches []*networking.HTTPMatchRequest) *networking.HTTPRoute {
	out := proto.CloneOf(inner)
	out.Match = matches
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

// or takes a default for what is not given.
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

// mergeMatches are the ways to come to a route through another: each of the inner
// must be narrower than one of the outer, or the route takes nothing.
func mergeMatches(outer, inner []*networking.HTTPMatchRequest) (out []*networking.HTTPMatchRequest, ok bool) {
	if len(outer) == 0 {
		return inner, true
	}
	if len(inner) == 0 {
		return outer, true
	}
	for _, in := range inner {
		found := false
		for _, of := range outer {
			if merged, ok := mergeMatch(of, in); ok {
				out, found = append(out, merged), true
			}
		}
		if !found {
			return nil, false
		}
	}
	return out, true
}

func mergeMatch(outer, inner *networking.HTTPMatchRequest) (*networking.HTTPMatchRequest, bool) {
	out := proto.CloneOf(inner)
	out.Name = joined(outer.GetName(), inner.GetName())
	if inner.GetUri() == nil {
		out.IgnoreUriCase = outer.GetIgnoreUriCase()
	}
	ok := (inner.GetUri() == nil || outer.GetUri() == nil || inner.GetIgnoreUriCase() == outer.GetIgnoreUriCase()) &&
		narrow(&out.Uri, outer.GetUri()) && narrow(&out.Scheme, outer.GetScheme()) &&
		narrow(&out.Method, outer.GetMethod()) && narrow(&out.Authority, outer.GetAuthority()) &&
		narrowAll(&out.Headers, outer.GetHeaders(), narrower) && narrowAll(&out.QueryParams, outer.GetQueryParams(), narrower) &&
		narrowAll(&out.WithoutHeaders, outer.GetWithoutHeaders(), sameText) &&
		narrowAll(&out.SourceLabels, outer.GetSourceLabels(), func(a, b string) bool { return a == b }) &&
		sameOrUnset(&out.Port, outer.GetPort()) && sameOrUnset(&out.SourceNamespace, outer.GetSourceNamespace())
	if out.StatPrefix == "" {
		out.StatPrefix = outer.GetStatPrefix()
	}
	if len(out.Gateways) == 0 {
		out.Gateways = outer.GetGateways()
	}
	return out, ok
}

// sameOrUnset takes the outer value for one that is not given, and no other one.
func sameOrUnset[T comparable](inner *T, outer T) bool {
	var unset T
	if *inner == unset {
		*inner = outer
	}
	return outer == unset || *inner == outer
}

func narrow(inner **networking.StringMatch, outer *networking.StringMatch) bool {
	if *inner == nil || outer == nil {
		or(inner, outer)
		return true
	}
	return narrower(*inner, outer)
}

func narrowAll[T any](inner *map[string]T, outer map[string]T, fits func(inner, outer T) bool) bool {
	out := maps.Clone(outer)
	if out == nil {
		out = map[string]T{}
	}
	for name, in := range *inner {
		if of, both := outer[name]; both && !fits(in, of) {
			return false
		}
		out[name] = in
	}
	*inner = out
	return true
}

func sameText(a, b *networking.StringMatch) bool { return proto.Equal(a, b) }

// narrower reports whether the inner condition takes nothing that the outer one
// does not. Of regular expressions nobody can tell, unless they are the same.
func narrower(inner, outer *networking.StringMatch) bool {
	switch of := outer.GetMatchType().(type) {
	case nil: // Presence, which any condition asks for.
		return true
	case *networking.StringMatch_Prefix:
		in, isPrefix := inner.GetMatchType().(*networking.StringMatch_Prefix)
		exact, isExact := inner.GetMatchType().(*networking.StringMatch_Exact)
		return isPrefix && strings.HasPrefix(in.Prefix, of.Prefix) || isExact && strings.HasPrefix(exact.Exact, of.Prefix)
	}
	return reflect.DeepEqual(inner.GetMatchType(), outer.GetMatchType())
}

// checkDelegates reports routes that have no delegate, and those of a delegate
// that take nothing.
func (p *plan) checkDelegates(vs *virtualService) {
	for _, r := range vs.http {
		d := r.spec.GetDelegate()
		if d == nil {
			continue
		}
		to, missing := p.delegate(vs, d)
		if to == nil {
			p.report(diag.Problem{
				Severity: diag.Warning, Reason: diag.NoSuchReference, Object: vs.ref, Field: r.field + ".delegate",
				Value: fmt.Sprintf("%q", vs.delegateName(d)), Message: "the route answers 503: " + missing,
			})
			continue
		}
		for _, inner := range to.http {
			if _, ok := mergeMatches(r.spec.GetMatch(), inner.spec.GetMatch()); !ok {
				p.conflict(to.ref, inner.field+".match", fmt.Sprintf("the route takes nothing of what %s delegates in %s: "+
					"each of its conditions must be narrower than one there, and of a regex nobody can tell", vs.ref, r.field))
			}
		}
	}
	if len(vs.spec.GetHosts()) == 0 && len(p.delegators.under(p, vs.name())) == 0 {
		p.notHonoured(vs.ref, "spec.hosts", "no request follows it: it has no hosts, and no VirtualService delegates to it")
	}
}
