package v1

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/ir"
)

// MongoProxy is the config of the mongo_proxy filter.
type MongoProxy struct {
	StatPrefix string `json:"stat_prefix"`
}

// TCPProxy is the config of the tcp_proxy filter.
type TCPProxy struct {
	StatPrefix  string      `json:"stat_prefix"`
	RouteConfig TCPRoutes   `json:"route_config"`
	AccessLog   []AccessLog `json:"access_log,omitempty"`
}

// TCPRoutes are tried in order; the first that fits applies.
type TCPRoutes struct {
	Routes []TCPRoute `json:"routes"`
}

// TCPRoute sends connections to a cluster.
type TCPRoute struct {
	Cluster           string   `json:"cluster"`
	DestinationIPList []string `json:"destination_ip_list,omitempty"`
	DestinationPorts  string   `json:"destination_ports,omitempty"`
}

func (b *listenerBuilder) tcp(l *ir.Listener) []Filter {
	proxy := TCPProxy{StatPrefix: envoy.StatPrefixTCP, AccessLog: accessLog(l.TCP.AccessLog)}
	proxy.RouteConfig.Routes = []TCPRoute{}
	for _, r := range b.sayableTCP(l) {
		if r.Stream != (ir.Stream{}) {
			b.warn(l.Origins, "Envoy v1 keeps connections to cluster %s, however quiet or old", r.Clusters[0].Name)
		}
		destinations := b.destinations(l, r)
		// An empty list would mean any destination.
		if len(destinations) > 0 || len(r.Destinations) == 0 {
			route := TCPRoute{Cluster: envoy.ClusterName(r.Clusters[0].Name), DestinationIPList: destinations}
			if r.Port > 0 {
				route.DestinationPorts = strconv.Itoa(r.Port)
			}
			proxy.RouteConfig.Routes = append(proxy.RouteConfig.Routes, route)
		}
	}
	filter := Filter{Type: "read", Name: "tcp_proxy", Config: proxy}
	if !l.TCP.Mongo {
		return []Filter{filter}
	}
	sniffer := Filter{Type: "both", Name: "mongo_proxy", Config: MongoProxy{StatPrefix: envoy.StatPrefixMongo}}
	return []Filter{sniffer, filter}
}

// sayableTCP returns the routes as v1 can express them: each has one cluster, and no
// server names, which v1 cannot read.
func (b *listenerBuilder) sayableTCP(l *ir.Listener) []ir.TCPRoute {
	var out []ir.TCPRoute
	for i, r := range l.TCP.Routes {
		origins := r.Origins
		if len(origins) == 0 {
			origins = l.Origins
		}
		switch {
		case r.NamesOnly:
			b.warn(origins, "Envoy v1 sends connections for %s to %s elsewhere: it does not see which name a client asks for", goal(r), r.Destinations[0])
			continue
		case takenTCP(out, r) && r.Clusters[0].Name == ir.Passthrough:
			continue // Nobody knows whom it is for.
		case takenTCP(out, r):
			b.warn(origins, "Envoy v1 sends connections for %s elsewhere: another host has port %d, and it does not see which name a client asks for", goal(r), l.Port)
			continue
		case len(r.ServerNames) == 0 || r.Assumed:
		case leadsOn(r, l.TCP.Routes[i+1:]):
			continue
		default:
			b.warn(origins, "Envoy v1 closes connections to port %d that may be for %s: it does not see which name a client asks for", l.Port, r.ServerNames[0])
			r.Clusters = ir.Whole(blackHole)
		}
		if r.Clusters = weighed(r.Clusters); len(r.Clusters) > 1 {
			r.Clusters = []ir.WeightedCluster{heaviest(r.Clusters)}
			b.warn(origins, "Envoy v1 sends all connections to port %d to %s, which has the highest weight: it cannot divide them", l.Port, r.Clusters[0].Name)
		}
		out = append(out, r)
	}
	return out
}

// leadsOn reports whether the connections of a route would have the same end
// without it.
func leadsOn(r ir.TCPRoute, after []ir.TCPRoute) bool {
	i := slices.IndexFunc(after, func(next ir.TCPRoute) bool {
		return slices.Equal(next.Destinations, r.Destinations) && (len(next.ServerNames) == 0 || next.Assumed)
	})
	return i >= 0 && slices.EqualFunc(weighed(after[i].Clusters), weighed(r.Clusters), func(a, b ir.WeightedCluster) bool { return a.Name == b.Name }) &&
		len(weighed(r.Clusters)) == 1
}

// takenTCP reports whether all connections of a route are assumed to be for another route
// and go there.
func takenTCP(routes []ir.TCPRoute, r ir.TCPRoute) bool {
	return slices.ContainsFunc(routes, func(t ir.TCPRoute) bool { return t.Assumed && slices.Equal(t.Destinations, r.Destinations) })
}

// goal describes the connections of a route by their server name or cluster, for people.
func goal(r ir.TCPRoute) string {
	if len(r.ServerNames) > 0 {
		return r.ServerNames[0]
	}
	return "cluster " + r.Clusters[0].Name
}

// weighed returns the clusters that get connections.
func weighed(clusters []ir.WeightedCluster) []ir.WeightedCluster {
	return slices.DeleteFunc(slices.Clone(clusters), func(c ir.WeightedCluster) bool { return c.Weight == 0 })
}

// heaviest returns the cluster with the largest weight, the first if there are several.
func heaviest(clusters []ir.WeightedCluster) ir.WeightedCluster {
	return slices.MaxFunc(clusters, func(a, b ir.WeightedCluster) int { return cmp.Compare(a.Weight, b.Weight) })
}

// ClosesTCP reports whether a listener sends connections to BlackHole.
func ClosesTCP(l *ir.Listener) bool {
	if l.TCP == nil {
		return false
	}
	b := &listenerBuilder{}
	return slices.ContainsFunc(b.sayableTCP(l), func(r ir.TCPRoute) bool { return r.Clusters[0].Name == blackHole })
}

// destinations returns the destinations that Envoy can read. It would refuse the listener
// because of any other.
func (b *listenerBuilder) destinations(l *ir.Listener, r ir.TCPRoute) []string {
	var out []string
	for _, d := range r.Destinations {
		if _, err := ir.ParseDestination(d); err != nil {
			b.warn(l.Origins, "cluster %s is without a destination in Envoy v1: %v", r.Clusters[0].Name, err)
			continue
		}
		out = append(out, d)
	}
	return out
}
