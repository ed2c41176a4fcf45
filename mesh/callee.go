package mesh

import (
	"net/netip"
	"strings"
)

// Resolve gives the addresses that a workload beside the proxy would find for a
// host: of an address itself, of a service its own ones, by its whole name or
// without as much of its end as the proxy's domain has. None when that is not
// known here.
func (s *Snapshot) Resolve(p Proxy, host string) []string {
	if _, err := netip.ParseAddr(host); err == nil {
		return []string{canonicalIP(host)}
	}
	namespace := NamespaceOf(s.statedDomain(p), s.Settings.Domain)
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for name, rest := host, s.statedDomain(p); ; name = host + "." + rest {
		if svc := s.ServiceIn(namespace, name); svc != nil {
			return hostAddresses(svc.Addresses)
		}
		if name != host {
			_, rest, _ = strings.Cut(rest, ".")
		}
		if rest == "" {
			return nil
		}
	}
}

// hostAddresses leaves out blocks, which no name means.
func hostAddresses(addresses []string) []string {
	var out []string
	for _, a := range addresses {
		if _, err := netip.ParseAddr(a); err == nil {
			out = append(out, a)
		}
	}
	return out
}
