package v3

import (
	"cmp"
	"fmt"
	"net/netip"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	mongov3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/mongo_proxy/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
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
// remains, the most specific is the first. A port is more specific than any
// destination, and such routes are the first.
func tcpChains(l *ir.Listener) ([]*listenerv3.FilterChain, diag.List) {
	b := chainBuilder{listener: l, taken: map[taken]string{}}
	var chains []*listenerv3.FilterChain
	for _, r := range l.TCP.Routes {
		if own := b.destinations(r); len(own) > 0 {
			chains = append(chains, tcpChain(l.TCP, r, own))
		}
	}
	return chains, b.problems
}

// everywhere is the destination of a route that names none.
var everywhere netip.Prefix

// taken is a destination at a port; 0 is any port.
type taken struct {
	to   netip.Prefix
	port int
}

// chainBuilder knows which cluster has which destination so far.
type chainBuilder struct {
	listener *ir.Listener
	taken    map[taken]string
	problems diag.List
}

// destinations takes what is left of a route's destinations.
func (b *chainBuilder) destinations(r ir.TCPRoute) []netip.Prefix {
	if len(r.Destinations) == 0 {
		return b.take(r, everywhere)
	}
	var own []netip.Prefix
	for _, d := range r.Destinations {
		p, err := ir.ParseDestination(d)
		if err != nil {
			b.warn(diag.NotHonoured, "cluster %s is without a destination in Envoy v3: %v", r.Cluster, err)
			continue
		}
		own = append(own, b.take(r, p)...)
	}
	return own
}

// take is the destination itself, or nothing when an earlier one holds it. The
// same cluster twice is no Problem.
func (b *chainBuilder) take(r ir.TCPRoute, p netip.Prefix) []netip.Prefix {
	owner, ok := b.owner(p, r.Port)
	if !ok {
		b.taken[taken{p, r.Port}] = r.Cluster
		return []netip.Prefix{p}
	}
	if owner != r.Cluster {
		b.warn(diag.Conflict, "connections to %s go to cluster %s already, cluster %s gets none of them",
			describe(p, cmp.Or(r.Port, b.listener.Port)), owner, r.Cluster)
	}
	return nil
}

func (b *chainBuilder) owner(p netip.Prefix, port int) (cluster string, ok bool) {
	if cluster, ok = b.taken[taken{everywhere, port}]; ok {
		return cluster, true
	}
	for bits := 0; bits <= p.Bits(); bits++ {
		if cluster, ok = b.taken[taken{netip.PrefixFrom(p.Addr(), bits).Masked(), port}]; ok {
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

func tcpChain(l *ir.TCPListener, r ir.TCPRoute, destinations []netip.Prefix) *listenerv3.FilterChain {
	out := &listenerv3.FilterChain{FilterChainMatch: destinationMatch(r.Port, destinations)}
	if l.Mongo {
		out.Filters = append(out.Filters, networkFilter(mongoProxy, &mongov3.MongoProxy{StatPrefix: envoy.StatPrefixMongo}))
	}
	out.Filters = append(out.Filters, networkFilter(tcpProxy, &tcpv3.TcpProxy{
		StatPrefix:       envoy.StatPrefixTCP,
		ClusterSpecifier: &tcpv3.TcpProxy_Cluster{Cluster: envoy.ClusterName(r.Cluster)},
		AccessLog:        accessLog(l.AccessLog),
		// v1 kept quiet connections; v3 would close them after an hour.
		IdleTimeout:                     durationpb.New(silence(r.Stream)),
		MaxDownstreamConnectionDuration: positiveDuration(r.Stream.MaxDuration),
		HashPolicy:                      hashSource(r),
	}))
	return out
}

func hashSource(r ir.TCPRoute) []*typev3.HashPolicy {
	if !r.HashSource {
		return nil
	}
	return []*typev3.HashPolicy{{PolicySpecifier: &typev3.HashPolicy_SourceIp_{SourceIp: &typev3.HashPolicy_SourceIp{}}}}
}

// silence is how long a connection may be quiet; 0 is for ever.
func silence(s ir.Stream) time.Duration {
	if s.IdleTimeout == nil {
		return 0
	}
	return *s.IdleTimeout
}

func destinationMatch(port int, destinations []netip.Prefix) *listenerv3.FilterChainMatch {
	out := &listenerv3.FilterChainMatch{DestinationPort: positive(port)}
	for _, p := range destinations {
		switch {
		case p == everywhere && port == 0:
			return nil
		case p == everywhere:
			return out
		}
		out.PrefixRanges = append(out.PrefixRanges, &corev3.CidrRange{
			AddressPrefix: p.Addr().String(),
			PrefixLen:     wrapperspb.UInt32(uint32(p.Bits())),
		})
	}
	return out
}
