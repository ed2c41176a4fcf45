package v1

import (
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/ir"
)

// ListenersResponse is the answer of LDS.
type ListenersResponse struct {
	Listeners []Listener `json:"listeners"`
}

// Listener accepts connections at one address.
type Listener struct {
	Address        string     `json:"address"`
	Name           string     `json:"name"`
	Filters        []Filter   `json:"filters"`
	SSLContext     *ServerTLS `json:"ssl_context,omitempty"`
	BindToPort     bool       `json:"bind_to_port"`
	UseOriginalDst bool       `json:"use_original_dst,omitempty"`
}

// Filter is a network or HTTP filter. Envoy does not use the type.
type Filter struct {
	Type   string `json:"type"`
	Name   string `json:"name"`
	Config any    `json:"config"`
}

// Listeners returns the answer of LDS for a proxy with the given address.
func Listeners(cfg *ir.Config, proxyIP string) (ListenersResponse, diag.List) {
	b := listenerBuilder{delay: cfg.RouteDelay, tables: make(map[string]*ir.RouteTable, len(cfg.RouteTables))}
	for _, t := range cfg.RouteTables {
		b.tables[t.Name] = t
	}
	listeners := cfg.ListenersAt(proxyIP)
	out := make([]Listener, 0, len(listeners))
	for _, l := range listeners {
		if l = plainOnly(l); refuses(l) {
			b.warn(l.Origins, "Envoy v1 closes port %d: it cannot refuse some callers and take others", l.Port)
			l = closed(l)
		}
		l = b.withoutBeside(l)
		if why := lackingListener(l); why != "" {
			b.warn(l.Origins, "Envoy v1 gets no listener for port %d: %s", l.Port, why)
			continue
		}
		if l.TLS != nil && l.TLS.Client != nil && l.TLS.Client.Unverified {
			b.warn(l.Origins, "Envoy v1 verifies the certificates of all clients at port %d", l.Port)
		}
		if l.TLS != nil && l.TLS.Client != nil && l.TLS.Client.URIPrefix != "" {
			b.warn(l.Origins, "Envoy v1 takes certificates with any name of the authorities at port %d", l.Port)
		}
		out = append(out, b.listener(l))
	}
	return ListenersResponse{Listeners: out}, b.problems
}

// plainOnly returns a listener that takes mutual TLS or plain text as one of plain text: v1 has
// one of them at a port.
func plainOnly(l *ir.Listener) *ir.Listener {
	last := len(l.Chains) - 1
	if last < 0 || l.Chains[0].Transport == ir.AnyTransport {
		return l
	}
	plain := *l
	plain.Chains, plain.HTTP, plain.TCP = nil, l.Chains[last].HTTP, l.Chains[last].TCP
	return &plain
}

// refuses reports whether a listener takes only some requests or connections.
func refuses(l *ir.Listener) bool {
	found := false
	l.EachHTTP(func(h *ir.HTTPListener) { found = found || h.Tokens != nil || h.Access.Refuses() })
	l.EachTCP(func(t *ir.TCPListener) { found = found || t.Access.Refuses() })
	return found
}

// closed returns a listener that closes all connections.
func closed(l *ir.Listener) *ir.Listener {
	out := *l
	out.HTTP, out.TLS, out.Chains = nil, nil, nil
	out.TCP = &ir.TCPListener{Routes: []ir.TCPRoute{{Clusters: ir.Whole(ir.Nobody)}}}
	return &out
}

// withoutBeside returns the listener with HTTP only. In v1 a port has either HTTP or TCP,
// so connections to some destinations cannot be handled as TCP first.
func (b *listenerBuilder) withoutBeside(l *ir.Listener) *ir.Listener {
	if len(l.Chains) != 2 || l.Chains[0].TCP == nil || l.Chains[1].HTTP == nil || l.Chains[1].TLS != nil ||
		slices.ContainsFunc(l.Chains[0].TCP.Routes, func(r ir.TCPRoute) bool { return len(r.Destinations) == 0 }) {
		return l
	}
	b.warn(l.Chains[0].Origins, "Envoy v1 takes all connections to port %d as HTTP: it has HTTP or TCP at a port", l.Port)
	plain := *l
	plain.Chains, plain.HTTP, plain.Origins = nil, l.Chains[1].HTTP, l.Chains[1].Origins
	return &plain
}

// lackingListener says what v1 cannot do with incoming connections, in which case the
// port stays closed. It returns "" if there is nothing.
func lackingListener(l *ir.Listener) string {
	if len(l.Chains) > 0 {
		return "all clients get the same, whatever name they ask for"
	}
	return lackingTLS(l.TLS)
}

// listenerBuilder has the state that the listeners of one answer share.
type listenerBuilder struct {
	delay    time.Duration
	tables   map[string]*ir.RouteTable
	problems diag.List
}

func (b *listenerBuilder) listener(l *ir.Listener) Listener {
	out := Listener{
		Address:        "tcp://" + l.Address(),
		Name:           envoy.ListenerName(l),
		Filters:        []Filter{},
		SSLContext:     serverTLS(l.TLS),
		BindToPort:     l.Bind,
		UseOriginalDst: l.UseOriginalDst,
	}
	switch {
	case l.HTTP != nil:
		out.Filters = []Filter{{Type: "read", Name: "http_connection_manager", Config: b.http(l)}}
	case l.TCP != nil:
		out.Filters = b.tcp(l)
	}
	return out
}

func (b *listenerBuilder) warn(origins []diag.Ref, format string, args ...any) {
	b.problems = append(b.problems, diag.Warn(diag.NotHonoured, origins, format, args...)...)
}
