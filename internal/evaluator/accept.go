package evaluator

import (
	"net/netip"
	"strings"
)

// listener returns the listener for the request's connection, nil if there is none. A
// captured connection arrives at the listener with UseOriginalDst and stays there if no
// other listener matches.
func (p *Proxy) listener(r Request) *Listener {
	if !r.Captured {
		l := p.nearest(r.Destination)
		if l == nil || !l.Bind {
			return nil
		}
		return l
	}
	for _, l := range p.Listeners {
		if l.UseOriginalDst && l.Bind {
			if nearest := p.nearest(r.Destination); nearest != nil {
				return nearest
			}
			return l
		}
	}
	return nil
}

// nearest returns the listener of the exact address, or else that of the port on every
// address.
func (p *Proxy) nearest(to netip.AddrPort) *Listener {
	if l := p.at(to); l != nil {
		return l
	}
	everywhere := netip.IPv4Unspecified()
	if to.Addr().Is6() {
		everywhere = netip.IPv6Unspecified()
	}
	return p.at(netip.AddrPortFrom(everywhere, to.Port()))
}

func (p *Proxy) at(address netip.AddrPort) *Listener {
	for _, l := range p.Listeners {
		if l.Address == address {
			return l
		}
	}
	return nil
}

// chain returns the chain for the connection. It is the first one that matches: readers
// put chains in the order in which Envoy tries them.
func (l *Listener) chain(r Request) (chain Chain, ok bool) {
	for _, c := range l.Chains {
		if !c.reaches(r.Destination) {
			continue
		}
		if nearest := l.nearest(r.Destination); l.Nearest && (c.Destination != nearest.Destination || c.Port != nearest.Port) {
			continue
		}
		if nameFits(c.Name, r.ServerName) {
			return c, true
		}
	}
	return Chain{}, false
}

func (c Chain) reaches(to netip.AddrPort) bool {
	return (!c.Destination.IsValid() || c.Destination.Contains(to.Addr())) && (c.Port == 0 || c.Port == int(to.Port()))
}

// nearest returns a chain for the most specific destination.
func (l *Listener) nearest(to netip.AddrPort) Chain {
	for _, c := range l.Chains {
		if c.reaches(to) {
			return c
		}
	}
	return Chain{}
}

func nameFits(pattern, name string) bool {
	ending, wildcard := strings.CutPrefix(pattern, "*")
	return pattern == "" || pattern == name || wildcard && strings.HasSuffix(name, ending)
}
