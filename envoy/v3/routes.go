package v3

import (
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/ir"
)

// Routes answers RDS for one table; it also stands inline in a listener. A
// route that breaks a constraint is left out: with it, Envoy would refuse the
// whole table.
func Routes(t *ir.RouteTable) (*routev3.RouteConfiguration, diag.List) {
	out := &routev3.RouteConfiguration{
		Name: t.Name,
		// One cluster that Envoy refuses must not hold up a whole table.
		ValidateClusters: wrapperspb.Bool(false),
	}
	var problems diag.List
	for _, h := range t.VirtualHosts {
		host := &routev3.VirtualHost{Name: h.Name, Domains: h.Domains}
		for _, r := range h.Routes {
			spelled, p := route(r)
			problems = append(problems, p...)
			if err := spelled.ValidateAll(); err != nil {
				problems = append(problems, diag.Warn(diag.NotHonoured, r.Origins, "Envoy v3 gets no such route: %v", err)...)
				continue
			}
			host.Routes = append(host.Routes, spelled)
		}
		out.VirtualHosts = append(out.VirtualHosts, host)
	}
	return out, problems
}

func route(r *ir.Route) (*routev3.Route, diag.List) {
	out := &routev3.Route{Match: routeMatch(r.Match)}
	var problems diag.List
	if strings.Contains(r.Match.Prefix, "?") {
		problems = diag.Warn(diag.NotHonoured, r.Origins,
			"Envoy v3 never matches this: it compares a prefix with the path without the query, found %q", r.Match.Prefix)
	}
	if r.Operation != "" {
		out.Decorator = &routev3.Decorator{Operation: r.Operation}
	}
	if r.Redirect != nil {
		out.Action = redirect(r.Redirect)
		return out, problems
	}
	for _, h := range r.AppendHeaders {
		out.RequestHeadersToAdd = append(out.RequestHeadersToAdd, &corev3.HeaderValueOption{
			Header: &corev3.HeaderValue{Key: h.Name, Value: envoy.HeaderValue(h.Value)},
		})
	}
	out.Action = &routev3.Route_Route{Route: forward(r)}
	perFilter, p := filterConfig(r)
	out.TypedPerFilterConfig = perFilter
	return out, append(problems, p...)
}

func redirect(r *ir.Redirect) *routev3.Route_Redirect {
	out := &routev3.RedirectAction{HostRedirect: r.Host}
	if r.Path != "" {
		out.PathRewriteSpecifier = &routev3.RedirectAction_PathRedirect{PathRedirect: r.Path}
		// As v1 did with a path of its own.
		out.StripQuery = true
	}
	return &routev3.Route_Redirect{Redirect: out}
}

func forward(r *ir.Route) *routev3.RouteAction {
	out := &routev3.RouteAction{Timeout: durationpb.New(r.Timeout)}
	toClusters(out, r.Clusters)
	if r.Rewrite != nil {
		out.PrefixRewrite = r.Rewrite.Path
		if r.Rewrite.Host != "" {
			out.HostRewriteSpecifier = &routev3.RouteAction_HostRewriteLiteral{HostRewriteLiteral: r.Rewrite.Host}
		}
	}
	if r.Retry != nil {
		out.RetryPolicy = &routev3.RetryPolicy{
			RetryOn:       envoy.RetryOn,
			NumRetries:    positive(r.Retry.Attempts),
			PerTryTimeout: positiveDuration(r.Retry.PerTryTimeout),
		}
	}
	if r.Mirror != "" {
		out.RequestMirrorPolicies = []*routev3.RouteAction_RequestMirrorPolicy{{Cluster: envoy.ClusterName(r.Mirror)}}
	}
	if r.WebSocket {
		out.UpgradeConfigs = []*routev3.RouteAction_UpgradeConfig{{UpgradeType: "websocket", Enabled: wrapperspb.Bool(true)}}
	}
	return out
}

func toClusters(out *routev3.RouteAction, weighted []ir.WeightedCluster) {
	if len(weighted) == 1 {
		out.ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: envoy.ClusterName(weighted[0].Name)}
		return
	}
	split := &routev3.WeightedCluster{}
	for _, w := range weighted {
		split.Clusters = append(split.Clusters, &routev3.WeightedCluster_ClusterWeight{
			Name:   envoy.ClusterName(w.Name),
			Weight: wrapperspb.UInt32(uint32(w.Weight)),
		})
	}
	out.ClusterSpecifier = &routev3.RouteAction_WeightedClusters{WeightedClusters: split}
}

// filterConfig says what the CORS and fault filters of the listener do on this
// route; nil for nothing.
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
