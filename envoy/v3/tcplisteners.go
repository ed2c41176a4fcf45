package v3

import (
	"fmt"
	"strings"
	"time"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	mongov3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/mongo_proxy/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/ir"
)

const (
	tcpProxy   = "envoy.filters.network.tcp_proxy"
	mongoProxy = "envoy.filters.network.mongo_proxy"
)

// goal describes the destination of connections.
func goal(clusters []ir.WeightedCluster) string {
	var names []string
	for _, c := range clusters {
		names = append(names, c.Name)
	}
	if len(names) == 1 {
		return "cluster " + names[0]
	}
	return fmt.Sprintf("clusters %s", strings.Join(names, ", "))
}

func tcpFilters(l *ir.TCPListener, r ir.TCPRoute) []*listenerv3.Filter {
	out := connectionAccess(l.Access)
	if l.Mongo {
		out = append(out, networkFilter(mongoProxy, &mongov3.MongoProxy{StatPrefix: envoy.StatPrefixMongo}))
	}
	proxy := &tcpv3.TcpProxy{
		StatPrefix: envoy.StatPrefixTCP,
		AccessLog:  accessLog(l.AccessLog),
		// v1 kept quiet connections. By default v3 closes them after an hour.
		IdleTimeout:                     durationpb.New(silence(r.Stream)),
		MaxDownstreamConnectionDuration: positiveDuration(r.Stream.MaxDuration),
		HashPolicy:                      hashSource(r),
	}
	divide(proxy, r.Clusters)
	return append(out, networkFilter(tcpProxy, proxy))
}

// divide distributes connections to clusters. Envoy accepts no weight of 0 here.
func divide(proxy *tcpv3.TcpProxy, clusters []ir.WeightedCluster) {
	shared := &tcpv3.TcpProxy_WeightedCluster{}
	for _, c := range clusters {
		if c.Weight > 0 {
			shared.Clusters = append(shared.Clusters, &tcpv3.TcpProxy_WeightedCluster_ClusterWeight{
				Name: envoy.ClusterName(c.Name), Weight: uint32(c.Weight),
			})
		}
	}
	if len(shared.Clusters) == 1 {
		proxy.ClusterSpecifier = &tcpv3.TcpProxy_Cluster{Cluster: shared.Clusters[0].Name}
		return
	}
	proxy.ClusterSpecifier = &tcpv3.TcpProxy_WeightedClusters{WeightedClusters: shared}
}

func hashSource(r ir.TCPRoute) []*typev3.HashPolicy {
	if !r.HashSource {
		return nil
	}
	return []*typev3.HashPolicy{{PolicySpecifier: &typev3.HashPolicy_SourceIp_{SourceIp: &typev3.HashPolicy_SourceIp{}}}}
}

// silence returns how long a connection may be idle; 0 means forever.
func silence(s ir.Stream) time.Duration {
	if s.IdleTimeout == nil {
		return 0
	}
	return *s.IdleTimeout
}
