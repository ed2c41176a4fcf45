package evaluator

import "net/netip"

// listener takes the request's connection; nil when none does. A captured
// connection goes through the listener that hands off, which closes what there
// is no listener for.
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
			return p.nearest(r.Destination)
		}
	}
	return nil
}

// nearest is the listener of the very address, or else the one of its port at
// every address.
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

func (l *Listener) chain(destination netip.AddrPort) (cluster string, ok bool) {
	for _, c := range l.Chains {
		there := !c.Destination.IsValid() || c.Destination.Contains(destination.Addr())
		if there && (c.Port == 0 || c.Port == int(destination.Port())) {
			return c.Cluster, true
		}
	}
	return "", false
}
