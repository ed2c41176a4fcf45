package capture

import (
	"net/netip"
	"slices"

	"github.com/pilot-api/pilot-api/agent/capture/netfilter"
)

// documentation are addresses at which no machine answers: they are reserved for examples.
var documentation = map[netfilter.Family][]string{
	netfilter.IPv4: {"192.0.2.1", "198.51.100.1", "203.0.113.1"},
	netfilter.IPv6: {"2001:db8::1", "2001:db8:ffff::1", "3fff::1"},
}

// samplePort is a port at which hardly any machine answers.
const samplePort = 9

// OutboundSample returns a destination of a family to which connections of most programs are
// captured, and at which probably nobody answers. It returns false if there is none.
func (s *Settings) OutboundSample(family netfilter.Family) (netip.AddrPort, bool) {
	ports := []int{samplePort, 80, 443, 8080}
	if !s.Ranges.All && len(s.Ranges.List) == 0 {
		ports = s.OutboundPorts
	}
	for _, address := range s.candidates(family) {
		for _, port := range ports {
			to := netip.AddrPortFrom(address, uint16(port))
			if !s.leavesOut(to) {
				return to, true
			}
		}
	}
	return netip.AddrPort{}, false
}

func (s *Settings) candidates(family netfilter.Family) (out []netip.Addr) {
	if !s.Captures(family) {
		return nil
	}
	for _, block := range s.Ranges.List {
		if familyOf(block.Addr()) == family && !block.Addr().IsLoopback() {
			out = append(out, nearEnd(block))
		}
	}
	if s.Ranges.All || len(s.Ranges.List) == 0 {
		for _, text := range documentation[family] {
			out = append(out, netip.MustParseAddr(text))
		}
	}
	return out
}

// nearEnd returns the address before the last one of a block, where machines are rare.
func nearEnd(block netip.Prefix) netip.Addr {
	bytes := block.Addr().AsSlice()
	for bit := block.Bits(); bit < len(bytes)*8-1; bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	out, _ := netip.AddrFromSlice(bytes)
	return out
}

// leavesOut reports whether connections to a destination are not captured.
func (s *Settings) leavesOut(to netip.AddrPort) bool {
	return slices.Contains(s.OutboundExcluded, int(to.Port())) || slices.Contains(s.Servers, to) || to.Port() == sshPort ||
		slices.ContainsFunc(s.RangesExcluded, func(b netip.Prefix) bool { return b.Contains(to.Addr()) })
}

// Captures reports whether packets of a family are captured at all.
func (s *Settings) Captures(family netfilter.Family) bool {
	return slices.Contains(s.Families(), family)
}

// DNSSample returns a server to which questions are redirected, or false.
func (s *Settings) DNSSample(family netfilter.Family) (netip.AddrPort, bool) {
	servers := s.DNS.Servers
	if s.DNS.All {
		servers = []netip.Addr{netip.MustParseAddr(documentation[family][0])}
	}
	for _, server := range servers {
		if familyOf(server) == family && !slices.Contains(s.OutboundExcluded, dnsPort) {
			return netip.AddrPortFrom(server, dnsPort), true
		}
	}
	return netip.AddrPort{}, false
}

// InboundSample returns a port at which inbound connections to an address of this machine
// are captured, or false.
func (s *Settings) InboundSample(own netip.Addr) (int, bool) {
	ports := s.Inbound.List
	if s.Inbound.All {
		ports = []int{samplePort, 7, 19}
	}
	for _, port := range ports {
		if port != sshPort && !slices.Contains(s.inboundExcluded(), port) && !slices.Contains(s.Servers, netip.AddrPortFrom(own, uint16(port))) {
			return port, true
		}
	}
	return 0, false
}
