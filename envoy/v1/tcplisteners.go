package v1

import (
	"strconv"

	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/ir"
)

// MongoProxy is the config of that filter.
type MongoProxy struct {
	StatPrefix string `json:"stat_prefix"`
}

// TCPProxy is the config of that filter.
type TCPProxy struct {
	StatPrefix  string      `json:"stat_prefix"`
	RouteConfig TCPRoutes   `json:"route_config"`
	AccessLog   []AccessLog `json:"access_log,omitempty"`
}

// TCPRoutes: the first that fits.
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
	for _, r := range l.TCP.Routes {
		if r.Stream != (ir.Stream{}) {
			b.warn(l.Origins, "Envoy v1 keeps connections to cluster %s, however quiet or old", r.Cluster)
		}
		destinations := b.destinations(l, r)
		// An empty list would mean any destination.
		if len(destinations) > 0 || len(r.Destinations) == 0 {
			route := TCPRoute{Cluster: envoy.ClusterName(r.Cluster), DestinationIPList: destinations}
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

// destinations are those that Envoy can read; one other would refuse the
// listener.
func (b *listenerBuilder) destinations(l *ir.Listener, r ir.TCPRoute) []string {
	var out []string
	for _, d := range r.Destinations {
		if _, err := ir.ParseDestination(d); err != nil {
			b.warn(l.Origins, "cluster %s is without a destination in Envoy v1: %v", r.Cluster, err)
			continue
		}
		out = append(out, d)
	}
	return out
}
