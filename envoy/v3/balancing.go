package v3

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilot-api/pilot-api/ir"
)

// balance sets how Envoy selects endpoints of a cluster.
func balance(out *clusterv3.Cluster, c *ir.Cluster) {
	if c.Type == ir.OriginalDestination {
		out.LbPolicy = clusterv3.Cluster_CLUSTER_PROVIDED
		return
	}
	switch c.LoadBalancer {
	case ir.LeastRequest, ir.BalancerByDefault:
		out.LbPolicy = clusterv3.Cluster_LEAST_REQUEST
		if w := slowStart(c.Warmup); w != nil {
			out.LbConfig = &clusterv3.Cluster_LeastRequestLbConfig_{LeastRequestLbConfig: &clusterv3.Cluster_LeastRequestLbConfig{SlowStartConfig: w}}
		}
	case ir.Random:
		out.LbPolicy = clusterv3.Cluster_RANDOM
	case ir.RingHash:
		out.LbPolicy = clusterv3.Cluster_RING_HASH
		if n := c.Hash.MinimumRing; n > 0 {
			out.LbConfig = &clusterv3.Cluster_RingHashLbConfig_{RingHashLbConfig: &clusterv3.Cluster_RingHashLbConfig{MinimumRingSize: wrapperspb.UInt64(uint64(n))}}
		}
	case ir.Maglev:
		out.LbPolicy = clusterv3.Cluster_MAGLEV
		out.LbConfig = &clusterv3.Cluster_MaglevLbConfig_{MaglevLbConfig: &clusterv3.Cluster_MaglevLbConfig{TableSize: wrapperspb.UInt64(uint64(c.Hash.Table))}}
	default:
		out.LbPolicy = clusterv3.Cluster_ROUND_ROBIN
		if w := slowStart(c.Warmup); w != nil {
			out.LbConfig = &clusterv3.Cluster_RoundRobinLbConfig_{RoundRobinLbConfig: &clusterv3.Cluster_RoundRobinLbConfig{SlowStartConfig: w}}
		}
	}
}

func slowStart(w *ir.Warmup) *clusterv3.Cluster_SlowStartConfig {
	if w == nil {
		return nil
	}
	out := &clusterv3.Cluster_SlowStartConfig{SlowStartWindow: durationpb.New(w.Duration)}
	if w.Aggression > 0 {
		out.Aggression = &corev3.RuntimeDouble{DefaultValue: w.Aggression, RuntimeKey: "warmup.aggression"}
	}
	if w.MinimumPercent != nil {
		out.MinWeightPercent = &typev3.Percent{Value: *w.MinimumPercent}
	}
	return out
}

func hashPolicies(keys []ir.HashKey) []*routev3.RouteAction_HashPolicy {
	var out []*routev3.RouteAction_HashPolicy
	for _, k := range keys {
		out = append(out, hashPolicy(k))
	}
	return out
}

func hashPolicy(k ir.HashKey) *routev3.RouteAction_HashPolicy {
	switch {
	case k.Header != "":
		return &routev3.RouteAction_HashPolicy{PolicySpecifier: &routev3.RouteAction_HashPolicy_Header_{
			Header: &routev3.RouteAction_HashPolicy_Header{HeaderName: k.Header}}}
	case k.Query != "":
		return &routev3.RouteAction_HashPolicy{PolicySpecifier: &routev3.RouteAction_HashPolicy_QueryParameter_{
			QueryParameter: &routev3.RouteAction_HashPolicy_QueryParameter{Name: k.Query}}}
	case k.Cookie != nil:
		return &routev3.RouteAction_HashPolicy{PolicySpecifier: &routev3.RouteAction_HashPolicy_Cookie_{Cookie: cookie(k.Cookie)}}
	default:
		return &routev3.RouteAction_HashPolicy{PolicySpecifier: &routev3.RouteAction_HashPolicy_ConnectionProperties_{
			ConnectionProperties: &routev3.RouteAction_HashPolicy_ConnectionProperties{SourceIp: true}}}
	}
}

func cookie(c *ir.Cookie) *routev3.RouteAction_HashPolicy_Cookie {
	out := &routev3.RouteAction_HashPolicy_Cookie{Name: c.Name, Path: c.Path, Ttl: said(c.TTL)}
	for _, a := range c.Attributes {
		out.Attributes = append(out.Attributes, &routev3.RouteAction_HashPolicy_CookieAttribute{Name: a.Name, Value: a.Value})
	}
	return out
}

// shareByLocality makes Envoy use the weights of localities, which otherwise have no
// effect.
func shareByLocality(out *clusterv3.Cluster, c *ir.Cluster) {
	if c.Order == nil || len(c.Order.Shares) == 0 {
		return
	}
	if out.CommonLbConfig == nil {
		out.CommonLbConfig = &clusterv3.Cluster_CommonLbConfig{}
	}
	out.CommonLbConfig.LocalityConfigSpecifier = &clusterv3.Cluster_CommonLbConfig_LocalityWeightedLbConfig_{
		LocalityWeightedLbConfig: &clusterv3.Cluster_CommonLbConfig_LocalityWeightedLbConfig{},
	}
}
