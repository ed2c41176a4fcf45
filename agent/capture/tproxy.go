package capture

import (
	"fmt"

	"github.com/pilot-api/pilot-api/agent/capture/netfilter"
)

// mangle are the chains for all packets, not only the first of a connection.
//
// With TPROXY the proxy accepts a connection at its own destination, and calls its
// workload with the address of the caller and the mark. The workload answers to that
// address. So that the answers do not leave the machine, connections with the mark pass it
// on to their packets, and a routing rule keeps marked packets here (Routing).
func (s *Settings) mangle() (chains []*netfilter.Chain) {
	var in, out []rule
	if s.DropInvalid {
		in = append(in, rule{If: match{State: netfilter.Invalid}, Then: netfilter.Drop{}})
	}
	if s.Mode == TProxy && s.capturesInbound() {
		for _, name := range s.InterfacesExcluded {
			in = append(in, rule{If: match{In: name}, Then: netfilter.Return{}})
			out = append(out, rule{If: match{Out: name}, Then: netfilter.Return{}})
		}
		in = append(in,
			rule{If: match{In: loopbackInterface, Protocol: netfilter.TCP, Mark: s.Mark}, Then: netfilter.SaveMark{}},
			// Programs of this machine, among them the proxy, are not callers of another one.
			rule{If: match{In: loopbackInterface}, Then: netfilter.Return{}})
		for _, name := range s.VirtualInterfaces {
			in = append(in, rule{If: match{In: name}, Then: netfilter.Return{}})
		}
		in = append(in, rule{
			If:   match{Protocol: netfilter.TCP, ToThisMachine: true, State: netfilter.New},
			Then: netfilter.Jump{Chain: chainInbound},
		})
		out = append(out, rule{If: match{Protocol: netfilter.TCP, ConnMark: s.Mark}, Then: netfilter.RestoreMark{}})
		chains = append(chains,
			&netfilter.Chain{Table: netfilter.Mangle, Name: chainInbound, Rules: s.inbound(s.tproxyInbound)},
			&netfilter.Chain{Table: netfilter.Mangle, Name: chainOutput, Hook: netfilter.Output, Rules: out})
	}
	if len(in) > 0 {
		chains = append(chains, &netfilter.Chain{Table: netfilter.Mangle, Name: chainPrerouting, Hook: netfilter.Prerouting, Rules: in})
	}
	return chains
}

func (s *Settings) tproxyInbound(port int) (rules []rule) {
	for _, family := range s.restricted() {
		rules = append(rules, rule{If: match{Family: family, Protocol: netfilter.TCP, ToPort: port}, Then: netfilter.TProxy{Port: s.InboundPort}})
	}
	return rules
}

// Routing is what the machine needs beside the rules of the packet filter. The zero value is
// nothing.
type Routing struct {
	// Mark, if it is not 0, is that of packets which are delivered to this machine whatever
	// their destination is, by a route in Table.
	Mark  uint32
	Table int
	// OwnSource6 says that the loopback interface needs the address of that function.
	OwnSource6 bool
}

// Routing returns what the machine needs beside the rules.
func (s *Settings) Routing() Routing {
	out := Routing{OwnSource6: s.IPv6 && s.capturesInbound()}
	if s.Mode == TProxy && s.capturesInbound() {
		out.Mark, out.Table = s.Mark, s.RouteTable
	}
	return out
}

// Commands returns the routing of the settings as commands for a shell.
func (s *Settings) Commands() (out []string) {
	r := s.Routing()
	if r.OwnSource6 {
		out = append(out, fmt.Sprintf("ip -6 address add %s dev lo", OwnSource6()))
	}
	if r.Mark == 0 {
		return out
	}
	for _, family := range s.Families() {
		out = append(out,
			fmt.Sprintf("ip -%d route add local default dev lo table %d", family, r.Table),
			fmt.Sprintf("ip -%d rule add fwmark %d lookup %d", family, r.Mark, r.Table))
	}
	return out
}
