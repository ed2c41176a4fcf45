package bridge

import (
	"fmt"
	"net/netip"
	"strconv"
)

type tcpProxy struct {
	StatPrefix  string `json:"stat_prefix"`
	RouteConfig struct {
		Routes []tcpRoute `json:"routes"`
	} `json:"route_config"`
	AccessLog []accessLog `json:"access_log"`
}

// tcpRoute matches any destination if it has none.
type tcpRoute struct {
	Cluster      string         `json:"cluster"`
	Destinations []netip.Prefix `json:"destination_ip_list"`
	Port         string         `json:"destination_ports"`
}

// turnTCP makes one chain per route. v1 took the first match, v3 takes the most specific:
// so turnTCP drops a block that an earlier one contains.
func turnTCP(config []byte, before list) ([]object, error) {
	var p tcpProxy
	if err := read(config, &p); err != nil {
		return nil, err
	}
	var chains []object
	var earlier []netip.Prefix
	for _, r := range p.RouteConfig.Routes {
		chain := object{"filters": append(before[:len(before):len(before)], p.turn(r.Cluster))}
		if r.Port != "" {
			port, err := strconv.Atoi(r.Port)
			if err != nil || r.Destinations != nil {
				return nil, fmt.Errorf("%s: ports %q, with destinations %v, are not known", p.StatPrefix, r.Port, r.Destinations)
			}
			chain["filter_chain_match"] = object{"destination_port": port}
			chains = append(chains, chain)
			continue
		}
		if r.Destinations == nil {
			return append(chains, chain), nil
		}
		var ranges list
		for _, block := range r.Destinations {
			if !covered(block, earlier) {
				earlier = append(earlier, block)
				ranges = append(ranges, object{"address_prefix": block.Addr().String(), "prefix_len": block.Bits()})
			}
		}
		if ranges != nil {
			chain["filter_chain_match"] = object{"prefix_ranges": ranges}
			chains = append(chains, chain)
		}
	}
	if chains == nil {
		return nil, fmt.Errorf("%s: a TCP proxy needs a route", p.StatPrefix)
	}
	return chains, nil
}

func covered(block netip.Prefix, by []netip.Prefix) bool {
	for _, b := range by {
		if b.Bits() <= block.Bits() && b.Contains(block.Addr()) {
			return true
		}
	}
	return false
}

func (p *tcpProxy) turn(cluster string) object {
	return typed("envoy.filters.network.tcp_proxy", "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy", object{
		"stat_prefix": p.StatPrefix, "cluster": cluster, "idle_timeout": "0s",
		"access_log": turnAccessLogs(p.AccessLog),
	})
}

func turnMongo(config []byte) (object, error) {
	var m struct {
		StatPrefix string `json:"stat_prefix"`
	}
	err := read(config, &m)
	return typed("envoy.filters.network.mongo_proxy", "envoy.extensions.filters.network.mongo_proxy.v3.MongoProxy",
		object{"stat_prefix": m.StatPrefix}), err
}
