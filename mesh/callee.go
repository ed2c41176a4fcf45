package mesh

import (
	"net/netip"
	"strings"
)

// Resolve returns the addresses that a workload beside the proxy would find for a
// host. An address resolves to itself, a service to its own addresses. A service
// may be named in full or without a suffix that it shares with the proxy's domain.
// Resolve returns none if the host is unknown.
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

// hostAddresses omits blocks, which no name resolves to.
func hostAddresses(addresses []string) []string {
	var out []string
	for _, a := range addresses {
		if _, err := netip.ParseAddr(a); err == nil {
			out = append(out, a)
		}
	}
	return out
}
