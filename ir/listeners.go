package ir

import (
	"net/netip"
	"slices"
	"strings"
)

// Address returns "ip:port" as Pilot wrote it, with an IPv6 address in brackets.
func (l *Listener) Address() string { return HostPort{Host: l.IP, Port: l.Port}.String() }

// ListenersAt returns the final list for a proxy with the given address. Open
// addresses are filled in. Of several listeners at one address the first in c wins.
// The list is sorted by address text as bytes, as in Pilot: "0.0.0.0:15001" comes
// before "0.0.0.0:443" and that before "0.0.0.0:80". The caller must not change the
// listeners.
func (c *Config) ListenersAt(ip string) []*Listener {
	byAddress := make(map[string]*Listener, len(c.Listeners))
	addresses := make([]string, 0, len(c.Listeners))
	for _, l := range c.Listeners {
		l = l.at(ip)
		a := l.Address()
		// One address can be written in several ways.
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

// at fills in an open address, also as the destination of routes without one.
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

// onlyHost returns the CIDR block of one address. It returns a text that is not an
// address unchanged; Validate reports it.
func onlyHost(ip string) string {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return ip
	}
	return netip.PrefixFrom(addr, addr.BitLen()).String()
}
