package evaluator

import (
	"cmp"
	"net/netip"
	"slices"
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
	r.only(at, l, "name", "address", "bind_to_port", "enable_reuse_port", "use_original_dst", "filter_chains", "traffic_direction")
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
	for i, chain := range l.GetFilterChains() {
		r.only(at, chain, "filter_chain_match", "filters", "transport_socket")
		r.require(i == 0 || proto.Equal(chain.GetTransportSocket(), l.GetFilterChains()[0].GetTransportSocket()), at,
			"chains with different TLS are not known here")
		r.serverTLS(at, chain.GetTransportSocket(), &out.Traits)
		r.filters(at, chain, operation, out)
	}
	r.mostSpecificFirst(at, out)
	return out
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

// tcpIdle is Envoy's when a proxy names none.
const tcpIdle = time.Hour

func (r *v3Reader) tcp(at string, config *tcpv3.TcpProxy, match *listenerv3.FilterChainMatch, out *Listener) {
	r.only(at, config, "stat_prefix", "cluster", "access_log", "idle_timeout", "max_downstream_connection_duration", "hash_policy")
	out.AccessLog = r.accessLog(at, config.GetAccessLog())
	out.Idle = duration(config.GetIdleTimeout(), tcpIdle)
	out.Age = duration(config.GetMaxDownstreamConnectionDuration(), 0)
	if match == nil {
		out.Chains = append(out.Chains, Chain{Cluster: config.GetCluster()})
		return
	}
	r.only(at, match, "prefix_ranges", "destination_port")
	port := int(match.GetDestinationPort().GetValue())
	if len(match.GetPrefixRanges()) == 0 {
		out.Chains = append(out.Chains, Chain{Port: port, Cluster: config.GetCluster()})
	}
	for _, block := range match.GetPrefixRanges() {
		r.only(at, block, "address_prefix", "prefix_len")
		address, err := netip.ParseAddr(block.GetAddressPrefix())
		if err != nil {
			r.fail(at, "%v", err)
			continue
		}
		prefix := netip.PrefixFrom(address, int(block.GetPrefixLen().GetValue())).Masked()
		out.Chains = append(out.Chains, Chain{prefix, port, config.GetCluster()})
	}
}

// mostSpecificFirst turns v3's choice of a chain into v1's: by port, then by
// destination; the zero prefix comes last.
func (r *v3Reader) mostSpecificFirst(at string, l *Listener) {
	slices.SortStableFunc(l.Chains, func(a, b Chain) int {
		return cmp.Or(cmp.Compare(min(b.Port, 1), min(a.Port, 1)), cmp.Compare(b.Destination.Bits(), a.Destination.Bits()))
	})
	seen := map[Chain]bool{}
	for _, c := range l.Chains {
		match := Chain{Destination: c.Destination, Port: c.Port}
		r.require(!seen[match], at, "two chains for %s at port %d", c.Destination, c.Port)
		seen[match] = true
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
