package capture

import (
	"net/netip"

	"github.com/pilot-api/pilot-api/agent/capture/netfilter"
)

// Mode is how inbound connections reach the proxy. Outbound ones are always redirected.
type Mode string

// The modes. With TProxy a workload sees the address of the caller, and the proxy needs
// the capability CAP_NET_ADMIN.
const (
	Redirect Mode = "REDIRECT"
	TProxy   Mode = "TPROXY"
)

// Settings say what is captured. Parse makes valid ones.
type Settings struct {
	Mode Mode
	// OutboundPort and InboundPort are where the proxy accepts captured connections.
	OutboundPort, InboundPort int
	// TunnelPort is a port of the proxy itself, which is not captured.
	TunnelPort int
	// Proxies are the users and groups as which the proxy and the agent run. What they
	// send is not captured, except calls to the machine itself.
	Proxies []netfilter.Owner

	// Inbound are the ports of inbound connections to capture.
	Inbound Ports
	// InboundExcluded and OutboundExcluded are ports not to capture. OutboundExcluded also
	// applies to DNS.
	InboundExcluded, OutboundExcluded []int
	// OutboundPorts are ports to capture whatever the address is, unless it is excluded.
	OutboundPorts []int
	// Ranges are the destinations of outbound connections to capture, RangesExcluded those
	// not to.
	Ranges         Ranges
	RangesExcluded []netip.Prefix
	// Loopback is the block of IPv4 addresses by which programs of the machine call each
	// other.
	Loopback netip.Prefix
	// Servers are the addresses of the control plane. They are never captured.
	Servers []netip.AddrPort

	// Groups are the groups whose programs are captured; empty means all. Those of
	// GroupsExcluded are not.
	Groups, GroupsExcluded []uint32

	// InterfacesExcluded are interfaces whose packets are not captured.
	InterfacesExcluded []string
	// VirtualInterfaces are interfaces of virtual machines. Connections that arrive there
	// are captured like those of programs of this machine.
	VirtualInterfaces []string

	// DNS says whose questions go to the agent's resolver.
	DNS DNS

	// IPv6 is false if only IPv4 is captured.
	IPv6 bool
	// DropInvalid drops packets that belong to no connection. Otherwise the kernel answers
	// them with a reset.
	DropInvalid bool
	// Mark and RouteTable are what TProxy marks connections with, and the routing table
	// for marked packets.
	Mark       uint32
	RouteTable int
}

// Ports are some ports, or all.
type Ports struct {
	All  bool
	List []int
}

// Ranges are some blocks of addresses, or all addresses.
type Ranges struct {
	All  bool
	List []netip.Prefix
}

// DNS says which questions are redirected to the agent: those to all servers, or to some.
type DNS struct {
	All     bool
	Servers []netip.Addr
}

func (d DNS) captured() bool { return d.All || len(d.Servers) > 0 }

// Ports that the agent and its proxy open for other purposes than captured connections.
// Inbound connections to them go there.
const (
	agentPort  = 15020
	healthPort = 15021
	statsPort  = 15090
	dnsPort    = 53
	// sshPort is never captured, so that a fault of the proxy locks nobody out.
	sshPort = 22
)

// ResolverPort is where the agent answers questions of DNS.
const ResolverPort = 15053

// ownSource is where the proxy's connections to undeclared ports of its workload come
// from. They are not captured again.
var ownSource = map[netfilter.Family]netip.Addr{
	netfilter.IPv4: netip.MustParseAddr("127.0.0.6"),
	netfilter.IPv6: netip.MustParseAddr("::6"),
}

// OwnSource6 is an address that the loopback interface must have if IPv6 is captured: the
// proxy sends from it. The kernel has the one of IPv4 already.
func OwnSource6() netip.Prefix { return single(ownSource[netfilter.IPv6]) }

// Families returns the families that are captured.
func (s *Settings) Families() []netfilter.Family {
	if s.IPv6 {
		return []netfilter.Family{netfilter.IPv4, netfilter.IPv6}
	}
	return []netfilter.Family{netfilter.IPv4}
}

// loopback returns the addresses by which programs of the machine call each other.
func (s *Settings) loopback(family netfilter.Family) netip.Prefix {
	if family == netfilter.IPv4 {
		return s.Loopback
	}
	return single(netip.IPv6Loopback())
}

// single returns the block of one address.
func single(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

func familyOf(a netip.Addr) netfilter.Family {
	if a.Is4() {
		return netfilter.IPv4
	}
	return netfilter.IPv6
}

// covers reports whether packets of the family of an address are captured at all.
func (s *Settings) covers(a netip.Addr) bool { return s.IPv6 || a.Is4() }
