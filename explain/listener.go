package explain

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// listener returns the listener that takes the request's connection, or nil.
func (p Proxy) listener(r Request, e *Explanation) *ir.Listener {
	listeners := p.Config.ListenersAt(p.IP)
	l := accept(listeners, r)
	switch {
	case l != nil:
	case r.Way == Captured:
		e.Reason = "the proxy captures no connections"
	default:
		e.Reason = "nothing listens at " + destination(r)
	}
	return l
}

// accept returns the listener of a connection, or nil. A captured connection goes
// to the listener of its destination if there is one, and otherwise to the
// capturing listener.
func accept(listeners []*ir.Listener, r Request) *ir.Listener {
	nearest := exact(listeners, r)
	if nearest == nil {
		nearest = everywhere(listeners, r)
	}
	if r.Way != Captured {
		if nearest == nil || !nearest.Bind {
			return nil
		}
		return nearest
	}
	for _, l := range listeners {
		if l.UseOriginalDst && l.Bind {
			if nearest != nil {
				return nearest
			}
			return l
		}
	}
	return nil
}

// exact returns the listener for exactly the request's address and port.
func exact(listeners []*ir.Listener, r Request) *ir.Listener {
	to := r.addr()
	for _, l := range listeners {
		if at, err := netip.ParseAddr(l.IP); err == nil && l.Port == r.Port && at.Unmap() == to {
			return l
		}
	}
	return nil
}

// everywhere returns the listener for the port at every address of the request's
// family.
func everywhere(listeners []*ir.Listener, r Request) *ir.Listener {
	to := r.addr()
	for _, l := range listeners {
		at, err := netip.ParseAddr(l.IP)
		if err == nil && l.Port == r.Port && at.IsUnspecified() && (!to.IsValid() || at.Is4() == to.Is4()) {
			return l
		}
	}
	return nil
}

// chooseChain returns the first chain that matches the connection, or nil.
func chooseChain(chains []*ir.FilterChain, r Request) *ir.FilterChain {
	for _, c := range chains {
		if namesFit(c.ServerNames, r) && fitsTransport(c, r) && reaches(c.TCP, r) {
			return c
		}
	}
	return nil
}

// fitsTransport reports whether the request begins its connection as a chain expects. Only callers
// with a certificate of the mesh offer the application protocols of a proxy.
func fitsTransport(c *ir.FilterChain, r Request) bool {
	tls := r.beginsTLS()
	return (len(c.ALPN) == 0 || r.offers()) && (c.Transport == ir.AnyTransport || (c.Transport == ir.OverTLS) == tls)
}

// reaches returns false if all routes are for other destinations. A nil t is for
// all destinations.
func reaches(t *ir.TCPListener, r Request) bool {
	return t == nil || len(t.Routes) == 0 || slices.ContainsFunc(t.Routes, func(route ir.TCPRoute) bool {
		return len(route.Destinations) == 0 || slices.ContainsFunc(route.Destinations, func(block string) bool {
			prefix, err := ir.ParseDestination(block)
			return err == nil && prefix.Contains(r.addr())
		})
	})
}

// asks returns the server name that the client asks for when it begins TLS, without
// its final dot.
func (r Request) asks() string {
	if r.Scheme != "https" {
		return ""
	}
	return strings.ToLower(strings.TrimSuffix(r.Name(), "."))
}

func namesFit(patterns []string, r Request) bool {
	name := r.asks()
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(pattern string) bool {
		ending, wildcard := strings.CutPrefix(pattern, "*")
		return pattern == name || wildcard && strings.HasSuffix(name, ending)
	})
}

// tcp takes the first route that matches the connection.
func (p Proxy) tcp(t *ir.TCPListener, listener []diag.Ref, r Request, e *Explanation) {
	r.connection = true
	if e.decide(t.Access, r) {
		e.Reason = "the connection is closed: a policy about callers refuses it"
		return
	}
	for i, route := range t.Routes {
		origins := route.Origins
		if len(origins) == 0 {
			origins = listener
		}
		if failed := tcpFails(route, r); failed != "" {
			e.Passed = append(e.Passed, Passed{Match: tcpMatchText(route), Origins: origins, Failed: failed})
			continue
		}
		e.Route = &Route{Number: i + 1, Of: len(t.Routes), Match: tcpMatchText(route), Origins: origins}
		e.Forward = &Forward{TCP: true, Clusters: p.shares(route.Clusters)}
		return
	}
	e.Reason = "the connection is closed: no route takes it"
}

// tcpFails returns the first condition that does not hold, or "".
func tcpFails(route ir.TCPRoute, r Request) string {
	to := r.addr()
	inside := func(block string) bool {
		prefix, err := ir.ParseDestination(block)
		return err == nil && prefix.Contains(to)
	}
	switch {
	case len(route.Destinations) > 0 && !slices.ContainsFunc(route.Destinations, inside):
		return "address must be " + either(route.Destinations) + ", is " + known(r.Address)
	case route.Port != 0 && route.Port != r.Port:
		return "port must be " + number(route.Port) + ", is " + number(r.Port)
	case !namesFit(route.ServerNames, r):
		return "server name must be " + either(route.ServerNames) + ", found " + serverName(r)
	}
	return ""
}
