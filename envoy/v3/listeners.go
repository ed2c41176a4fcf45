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

// Listeners answers LDS for a proxy with the given address.
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

// Listener is one of those that answer LDS, with its address filled in and the
// source of its routes.
func Listener(l *ir.Listener, from Source) (*listenerv3.Listener, diag.List) {
	out := &listenerv3.Listener{
		Name:             envoy.ListenerName(l),
		Address:          address(l.IP, l.Port),
		BindToPort:       wrapperspb.Bool(l.Bind),
		TrafficDirection: direction(l.Direction),
	}
	if l.Bind {
		// A port that another Envoy of the machine has is an error, not shared
		// with it in silence, each taking a part of the other's connections.
		out.EnableReusePort = wrapperspb.Bool(false)
	}
	if l.UseOriginalDst {
		out.UseOriginalDst = wrapperspb.Bool(true)
	}
	chains, problems := filterChains(l, from)
	if len(chains) == 0 {
		// Envoy wants a chain; an empty one closes what is not handed off.
		chains = []*listenerv3.FilterChain{{}}
	}
	out.FilterChains = chains
	inspectNames(out)
	return out, problems
}

// direction: a gateway takes requests in, whatever way they go on. Envoy names
// spans by it.
func direction(d ir.Direction) corev3.TrafficDirection {
	if d == ir.Outbound {
		return corev3.TrafficDirection_OUTBOUND
	}
	return corev3.TrafficDirection_INBOUND
}

func networkFilter(name string, config proto.Message) *listenerv3.Filter {
	return &listenerv3.Filter{Name: name, ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: typed(config)}}
}
