package v3

import (
	"net/http"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/ir"
)

// Routes returns the answer of RDS for one table. It may also be inline in a listener.
func Routes(t *ir.RouteTable) (*routev3.RouteConfiguration, diag.List) {
	out := RouteTable(t)
	var problems diag.List
	for _, h := range t.VirtualHosts {
		host, p := VirtualHost(h)
		problems = append(problems, p...)
		if host != nil {
			out.VirtualHosts = append(out.VirtualHosts, host)
		}
	}
	return out, problems
}

// RouteTable returns a table without its virtual hosts.
func RouteTable(t *ir.RouteTable) *routev3.RouteConfiguration {
	out := &routev3.RouteConfiguration{
		Name: t.Name,
		// A cluster that Envoy refuses must not block a whole table.
		ValidateClusters:         wrapperspb.Bool(false),
		IgnorePortInHostMatching: t.IgnorePort,
	}
	if t.OnDemand {
		out.Vhds = &routev3.Vhds{ConfigSource: Streamed.config()}
	}
	if longest := longestBody(t); longest > maxInlineBody {
		out.MaxDirectResponseBodySizeBytes = wrapperspb.UInt32(uint32(longest))
	}
	return out
}

// VirtualHost returns one virtual host of a table in a form that Envoy accepts. A route
// that Envoy would not accept is closed: with it Envoy would refuse the whole table, and
// without it later routes would get its requests. The result is nil if Envoy accepts none
// of the domains; no request has them.
func VirtualHost(h *ir.VirtualHost) (*routev3.VirtualHost, diag.List) {
	out := &routev3.VirtualHost{Name: h.Name, Domains: h.Domains}
	if err := checkHost(out); err != nil {
		return closedHost(h, err)
	}
	var problems diag.List
	for _, r := range h.Routes {
		encoded, p := acceptable(r)
		problems = append(problems, p...)
		if encoded != nil {
			out.Routes = append(out.Routes, encoded)
		}
	}
	return out, problems
}

func route(r *ir.Route) (*routev3.Route, diag.List) {
	out := &routev3.Route{
		Name:                    r.Name,
		StatPrefix:              r.StatPrefix,
		Match:                   routeMatch(r.Match),
		RequestHeadersToAdd:     headersToAdd(r.RequestHeaders),
		RequestHeadersToRemove:  r.RequestHeaders.Remove,
		ResponseHeadersToAdd:    headersToAdd(r.ResponseHeaders),
		ResponseHeadersToRemove: r.ResponseHeaders.Remove,
	}
	if r.Operation != "" {
		out.Decorator = &routev3.Decorator{Operation: r.Operation}
	}
	switch {
	case r.Redirect != nil:
		out.Action = redirect(r.Redirect)
		return out, nil
	case r.Response != nil:
		out.Action = directResponse(r.Response)
		return out, nil
	}
	out.Action = &routev3.Route_Route{Route: forward(r)}
	perFilter, problems := filterConfig(r)
	out.TypedPerFilterConfig = perFilter
	return out, problems
}

func longestBody(t *ir.RouteTable) int {
	longest := 0
	for _, h := range t.VirtualHosts {
		for _, r := range h.Routes {
			if r.Response != nil {
				longest = max(longest, len(r.Response.Body))
			}
		}
	}
	return longest
}

func directResponse(r *ir.DirectResponse) *routev3.Route_DirectResponse {
	out := &routev3.DirectResponseAction{Status: uint32(r.Status)}
	if r.Body != "" {
		out.Body = &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: []byte(r.Body)}}
	}
	return &routev3.Route_DirectResponse{DirectResponse: out}
}

var redirectCodes = map[int]routev3.RedirectAction_RedirectResponseCode{
	http.StatusFound:             routev3.RedirectAction_FOUND,
	http.StatusSeeOther:          routev3.RedirectAction_SEE_OTHER,
	http.StatusTemporaryRedirect: routev3.RedirectAction_TEMPORARY_REDIRECT,
	http.StatusPermanentRedirect: routev3.RedirectAction_PERMANENT_REDIRECT,
}

func redirect(r *ir.Redirect) *routev3.Route_Redirect {
	out := &routev3.RedirectAction{HostRedirect: r.Host, PortRedirect: uint32(r.Port), ResponseCode: redirectCodes[r.Code]}
	if r.Scheme != "" {
		out.SchemeRewriteSpecifier = &routev3.RedirectAction_SchemeRedirect{SchemeRedirect: r.Scheme}
	}
	if r.Prefix != "" {
		out.PathRewriteSpecifier = &routev3.RedirectAction_PrefixRewrite{PrefixRewrite: r.Prefix}
	}
	if r.Path != "" {
		out.PathRewriteSpecifier = &routev3.RedirectAction_PathRedirect{PathRedirect: r.Path}
		out.StripQuery = r.StripQuery
	}
	return &routev3.Route_Redirect{Redirect: out}
}

func forward(r *ir.Route) *routev3.RouteAction {
	out := &routev3.RouteAction{Timeout: durationpb.New(r.Timeout)}
	toClusters(out, r.Clusters)
	out.HashPolicy = hashPolicies(r.Hash)
	if r.Rewrite != nil {
		out.PrefixRewrite = r.Rewrite.Path
		if re := r.Rewrite.Regex; re != nil {
			out.RegexRewrite = &matcherv3.RegexMatchAndSubstitute{Pattern: regex(re.Match), Substitution: re.Substitution}
		}
		if r.Rewrite.Host != "" {
			out.HostRewriteSpecifier = &routev3.RouteAction_HostRewriteLiteral{HostRewriteLiteral: r.Rewrite.Host}
		}
	}
	if r.Retry != nil {
		out.RetryPolicy = retryPolicy(r.Retry, len(r.Hash) > 0)
	}
	for _, m := range r.Mirrors {
		out.RequestMirrorPolicies = append(out.RequestMirrorPolicies, mirrorPolicy(m))
	}
	if r.WebSocket != ir.UpgradeByDefault {
		out.UpgradeConfigs = []*routev3.RouteAction_UpgradeConfig{{
			UpgradeType: webSocket, Enabled: wrapperspb.Bool(r.WebSocket == ir.UpgradeAllowed),
		}}
	}
	return out
}

func mirrorPolicy(m ir.Mirror) *routev3.RouteAction_RequestMirrorPolicy {
	out := &routev3.RouteAction_RequestMirrorPolicy{Cluster: envoy.ClusterName(m.Cluster)}
	if m.PerMillion < ir.Million {
		out.RuntimeFraction = &corev3.RuntimeFractionalPercent{DefaultValue: share(m.PerMillion)}
	}
	return out
}

// headersToAdd returns the values to write: first those that are appended, then those that
// replace present ones.
func headersToAdd(o ir.HeaderOperations) []*corev3.HeaderValueOption {
	var out []*corev3.HeaderValueOption
	add := func(headers []ir.Header, action corev3.HeaderValueOption_HeaderAppendAction) {
		for _, h := range headers {
			value := h.Value
			if !h.Format {
				value = envoy.HeaderValue(value)
			}
			out = append(out, &corev3.HeaderValueOption{
				Header:       &corev3.HeaderValue{Key: h.Name, Value: value},
				AppendAction: action,
				// Without it Envoy drops the header or keeps the present value.
				KeepEmptyValue: h.Value == "",
			})
		}
	}
	add(o.Append, corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD)
	add(o.Set, corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD)
	return out
}

func toClusters(out *routev3.RouteAction, weighted []ir.WeightedCluster) {
	if len(weighted) == 1 && !weighted[0].ChangesHeaders() {
		out.ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: envoy.ClusterName(weighted[0].Name)}
		return
	}
	split := &routev3.WeightedCluster{}
	for _, w := range weighted {
		entry := &routev3.WeightedCluster_ClusterWeight{
			Name:                    envoy.ClusterName(w.Name),
			Weight:                  wrapperspb.UInt32(uint32(w.Weight)),
			RequestHeadersToAdd:     headersToAdd(w.RequestHeaders),
			RequestHeadersToRemove:  w.RequestHeaders.Remove,
			ResponseHeadersToAdd:    headersToAdd(w.ResponseHeaders),
			ResponseHeadersToRemove: w.ResponseHeaders.Remove,
		}
		if w.Host != "" {
			entry.HostRewriteSpecifier = &routev3.WeightedCluster_ClusterWeight_HostRewriteLiteral{HostRewriteLiteral: w.Host}
		}
		split.Clusters = append(split.Clusters, entry)
	}
	out.ClusterSpecifier = &routev3.RouteAction_WeightedClusters{WeightedClusters: split}
}

// filterConfig returns the config of the listener's CORS and fault filters on this route,
// or nil if they do nothing.
func filterConfig(r *ir.Route) (map[string]*anypb.Any, diag.List) {
	out := map[string]*anypb.Any{}
	if r.CORS != nil {
		out[corsFilter] = typed(corsPolicy(r.CORS))
	}
	trouble, problems := fault(r)
	if trouble != nil {
		out[faultFilter] = typed(trouble)
	}
	if len(out) == 0 {
		return nil, problems
	}
	return out, problems
}
