package evaluator

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	filev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	mongov3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/mongo_proxy/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/proto"
)

func (r *v3Reader) listener(at string, l *listenerv3.Listener) *Listener {
	r.only(at, l, "name", "address", "bind_to_port", "enable_reuse_port", "connection_balance_config", "use_original_dst", "filter_chains", "traffic_direction",
		"listener_filters", "continue_on_listener_filters_timeout")
	out := &Listener{Traits: Traits{
		Name:           l.GetName(),
		Address:        r.addrPort(at, r.address(at, l.GetAddress())),
		Bind:           l.GetBindToPort() == nil || l.GetBindToPort().GetValue(),
		UseOriginalDst: l.GetUseOriginalDst().GetValue(),
	}}
	operation := "ingress"
	if l.GetTrafficDirection() == corev3.TrafficDirection_OUTBOUND {
		operation = "egress"
	}
	r.require(len(l.GetFilterChains()) > 0, at, "must have a filter chain")
	alike := func(c *listenerv3.FilterChain) bool {
		return c.GetFilterChainMatch() == nil || proto.Equal(c.GetTransportSocket(), l.GetFilterChains()[0].GetTransportSocket()) && !isHTTP(c)
	}
	for _, chain := range l.GetFilterChains() {
		r.only(at, chain, "filter_chain_match", "filters", "transport_socket")
		if slices.ContainsFunc(l.GetFilterChains(), func(c *listenerv3.FilterChain) bool { return !alike(c) }) {
			r.apart(at, chain, operation, out)
			continue
		}
		r.serverTLS(at, chain.GetTransportSocket(), &out.Traits)
		r.filters(at, chain, operation, out)
	}
	r.mostSpecificFirst(at, out, len(l.GetListenerFilters()) > 0)
	return out
}

func isHTTP(c *listenerv3.FilterChain) bool {
	return slices.ContainsFunc(c.GetFilters(), func(f *listenerv3.Filter) bool { return f.GetTypedConfig().MessageIs(&hcmv3.HttpConnectionManager{}) })
}

// apart reads a chain that handles the connections for some names differently.
func (r *v3Reader) apart(at string, chain *listenerv3.FilterChain, operation string, out *Listener) {
	own := &Listener{}
	r.serverTLS(at, chain.GetTransportSocket(), &own.Traits)
	if !isHTTP(chain) {
		r.filters(at, chain, operation, own)
		for _, c := range own.Chains {
			c.Traits = own.Traits
			out.Chains = append(out.Chains, c)
		}
		return
	}
	match := chain.GetFilterChainMatch()
	r.only(at, match, "server_names")
	plain := &listenerv3.FilterChain{Filters: chain.GetFilters()}
	r.filters(at, plain, operation, own)
	names := match.GetServerNames()
	if len(names) == 0 {
		names = []string{""}
	}
	for _, name := range names {
		out.Chains = append(out.Chains, Chain{Name: name, HTTP: own.HTTP, Traits: own.Traits})
	}
}

func (r *v3Reader) filters(at string, chain *listenerv3.FilterChain, operation string, out *Listener) {
	for i, f := range chain.GetFilters() {
		r.only(at, f, "name", "typed_config")
		message, err := f.GetTypedConfig().UnmarshalNew()
		if err != nil {
			r.fail(at, "%v", err)
			continue
		}
		last := i == len(chain.GetFilters())-1
		switch config := message.(type) {
		case *mongov3.MongoProxy:
			r.only(at, config, "stat_prefix")
			r.require(!last, at, "mongo_proxy must not be the last filter")
			out.Mongo = true
		case *tcpv3.TcpProxy:
			r.require(last, at, "tcp_proxy must be the last filter")
			r.tcp(at, config, chain.GetFilterChainMatch(), out)
		case *hcmv3.HttpConnectionManager:
			r.require(last && chain.GetFilterChainMatch() == nil && out.HTTP == nil, at, "HTTP beside other chains is not known here")
			r.http(at, config, operation, out)
		default:
			r.fail(at, "filter %T is not known", config)
		}
	}
}

// tcpIdle is Envoy's default for a TCP proxy.
const tcpIdle = time.Hour

func (r *v3Reader) tcp(at string, config *tcpv3.TcpProxy, match *listenerv3.FilterChainMatch, out *Listener) {
	r.only(at, config, "stat_prefix", "cluster", "weighted_clusters", "access_log", "idle_timeout", "max_downstream_connection_duration", "hash_policy")
	out.AccessLog = r.accessLog(at, config.GetAccessLog())
	out.Idle = duration(config.GetIdleTimeout(), tcpIdle)
	out.Age = duration(config.GetMaxDownstreamConnectionDuration(), 0)
	r.only(at, match, "prefix_ranges", "server_names", "destination_port")
	port := int(match.GetDestinationPort().GetValue())
	blocks := []netip.Prefix{{}}
	if len(match.GetPrefixRanges()) > 0 {
		blocks = nil
	}
	for _, block := range match.GetPrefixRanges() {
		r.only(at, block, "address_prefix", "prefix_len")
		address, err := netip.ParseAddr(block.GetAddressPrefix())
		if err != nil {
			r.fail(at, "%v", err)
			continue
		}
		blocks = append(blocks, netip.PrefixFrom(address, int(block.GetPrefixLen().GetValue())).Masked())
	}
	names := match.GetServerNames()
	if len(names) == 0 {
		names = []string{""}
	}
	for _, block := range blocks {
		for _, name := range names {
			out.Chains = append(out.Chains, Chain{Destination: block, Port: port, Name: name, Shares: r.tcpShares(at, config)})
		}
	}
}

func (r *v3Reader) tcpShares(at string, config *tcpv3.TcpProxy) []Share {
	if config.GetWeightedClusters() == nil {
		return whole(config.GetCluster())
	}
	sum := 0
	for _, c := range config.GetWeightedClusters().GetClusters() {
		r.only(at, c, "name", "weight")
		sum += int(c.GetWeight())
	}
	var out []Share
	for _, c := range config.GetWeightedClusters().GetClusters() {
		out = append(out, Share{Cluster: c.GetName(), Percent: 100 * float64(c.GetWeight()) / float64(sum)})
	}
	return out
}

// mostSpecificFirst turns v3's choice of a chain into v1's order: by port, destination
// and name, with missing ones last.
func (r *v3Reader) mostSpecificFirst(at string, l *Listener, inspects bool) {
	l.Nearest = true
	rank := func(c Chain) int {
		switch {
		case c.Name == "":
			return math.MaxInt
		case strings.HasPrefix(c.Name, "*"):
			return -len(c.Name)
		}
		return math.MinInt
	}
	slices.SortStableFunc(l.Chains, func(a, b Chain) int {
		return cmp.Or(cmp.Compare(min(b.Port, 1), min(a.Port, 1)), cmp.Compare(b.Destination.Bits(), a.Destination.Bits()), cmp.Compare(rank(a), rank(b)))
	})
	type place struct {
		block netip.Prefix
		port  int
		name  string
	}
	seen := map[place]bool{}
	for _, c := range l.Chains {
		at0 := place{c.Destination, c.Port, c.Name}
		r.require(!seen[at0], at, "two chains for %s at port %d %s", c.Destination, c.Port, c.Name)
		r.require(c.Name == "" || inspects, at, "nobody looks for the name %s", c.Name)
		seen[at0] = true
	}
}

func (r *v3Reader) accessLog(at string, logs []*accesslogv3.AccessLog) string {
	r.require(len(logs) <= 1, at, "more than one access log")
	file := &filev3.FileAccessLog{}
	for _, l := range logs {
		r.only(at, l, "name", "typed_config")
		if r.unpack(at, l.GetTypedConfig(), file) {
			r.only(at, file, "path")
		}
	}
	return file.GetPath()
}
