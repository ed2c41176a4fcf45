package v3

import (
	"cmp"
	"math"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/ir"
)

// connectTimeout is Istio's default.
const connectTimeout = 10 * time.Second

// longestEjection replaces the "no limit" of v1, unless the first ejection is longer. By
// default v3 limits a growing ejection time to 300 s.
const longestEjection = 365 * 24 * time.Hour

// Clusters returns the answer of CDS.
func Clusters(cfg *ir.Config) ([]*clusterv3.Cluster, diag.List) {
	out := make([]*clusterv3.Cluster, len(cfg.Clusters))
	var problems diag.List
	for i, c := range cfg.Clusters {
		encoded, p := Cluster(c, Polled(cfg.Delay))
		out[i] = encoded
		problems = append(problems, p...)
	}
	return out, problems
}

// Cluster returns one cluster of the answer of CDS, with the source of its endpoints and
// secrets. v3 can express every cluster of the IR, so the list of problems is always empty.
// The function returns one because the functions for all parts have the same form.
func Cluster(c *ir.Cluster, from Source) (*clusterv3.Cluster, diag.List) {
	out := &clusterv3.Cluster{
		Name:                          envoy.ClusterName(c.Name),
		ConnectTimeout:                durationpb.New(cmp.Or(c.ConnectTimeout, connectTimeout)),
		TransportSocket:               clientTLS(c.TLS, from),
		TransportSocketMatches:        mutualTLS(c.MutualTLS, from),
		CircuitBreakers:               circuitBreakers(c.CircuitBreaker),
		OutlierDetection:              outlierDetection(c.OutlierDetection),
		TypedExtensionProtocolOptions: protocolOptions(c),
		UpstreamConnectionOptions:     keepalive(c.Connections.Keepalive),
	}
	if percent := minHealthPercent(c); percent != nil {
		out.CommonLbConfig = &clusterv3.Cluster_CommonLbConfig{
			HealthyPanicThreshold: &typev3.Percent{Value: float64(*percent)},
		}
	}
	checkHealth(out, c)
	balance(out, c)
	shareByLocality(out, c)
	discoverHosts(out, c, from)
	return out, nil
}

// minHealthPercent is the percentage of endpoints that must be healthy; below it Envoy
// uses all endpoints. As in Istio it is 0, unless outlier detection leaves it to Envoy.
func minHealthPercent(c *ir.Cluster) *int {
	if c.OutlierDetection == nil || c.HealthCheck != nil && c.OutlierDetection.MinHealthPercent == nil {
		return new(int)
	}
	return c.OutlierDetection.MinHealthPercent
}

func discoverHosts(out *clusterv3.Cluster, c *ir.Cluster, from Source) {
	discover := func(t clusterv3.Cluster_DiscoveryType) {
		out.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: t}
	}
	switch c.Type {
	case ir.StaticHosts:
		discover(clusterv3.Cluster_STATIC)
		out.LoadAssignment = Endpoints(out.Name, c.Hosts)
	case ir.StrictDNS, ir.LogicalDNS:
		discover(clusterv3.Cluster_STRICT_DNS)
		if c.Type == ir.LogicalDNS {
			discover(clusterv3.Cluster_LOGICAL_DNS)
		}
		// v1 asked for IPv4 addresses only, v3 would prefer IPv6.
		out.DnsLookupFamily = clusterv3.Cluster_V4_ONLY
		out.LoadAssignment = Endpoints(out.Name, c.Hosts)
	case ir.OriginalDestination:
		// The header x-envoy-original-dst-host has no effect. In v1 it let
		// any caller choose any address.
		discover(clusterv3.Cluster_ORIGINAL_DST)
		if c.DestinationPort > 0 {
			out.LbConfig = &clusterv3.Cluster_OriginalDstLbConfig_{OriginalDstLbConfig: &clusterv3.Cluster_OriginalDstLbConfig{
				UpstreamPortOverride: wrapperspb.UInt32(uint32(c.DestinationPort)),
			}}
		}
	default:
		discover(clusterv3.Cluster_EDS)
		out.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{
			ServiceName: envoy.EndpointsName(c),
			EdsConfig:   from.config(),
		}
	}
}

// noLimits are the limits if none are set, as in Istio. The defaults of Envoy are too low
// for a busy service.
var noLimits = &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
	MaxConnections:     wrapperspb.UInt32(math.MaxUint32),
	MaxPendingRequests: wrapperspb.UInt32(math.MaxUint32),
	MaxRequests:        wrapperspb.UInt32(math.MaxUint32),
	MaxRetries:         wrapperspb.UInt32(math.MaxUint32),
}}}

func circuitBreakers(b *ir.CircuitBreaker) *clusterv3.CircuitBreakers {
	if b == nil {
		return noLimits
	}
	return &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
		MaxConnections:     positive(b.MaxConnections),
		MaxPendingRequests: positive(b.MaxPendingRequests),
		MaxRequests:        positive(b.MaxRequests),
		MaxRetries:         positive(b.MaxRetries),
	}}}
}

func outlierDetection(o *ir.OutlierDetection) *clusterv3.OutlierDetection {
	if o == nil {
		return nil
	}
	out := &clusterv3.OutlierDetection{
		Interval:           positiveDuration(o.Interval),
		BaseEjectionTime:   positiveDuration(o.BaseEjectionTime),
		MaxEjectionPercent: positive(o.MaxEjectionPercent),
		MaxEjectionTime:    durationpb.New(cmp.Or(o.MaxEjectionTime, max(longestEjection, o.BaseEjectionTime))),
		// Otherwise 10 % of fewer than 10 hosts would be none.
		AlwaysEjectOneHost: wrapperspb.Bool(true),
	}
	if o.AnswersOnly {
		out.EnforcingSuccessRate = wrapperspb.UInt32(0)
	}
	if o.LocalOrigin {
		out.SplitExternalLocalOriginErrors = true
		out.ConsecutiveLocalOriginFailure, out.EnforcingConsecutiveLocalOriginFailure = errorLimit(o.LocalErrors)
		out.EnforcingLocalOriginSuccessRate = out.EnforcingSuccessRate
	}
	out.Consecutive_5Xx, out.EnforcingConsecutive_5Xx = errorLimit(o.ConsecutiveErrors)
	out.ConsecutiveGatewayFailure, out.EnforcingConsecutiveGatewayFailure = errorLimit(o.GatewayErrors)
	return out
}

// errorLimit returns a limit and the percentage of endpoints beyond it that are ejected:
// nil is Envoy's default, 0 is none.
func errorLimit(n *int) (limit, enforcing *wrapperspb.UInt32Value) {
	switch {
	case n == nil:
		return nil, nil
	case *n == 0:
		return nil, wrapperspb.UInt32(0)
	}
	return wrapperspb.UInt32(uint32(*n)), wrapperspb.UInt32(100)
}
