package ir

import (
	"net/netip"
	"slices"
	"strings"
)

// Address is "ip:port" as Pilot wrote it, an IPv6 address in brackets.
func (l *Listener) Address() string { return HostPort{Host: l.IP, Port: l.Port}.String() }

// ListenersAt is the final list for a proxy with the given address: open
// addresses are filled in, one listener per address (the first in c wins),
// sorted by address text as bytes, as Pilot did: "0.0.0.0:15001" comes before
// "0.0.0.0:443" and that before "0.0.0.0:80". The listeners are the caller's
// to read, not to change.
func (c *Config) ListenersAt(ip string) []*Listener {
	byAddress := make(map[string]*Listener, len(c.Listeners))
	addresses := make([]string, 0, len(c.Listeners))
	for _, l := range c.Listeners {
		l = l.at(ip)
		a := l.Address()
		// One address has many spellings.
		if addr, err := netip.ParseAddr(l.IP); err == nil {
			a = HostPort{Host: addr.String(), Port: l.Port}.String()
		}
		if byAddress[a] == nil {
			byAddress[a] = l
			addresses = append(addresses, a)
		}
	}
	slices.SortFunc(addresses, strings.Compare)
	out := make([]*Listener, len(addresses))
	for i, a := range addresses {
		out[i] = byAddress[a]
	}
	return out
}

// at fills an open address, also as the destination of routes without one.
func (l *Listener) at(ip string) *Listener {
	if l.IP != "" {
		return l
	}
	filled := *l
	filled.IP = ip
	filled.TCP = l.TCP.at(ip)
	filled.Chains = slices.Clone(l.Chains)
	for i, c := range filled.Chains {
		if c.TCP != nil {
			own := *c
			own.TCP = c.TCP.at(ip)
			filled.Chains[i] = &own
		}
	}
	return &filled
}

func (t *TCPListener) at(ip string) *TCPListener {
	if t == nil {
		return nil
	}
	filled := *t
	filled.Routes = slices.Clone(t.Routes)
	for i, r := range filled.Routes {
		if len(r.Destinations) == 0 {
			filled.Routes[i].Destinations = []string{onlyHost(ip)}
		}
	}
	return &filled
}

// onlyHost is the CIDR block of one address. A text that is no address stays
// as it is, for Validate to complain about.
func onlyHost(ip string) string {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return ip
	}
	return netip.PrefixFrom(addr, addr.BitLen()).String()
}
