package compile

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// meshGateway stands for all sidecars in lists of gateways.
const meshGateway = "mesh"

// WebSocketAnnotation on a VirtualService is a comma-separated list of its http
// routes that upgrade connections to WebSocket. Only older proxies need it;
// others upgrade without configuration, so Istio has no field for it.
const WebSocketAnnotation = "pilot-api/websocket-routes"

// virtualService is a VirtualService with its usable parts.
type virtualService struct {
	declared
	spec     *networking.VirtualService
	exported []string
	http     []*httpRoute
	gateways map[string]bool // names from gatewayName, including the mesh
	size     virtualSize
}

// httpRoute is the part of an entry of spec.http that is the same for all ports.
type httpRoute struct {
	// virtual is the VirtualService that contains the route. Another one may delegate to
	// it.
	virtual *virtualService
	spec    *networking.HTTPRoute
	field   string
	route   ir.Route // without match, clusters and mirror
	matches []routeMatch
	weights []int
	// closed is set if the route cannot act as written. It answers 503.
	closed bool
}

// routeMatch is one match of a route.
type routeMatch struct {
	name       string // of the condition
	statPrefix string
	match      ir.Match
	// closed is set if match has only some of the original conditions and so
	// matches more requests. All of them get 503: a later route must not get
	// requests that this one might have refused.
	closed      bool
	source      *source
	sidecarOnly bool   // whether edge proxies, which have no own instances, ignore it
	port        uint32 // 0 for any
	// gateways through which requests come, as "mesh" or "namespace/name"; empty
	// for any of the VirtualService.
	gateways []string
}

func (vs *virtualService) origin() declared   { return vs.declared }
func (vs *virtualService) exportTo() []string { return vs.exported }

// selector returns nil, because matches select callers.
func (vs *virtualService) selector() mesh.Labels { return nil }

func readVirtualService(p *plan, of declared, spec *networking.VirtualService) *virtualService {
	vs := &virtualService{declared: of, spec: spec, exported: p.settings.ExportTo(spec.GetExportTo()), gateways: map[string]bool{}}
	for _, name := range spec.GetGateways() {
		vs.gateways[vs.gatewayName(name)] = true
	}
	if len(vs.gateways) == 0 {
		vs.gateways[meshGateway] = true
	}
	websockets := p.webSockets(vs)
	for i, entry := range spec.GetHttp() {
		r := p.httpRoute(vs, fmt.Sprintf("spec.http[%d]", i), entry)
		if entry.GetName() != "" && websockets[entry.GetName()] {
			r.route.WebSocket = ir.UpgradeAllowed
		}
		vs.http = append(vs.http, r)
	}
	vs.size = vs.measure()
	return vs
}

// webSockets returns the names of routes that upgrade connections. It reports names
// of routes that do not exist.
func (rp *reporter) webSockets(vs *virtualService) map[string]bool {
	text := vs.object.Meta.Annotations[WebSocketAnnotation]
	if text == "" {
		return nil
	}
	out, there := map[string]bool{}, map[string]bool{}
	for _, r := range vs.spec.GetHttp() {
		there[r.GetName()] = true
	}
	for name := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' }) {
		if out[name] = true; !there[name] {
			rp.report(diag.Problem{
				Severity: diag.Warning, Reason: diag.NoSuchReference, Code: diag.UnknownRoute, Object: vs.ref, Field: "metadata.annotations." + WebSocketAnnotation,
				Value: fmt.Sprintf("%q", name), Message: "no http route has this name",
			})
		}
	}
	return out
}

func (p *plan) httpRoute(of *virtualService, at string, entry *networking.HTTPRoute) *httpRoute {
	ref := of.ref
	r := &httpRoute{virtual: of, spec: entry, field: at, route: ir.Route{
		Operation: ref.Name,
		Timeout:   entry.GetTimeout().AsDuration(),
		Origins:   []diag.Ref{ref},
	}}
	p.readMatches(ref, r)
	p.readAction(ref, r)
	return r
}

// readAction reads what happens to the requests.
func (p *plan) readAction(ref diag.Ref, r *httpRoute) {
	r.route.RequestHeaders = headerOperations(r.spec.GetHeaders().GetRequest())
	r.route.ResponseHeaders = headerOperations(r.spec.GetHeaders().GetResponse())
	switch {
	case r.spec.GetRedirect() != nil:
		r.route.Redirect = p.virtualRedirect(r.spec.GetRedirect())
		r.closed = !schema.Redirects(r.spec.GetRedirect())
	case r.spec.GetDirectResponse() != nil:
		r.route.Response = virtualResponse(r.spec.GetDirectResponse())
	default:
		p.readForwarding(ref, r)
	}
	faulty := answersItself(r.spec) && p.virtualFault(ref, r.field+".fault", r.spec.GetFault()) != nil
	r.closed = !p.checkHeaders(ref, r) || faulty || r.closed
}

// answersItself reports whether requests are not forwarded. Such a route injects no
// fault. If it has one, it is closed, as its author wanted to keep requests off.
func answersItself(r *networking.HTTPRoute) bool {
	return r.GetRedirect() != nil || r.GetDirectResponse() != nil
}

func (p *plan) readForwarding(ref diag.Ref, r *httpRoute) {
	entry := r.spec
	r.route.Rewrite = virtualRewrite(entry.GetRewrite())
	setHost(&r.route, hostOf(entry.GetHeaders().GetRequest()))
	r.route.Retry = p.virtualRetry(entry.GetRetries())
	r.route.Fault = p.virtualFault(ref, r.field+".fault", entry.GetFault())
	r.route.CORS = p.virtualCORS(ref, r.field+".corsPolicy", entry.GetCorsPolicy())
	var weights []int32
	for _, d := range r.spec.GetRoute() {
		weights = append(weights, d.GetWeight())
	}
	r.weights = shares(weights)
	switch {
	case entry.GetDelegate() != nil:
		r.closed = true
	case r.weights == nil:
		p.notHonoured(diag.Closed, ref, r.field, "the route answers 503: it needs a redirect, a directResponse, or destinations of which one has a weight")
		r.closed = true
	case entry.GetRewrite().GetUriRegexRewrite() != nil && !schema.Rewrites(entry.GetRewrite().GetUriRegexRewrite()):
		r.closed = true
	}
}

// serves reports whether a list of gateways contains this one. An empty list means
// the gateways of the VirtualService, which default to the mesh. A name without a
// namespace is in the VirtualService's own.
func (vs *virtualService) serves(gateways []string, gateway string) bool {
	if len(gateways) == 0 {
		return vs.gateways[gateway]
	}
	return slices.ContainsFunc(gateways, func(name string) bool { return vs.gatewayName(name) == gateway })
}

// gatewaysNamed returns gateways as gatewayName does.
func (vs *virtualService) gatewaysNamed(names []string) []string {
	var out []string
	for _, name := range names {
		out = append(out, vs.gatewayName(name))
	}
	return out
}

// gatewayName returns "mesh" or "namespace/name".
func (vs *virtualService) gatewayName(name string) string {
	if name == meshGateway || strings.Contains(name, "/") {
		return name
	}
	return vs.ref.Namespace + "/" + name
}

// gatewayNames returns the Gateways that its hosts are bound to.
func (vs *virtualService) gatewayNames() []string {
	var out []string
	seen := make(map[string]bool, len(vs.spec.GetGateways()))
	for _, name := range vs.spec.GetGateways() {
		if name = vs.gatewayName(name); name != meshGateway && !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	return out
}

// destinations returns the destinations of all its routes.
func (vs *virtualService) destinations() []*networking.Destination {
	var out []*networking.Destination
	for _, r := range vs.http {
		for _, to := range r.spec.GetRoute() {
			out = append(out, to.GetDestination())
		}
		for _, m := range mirrorsOf(r.spec) {
			out = append(out, m.destination)
		}
	}
	return append(out, vs.tcpDestinations()...)
}

func (vs *virtualService) tcpDestinations() []*networking.Destination {
	var out []*networking.Destination
	for _, to := range vs.connectionDestinations() {
		out = append(out, to)
	}
	return out
}

// connectionDestinations returns the destinations of spec.tls and spec.tcp, by
// field.
func (vs *virtualService) connectionDestinations() iter.Seq2[string, *networking.Destination] {
	return func(yield func(string, *networking.Destination) bool) {
		all := func(at string, route []*networking.RouteDestination) bool {
			for i, to := range route {
				if !yield(fmt.Sprintf("%s.route[%d].destination", at, i), to.GetDestination()) {
					return false
				}
			}
			return true
		}
		for i, r := range vs.spec.GetTls() {
			if !all(fmt.Sprintf("spec.tls[%d]", i), r.GetRoute()) {
				return
			}
		}
		for i, r := range vs.spec.GetTcp() {
			if !all(fmt.Sprintf("spec.tcp[%d]", i), r.GetRoute()) {
				return
			}
		}
	}
}

// hostsOfVirtual returns the hosts that it sends requests to, completed as for
// callers in its namespace.
func (m *model) hostsOfVirtual(vs *virtualService) []string {
	var out []string
	for _, to := range vs.destinations() {
		out = append(out, completed(to.GetHost(), m.homeOf(vs.ref.Namespace)))
	}
	return out
}

// meshHosts returns the hosts for which sidecars follow it.
func (vs *virtualService) meshHosts() []string {
	if !vs.gateways[meshGateway] {
		return nil
	}
	return vs.spec.GetHosts()
}

// ownSource returns a source for callers in a namespace with these labels, of any
// service, or nil for any caller.
func ownSource(labels mesh.Labels, namespace string) *source {
	if len(labels) == 0 && namespace == "" {
		return nil
	}
	return &source{labels: labels, namespace: namespace}
}
