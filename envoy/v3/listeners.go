package v3

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/ir"
)

// Listeners returns the answer of LDS for a proxy with the given address.
func Listeners(cfg *ir.Config, proxyIP string) ([]*listenerv3.Listener, diag.List) {
	listeners := cfg.ListenersAt(proxyIP)
	out := make([]*listenerv3.Listener, len(listeners))
	var problems diag.List
	for i, l := range listeners {
		encoded, p := Listener(l, Polled(cfg.RouteDelay))
		out[i] = encoded
		problems = append(problems, p...)
	}
	return out, problems
}

// Listener returns one listener of the answer of LDS, with its address and the source of
// its routes.
func Listener(l *ir.Listener, from Source) (*listenerv3.Listener, diag.List) {
	out := &listenerv3.Listener{
		Name:             envoy.ListenerName(l),
		Address:          address(l.IP, l.Port),
		BindToPort:       wrapperspb.Bool(l.Bind),
		TrafficDirection: direction(l.Direction),
	}
	if l.Bind {
		// A port of another Envoy on the machine is an error. Otherwise each
		// would silently get a part of the connections of the other.
		out.EnableReusePort = wrapperspb.Bool(false)
		// The workers share one queue of new connections, and the worker that happens
		// to be awake would take most of them.
		out.ConnectionBalanceConfig = exactBalance
	}
	if l.UseOriginalDst {
		out.UseOriginalDst = wrapperspb.Bool(true)
	}
	chains, problems := filterChains(l, from)
	if len(chains) == 0 {
		// Envoy requires a chain. An empty one closes connections that are not
		// handed off.
		chains = []*listenerv3.FilterChain{{}}
	}
	out.FilterChains = chains
	inspectNames(out)
	return out, problems
}

// exactBalance gives a new connection to the worker that has the fewest.
var exactBalance = &listenerv3.Listener_ConnectionBalanceConfig{
	BalanceType: &listenerv3.Listener_ConnectionBalanceConfig_ExactBalance_{ExactBalance: &listenerv3.Listener_ConnectionBalanceConfig_ExactBalance{}},
}

// direction returns the direction by which Envoy names spans. A gateway is always inbound.
func direction(d ir.Direction) corev3.TrafficDirection {
	if d == ir.Outbound {
		return corev3.TrafficDirection_OUTBOUND
	}
	return corev3.TrafficDirection_INBOUND
}

func networkFilter(name string, config proto.Message) *listenerv3.Filter {
	return &listenerv3.Filter{Name: name, ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: typed(config)}}
}
