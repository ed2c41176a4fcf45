package capture

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/pilot-api/pilot-api/agent/capture/netfilter"
)

// Names of flags. Those of Istio have the names and letters of istio-iptables, which
// include the letters of Pilot's first agent.
const (
	flagOutboundPort     = "envoy-port"
	flagInboundPort      = "inbound-capture-port"
	flagTunnelPort       = "inbound-tunnel-port"
	flagUsers            = "proxy-uid"
	flagGroups           = "proxy-gid"
	flagMode             = "istio-inbound-interception-mode"
	flagMark             = "istio-inbound-tproxy-mark"
	flagRouteTable       = "istio-inbound-tproxy-route-table"
	flagInbound          = "istio-inbound-ports"
	flagInboundExcluded  = "istio-local-exclude-ports"
	flagOutbound         = "istio-outbound-ports"
	flagOutboundExcluded = "istio-local-outbound-ports-exclude"
	flagRanges           = "istio-service-cidr"
	flagRangesExcluded   = "istio-service-exclude-cidr"
	flagLoopback         = "istio-outbound-ipv4-loopback-cidr"
	flagOwnerGroups      = "istio-outbound-owner-groups"
	flagOwnerGroupsNot   = "istio-outbound-owner-groups-exclude"
	flagInterfacesNot    = "istio-exclude-interfaces"
	flagVirtual          = "kube-virt-interfaces"
	flagRedirectDNS      = "redirect-dns"
	flagAllDNS           = "capture-all-dns"
	flagDropInvalid      = "drop-invalid"
	flagDualStack        = "dual-stack"
	flagServer           = "server"
)

// Flags are the settings as text, as they stand on a command line.
type Flags struct {
	outboundPort, inboundPort, tunnelPort, users, groups, mode, mark, routeTable,
	inbound, inboundExcluded, outbound, outboundExcluded, ranges, rangesExcluded, loopback,
	ownerGroups, ownerGroupsNot, interfacesNot, virtual string
	servers                                     []string
	redirectDNS, allDNS, dropInvalid, dualStack bool
}

// Register adds the flags to a set, and gives each its default.
func (f *Flags) Register(flags *pflag.FlagSet) {
	flags.StringVarP(&f.outboundPort, flagOutboundPort, "p", "15001", "port at which the proxy accepts captured outbound connections")
	flags.StringVarP(&f.inboundPort, flagInboundPort, "z", "15006", "port at which the proxy accepts captured inbound connections")
	flags.StringVarP(&f.tunnelPort, flagTunnelPort, "e", "15008", "port of the proxy for tunnels, which is not captured")
	flags.StringVarP(&f.users, flagUsers, "u", "1337", "users, by number or name, as which the proxy and the agent run; what they send is not captured")
	flags.StringVarP(&f.groups, flagGroups, "g", "", "groups, by number or name, as which the proxy and the agent run; without it those with the numbers of the users, or the own groups of users that are named")
	flags.StringVarP(&f.mode, flagMode, "m", string(Redirect), "how inbound connections reach the proxy: REDIRECT, or TPROXY, with which the workload sees the caller's address")
	flags.StringVarP(&f.mark, flagMark, "t", "1337", "mark of the connections of a TPROXY proxy to its workload")
	flags.StringVarP(&f.routeTable, flagRouteTable, "r", "133", "routing table for connections with that mark")
	flags.StringVarP(&f.inbound, flagInbound, "b", "*", "ports of inbound connections to capture, or * for all; empty captures none")
	flags.StringVarP(&f.inboundExcluded, flagInboundExcluded, "d", "", "ports of inbound connections not to capture, beside 22, 15020, 15021 and 15090")
	flags.StringVarP(&f.outbound, flagOutbound, "q", "", "ports of outbound connections to capture to any address that is not excluded")
	flags.StringVarP(&f.outboundExcluded, flagOutboundExcluded, "o", "", "ports of outbound connections not to capture, beside 22")
	flags.StringVarP(&f.ranges, flagRanges, "i", "*", "blocks of addresses (CIDR) of outbound connections to capture, or * for all; empty captures none")
	flags.StringVarP(&f.rangesExcluded, flagRangesExcluded, "x", "", "blocks of addresses (CIDR) of outbound connections not to capture")
	flags.StringVar(&f.loopback, flagLoopback, "127.0.0.1/32", "block of IPv4 addresses by which programs of the machine call each other, which is not captured")
	flags.StringVar(&f.ownerGroups, flagOwnerGroups, "*", "groups, by number or name, whose programs are captured, or * for all")
	flags.StringVar(&f.ownerGroupsNot, flagOwnerGroupsNot, "", "groups, by number or name, whose programs are not captured")
	flags.StringVarP(&f.interfacesNot, flagInterfacesNot, "c", "", "network interfaces whose connections are not captured")
	flags.StringVarP(&f.virtual, flagVirtual, "k", "", "network interfaces of virtual machines, whose connections are captured like outbound ones")
	flags.BoolVar(&f.redirectDNS, flagRedirectDNS, false, "send questions of DNS to the servers of /etc/resolv.conf to the agent's resolver at port 15053")
	flags.BoolVar(&f.allDNS, flagAllDNS, false, "send questions of DNS to any server to the agent's resolver (with --redirect-dns)")
	flags.BoolVar(&f.dropInvalid, flagDropInvalid, false, "drop packets that belong to no connection, in place of answering them with a reset")
	flags.BoolVar(&f.dualStack, flagDualStack, true, "capture IPv6 beside IPv4")
	flags.StringSliceVar(&f.servers, flagServer, nil, "HOST:PORT of a server of the control plane; connections to it are never captured")
}

// MostEntries is how many entries a flag may have.
const MostEntries = 1000

// Parse returns the settings that the flags stand for. Names are looked up on the machine.
// The error has all mistakes, one on each line, each with its flag and what is allowed.
func (f *Flags) Parse(on Machine) (*Settings, error) {
	p := &parser{on: on}
	s := &Settings{
		Mode:         p.mode(f.mode),
		OutboundPort: p.port(flagOutboundPort, f.outboundPort),
		InboundPort:  p.port(flagInboundPort, f.inboundPort),
		TunnelPort:   p.port(flagTunnelPort, f.tunnelPort),
		Proxies:      p.proxies(f.users, f.groups),

		InboundExcluded:  p.ports(flagInboundExcluded, f.inboundExcluded),
		OutboundExcluded: p.ports(flagOutboundExcluded, f.outboundExcluded),
		OutboundPorts:    p.ports(flagOutbound, f.outbound),
		RangesExcluded:   p.blocks(flagRangesExcluded, f.rangesExcluded),
		Loopback:         p.loopback(f.loopback),

		GroupsExcluded:     p.groups(flagOwnerGroupsNot, f.ownerGroupsNot),
		InterfacesExcluded: p.interfaces(flagInterfacesNot, f.interfacesNot),
		VirtualInterfaces:  p.interfaces(flagVirtual, f.virtual),

		IPv6:        f.dualStack,
		DropInvalid: f.dropInvalid,
		Mark:        p.number(flagMark, f.mark, math.MaxUint32),
		RouteTable:  int(p.number(flagRouteTable, f.routeTable, math.MaxInt32)),
	}
	if f.inbound == all {
		s.Inbound.All = true
	} else {
		s.Inbound.List = p.ports(flagInbound, f.inbound)
	}
	if f.ranges == all {
		s.Ranges.All = true
	} else {
		s.Ranges.List = p.blocks(flagRanges, f.ranges)
	}
	if f.ownerGroups != all {
		s.Groups = p.groups(flagOwnerGroups, f.ownerGroups)
	}
	p.exclusive(f, s)
	s.DNS = p.dns(f)
	s.Servers = p.servers(f.servers)
	if len(p.mistakes) > 0 {
		return nil, errors.Join(p.mistakes...)
	}
	return s, nil
}

const all = "*"

type parser struct {
	on       Machine
	mistakes []error
}

func (p *parser) wrong(flag, format string, values ...any) {
	p.mistakes = append(p.mistakes, fmt.Errorf("--%s: %s", flag, fmt.Sprintf(format, values...)))
}

func (p *parser) mode(text string) Mode {
	switch mode := Mode(strings.ToUpper(text)); mode {
	case Redirect, TProxy:
		return mode
	case "":
		return Redirect
	}
	p.wrong(flagMode, "%q is no mode; REDIRECT and TPROXY are", text)
	return Redirect
}

// entries returns the parts of a list, without empty ones and repetitions.
func (p *parser) entries(flag, text string) (out []string) {
	for _, entry := range strings.Split(text, ",") {
		if entry = strings.TrimSpace(entry); entry != "" {
			out = append(out, entry)
		}
	}
	if out = unique(out); len(out) > MostEntries {
		p.wrong(flag, "has %d entries; at most %d are allowed", len(out), MostEntries)
		return nil
	}
	return out
}

func (p *parser) port(flag, text string) int {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		p.wrong(flag, "%q is no port: a number from 1 to 65535 is needed", text)
		return 0
	}
	return int(n)
}

func (p *parser) ports(flag, text string) (out []int) {
	for _, entry := range p.entries(flag, text) {
		if entry == all {
			p.wrong(flag, "* stands for all ports, and must be alone where it is allowed")
			continue
		}
		if port := p.port(flag, entry); port > 0 {
			out = append(out, port)
		}
	}
	return unique(out)
}

func (p *parser) number(flag, text string, most uint64) uint32 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 || n > most {
		p.wrong(flag, "%q is no number from 1 to %d", text, most)
		return 0
	}
	return uint32(n)
}

func (p *parser) block(flag, text string) (netip.Prefix, bool) {
	if address, err := netip.ParseAddr(text); err == nil && address.Zone() == "" {
		return single(address.Unmap()), true
	}
	block, err := netip.ParsePrefix(text)
	if err != nil || block.Addr().Is4In6() {
		p.wrong(flag, "%q is no block of addresses: 10.0.0.0/8 and 2001:db8::/32 are, and so is a single address", text)
		return netip.Prefix{}, false
	}
	return block.Masked(), true
}

func (p *parser) blocks(flag, text string) (out []netip.Prefix) {
	for _, entry := range p.entries(flag, text) {
		if entry == all {
			p.wrong(flag, "* stands for all addresses, and must be alone where it is allowed")
			continue
		}
		if block, ok := p.block(flag, entry); ok {
			out = append(out, block)
		}
	}
	return unique(out)
}

func (p *parser) loopback(text string) netip.Prefix {
	block, ok := p.block(flagLoopback, text)
	if ok && (!block.Addr().Is4() || !block.Addr().IsLoopback() || block.Bits() < 8) {
		p.wrong(flagLoopback, "%q is not within 127.0.0.0/8", text)
	}
	return block
}

// proxies returns the users and groups of the proxy.
func (p *parser) proxies(users, groups string) (out []netfilter.Owner) {
	named := p.entries(flagUsers, users)
	if len(named) == 0 {
		p.wrong(flagUsers, "is empty: without the user of the proxy, its own connections would be captured")
	}
	var implied []netfilter.Owner
	for _, entry := range named {
		uid, gid, err := p.user(entry)
		if err != nil {
			p.wrong(flagUsers, "%v", err)
			continue
		}
		out = append(out, netfilter.Owner{ID: uid})
		implied = append(implied, netfilter.Owner{Group: true, ID: gid})
	}
	if ids := p.groups(flagGroups, groups); len(ids) > 0 {
		implied = nil
		for _, id := range ids {
			implied = append(implied, netfilter.Owner{Group: true, ID: id})
		}
	}
	return unique(append(out, implied...))
}

// user returns the number of a user and of the group that goes with it.
func (p *parser) user(text string) (uid, gid uint32, err error) {
	if n, err := strconv.ParseUint(text, 10, 32); err == nil {
		return uint32(n), uint32(n), nil
	}
	return p.on.User(text)
}

func (p *parser) groups(flag, text string) (out []uint32) {
	for _, entry := range p.entries(flag, text) {
		n, err := strconv.ParseUint(entry, 10, 32)
		id := uint32(n)
		if err != nil {
			if id, err = p.on.Group(entry); err != nil {
				p.wrong(flag, "%v", err)
				continue
			}
		}
		out = append(out, id)
	}
	return unique(out)
}

// interfaceName is what names of network interfaces may consist of here. The kernel allows
// more, such as quotes.
var interfaceName = regexp.MustCompile(`^[A-Za-z0-9_.:@-]{1,15}$`)

func (p *parser) interfaces(flag, text string) (out []string) {
	for _, entry := range p.entries(flag, text) {
		if !interfaceName.MatchString(entry) {
			p.wrong(flag, "%q is no name of a network interface: 1 to 15 letters, digits and _ . : @ - are allowed", entry)
			continue
		}
		out = append(out, entry)
	}
	return out
}

// exclusive reports settings that contradict each other or a promise.
func (p *parser) exclusive(f *Flags, s *Settings) {
	p.capturable(flagInbound, s.Inbound.List, s)
	p.capturable(flagOutbound, s.OutboundPorts, s)
	if s.OutboundPort == sshPort || s.InboundPort == sshPort {
		p.wrong(flagOutboundPort, "port 22 cannot be the port of the proxy")
	}
	if len(s.Groups) > 0 && len(s.GroupsExcluded) > 0 {
		p.wrong(flagOwnerGroupsNot, "cannot be given together with --%s, which excludes all other groups", flagOwnerGroups)
	}
	if f.ownerGroups == "" {
		p.wrong(flagOwnerGroups, "is empty: * captures the programs of all groups")
	}
}

// capturable reports ports that cannot be captured.
func (p *parser) capturable(flag string, ports []int, s *Settings) {
	for _, port := range ports {
		switch port {
		case sshPort:
			p.wrong(flag, "port 22 is never captured, so that a fault of the proxy locks nobody out; leave it out")
		case s.OutboundPort, s.InboundPort:
			p.wrong(flag, "%d is the port at which the proxy accepts captured connections; it cannot be captured", port)
		}
	}
}

func (p *parser) dns(f *Flags) (out DNS) {
	switch {
	case f.allDNS && !f.redirectDNS:
		p.wrong(flagAllDNS, "has an effect only with --%s", flagRedirectDNS)
	case f.allDNS:
		out.All = true
	case f.redirectDNS:
		servers, err := p.on.Resolvers()
		for _, server := range servers {
			if !f.dualStack && !server.Is4() {
				continue
			}
			out.Servers = append(out.Servers, server)
		}
		if out.Servers = unique(out.Servers); err != nil {
			p.wrong(flagRedirectDNS, "%v", err)
		} else if len(out.Servers) == 0 {
			p.wrong(flagRedirectDNS, "/etc/resolv.conf names no server; --%s captures questions to any", flagAllDNS)
		}
	}
	return out
}

func (p *parser) servers(texts []string) (out []netip.AddrPort) {
	for _, text := range texts {
		host, port, err := splitHostPort(text)
		if err != nil {
			p.wrong(flagServer, "%v", err)
			continue
		}
		addresses, err := p.on.Addresses(host)
		if err != nil {
			p.wrong(flagServer, "%s: %v", text, err)
		}
		for _, address := range addresses {
			out = append(out, netip.AddrPortFrom(address.Unmap().WithZone(""), port))
		}
	}
	return unique(out)
}
