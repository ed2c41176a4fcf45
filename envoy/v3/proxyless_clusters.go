package v3

import (
	"net/netip"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/ir"
)

// beyondProxyless returns the reason for which gRPC must not call the endpoints of a
// cluster, or "" if it may.
func beyondProxyless(c *ir.Cluster) string {
	switch {
	case c.TLS != nil:
		return "it takes certificates from its own bootstrap, and would speak plain text"
	case c.Type == ir.OriginalDestination:
		return "it goes where names lead, and no connection was going anywhere"
	case len(c.Hosts) > 1 && named(c):
		return "it resolves one name for a cluster, and there are several"
	}
	for _, e := range c.Hosts {
		if _, is := e.Socket(); is {
			return "it connects to addresses, and an endpoint is the socket " + e.Host
		}
	}
	return ""
}

// named reports whether an endpoint is a name in the DNS.
func named(c *ir.Cluster) bool {
	if c.Type != ir.StrictDNS && c.Type != ir.LogicalDNS {
		return false
	}
	for _, e := range c.Hosts {
		if _, err := netip.ParseAddr(e.Host); err != nil {
			return true
		}
	}
	return false
}

// proxylessEndpointsName returns the name by which gRPC requests the endpoints of a cluster.
func proxylessEndpointsName(c *ir.Cluster) string {
	switch {
	case c.Type == ir.Registry:
		return envoy.EndpointsName(c)
	case len(c.Hosts) == 0:
		return ir.Nobody
	}
	return envoy.ClusterName(c.Name)
}

// ProxylessMembers returns the endpoints of a cluster that are not in the registry, with
// the name by which gRPC requests them.
func ProxylessMembers(c *ir.Cluster) (name string, members []ir.Endpoint) {
	if c.Type == ir.Registry || beyondProxyless(c) != "" || named(c) {
		return "", nil
	}
	return proxylessEndpointsName(c), c.Hosts
}

// proxylessBalance sets the load balancing. All languages of gRPC know two ways.
func proxylessBalance(out *clusterv3.Cluster, c *ir.Cluster) {
	if c.Hash == nil {
		return
	}
	out.LbPolicy = clusterv3.Cluster_RING_HASH
	if n := c.Hash.MinimumRing; n > 0 {
		out.LbConfig = &clusterv3.Cluster_RingHashLbConfig_{RingHashLbConfig: &clusterv3.Cluster_RingHashLbConfig{MinimumRingSize: wrapperspb.UInt64(uint64(n))}}
	}
}

// proxylessLosses reports the settings of a cluster that gRPC lacks.
func proxylessLosses(c *ir.Cluster) diag.List {
	var out diag.List
	for _, part := range []struct {
		lost    bool
		instead string
	}{
		{c.HealthCheck != nil, "gRPC without a proxy checks no health of %s"},
		{countsErrors(c.OutlierDetection), "gRPC without a proxy ejects nobody of %s for errors in a row: it compares endpoints with each other"},
		{limitsOther(c.CircuitBreaker), "gRPC without a proxy limits nothing of %s but requests at a time"},
	} {
		if part.lost {
			out = append(out, diag.Warn(diag.NotHonoured, c.Origins, part.instead, c.Name)...)
		}
	}
	return out
}

func countsErrors(o *ir.OutlierDetection) bool {
	more := func(n *int) bool { return n != nil && *n > 0 }
	return o != nil && (more(o.ConsecutiveErrors) || more(o.GatewayErrors) || more(o.LocalErrors))
}

func limitsOther(b *ir.CircuitBreaker) bool {
	return b != nil && (b.MaxConnections > 0 || b.MaxPendingRequests > 0 || b.MaxRetries > 0)
}
