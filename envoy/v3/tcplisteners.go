package v3

import (
	"fmt"
	"net/netip"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	mongov3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/mongo_proxy/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/ir"
)

const (
	tcpProxy   = "envoy.filters.network.tcp_proxy"
	mongoProxy = "envoy.filters.network.mongo_proxy"
)

// tcpChains is a chain per route. The IR takes the first route that fits,
// Envoy the most specific chain, and refuses two with the same destination. So
// what an earlier route covers already is left out of a later one; of what
// remains, the most specific is the first.
func tcpChains(l *ir.Listener) ([]*listenerv3.FilterChain, diag.List) {
	b := chainBuilder{listener: l, taken: map[netip.Prefix]string{}}
	var chains []*listenerv3.FilterChain
	for _, r := range l.TCP.Routes {
		if own := b.destinations(r); len(own) > 0 {
			chains = append(chains, tcpChain(l.TCP, r.Cluster, own))
		}
	}
	return chains, b.problems
}

// everywhere is the destination of a route that names none.
var everywhere netip.Prefix

// chainBuilder knows which cluster has which destination so far.
type chainBuilder struct {
	listener *ir.Listener
	taken    map[netip.Prefix]string
	problems diag.List
}

// destinations takes what is left of a route's destinations.
func (b *chainBuilder) destinations(r ir.TCPRoute) []netip.Prefix {
	if len(r.Destinations) == 0 {
		return b.take(r.Cluster, everywhere)
	}
	var own []netip.Prefix
	for _, d := range r.Destinations {
		p, err := ir.ParseDestination(d)
		if err != nil {
			b.warn(diag.NotHonoured, "cluster %s is without a destination in Envoy v3: %v", r.Cluster, err)
			continue
		}
		own = append(own, b.take(r.Cluster, p)...)
	}
	return own
}

// take is the destination itself, or nothing when an earlier one holds it. The
// same cluster twice is no Problem.
func (b *chainBuilder) take(cluster string, p netip.Prefix) []netip.Prefix {
	owner, ok := b.owner(p)
	if !ok {
		b.taken[p] = cluster
		return []netip.Prefix{p}
	}
	if owner != cluster {
		b.warn(diag.Conflict, "connections to %s go to cluster %s already, cluster %s gets none of them",
			describe(p, b.listener.Port), owner, cluster)
	}
	return nil
}

func (b *chainBuilder) owner(p netip.Prefix) (cluster string, ok bool) {
	if cluster, ok = b.taken[everywhere]; ok {
		return cluster, true
	}
	for bits := 0; bits <= p.Bits(); bits++ {
		if cluster, ok = b.taken[netip.PrefixFrom(p.Addr(), bits).Masked()]; ok {
			return cluster, true
		}
	}
	return "", false
}

func describe(p netip.Prefix, port int) string {
	if p == everywhere {
		return fmt.Sprintf("port %d", port)
	}
	return fmt.Sprintf("%s on port %d", p, port)
}

func (b *chainBuilder) warn(reason diag.Reason, format string, args ...any) {
	b.problems = append(b.problems, diag.Warn(reason, b.listener.Origins, format, args...)...)
}

func tcpChain(l *ir.TCPListener, cluster string, destinations []netip.Prefix) *listenerv3.FilterChain {
	out := &listenerv3.FilterChain{FilterChainMatch: destinationMatch(destinations)}
	if l.Mongo {
		out.Filters = append(out.Filters, networkFilter(mongoProxy, &mongov3.MongoProxy{StatPrefix: envoy.StatPrefixMongo}))
	}
	out.Filters = append(out.Filters, networkFilter(tcpProxy, &tcpv3.TcpProxy{
		StatPrefix:       envoy.StatPrefixTCP,
		ClusterSpecifier: &tcpv3.TcpProxy_Cluster{Cluster: envoy.ClusterName(cluster)},
		AccessLog:        accessLog(l.AccessLog),
		// v1 kept quiet connections; v3 would close them after an hour.
		IdleTimeout: durationpb.New(0),
	}))
	return out
}

func destinationMatch(destinations []netip.Prefix) *listenerv3.FilterChainMatch {
	out := &listenerv3.FilterChainMatch{}
	for _, p := range destinations {
		if p == everywhere {
			return nil
		}
		out.PrefixRanges = append(out.PrefixRanges, &corev3.CidrRange{
			AddressPrefix: p.Addr().String(),
			PrefixLen:     wrapperspb.UInt32(uint32(p.Bits())),
		})
	}
	return out
}
