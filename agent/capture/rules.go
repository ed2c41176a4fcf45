package capture

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/pilot-api/pilot-api/agent/capture/netfilter"
)

type (
	rule  = netfilter.Rule
	match = netfilter.Match
)

// Names of chains. output and prerouting are called by the kernel. outbound and inbound
// decide about connections from and to this machine, whoever asks them.
const (
	chainOutput     = "output"
	chainPrerouting = "prerouting"
	chainOutbound   = "outbound"
	chainInbound    = "inbound"
	chainDNS        = "dns"
)

// Ruleset returns the rules for the settings.
func (s *Settings) Ruleset() netfilter.Ruleset {
	chains := []*netfilter.Chain{
		{Table: netfilter.NAT, Name: chainOutput, Hook: netfilter.Output, Rules: s.output()},
		{Table: netfilter.NAT, Name: chainOutbound, Rules: s.outbound()},
	}
	if s.capturesInbound() {
		chains = append(chains, &netfilter.Chain{Table: netfilter.NAT, Name: chainInbound, Rules: s.inbound(s.redirectInbound)})
	}
	if rules := s.prerouting(); len(rules) > 0 {
		chains = append(chains, &netfilter.Chain{Table: netfilter.NAT, Name: chainPrerouting, Hook: netfilter.Prerouting, Rules: rules})
	}
	if s.DNS.captured() {
		chains = append(chains, s.dnsChains()...)
	}
	out := netfilter.Ruleset{Chains: append(chains, s.mangle()...)}
	first := &chains[0].Rules[0]
	sum := sha256.Sum256([]byte(out.NFT()))
	first.Comment = FingerprintPrefix + hex.EncodeToString(sum[:8])
	return out
}

// Fingerprint returns the comment by which the ruleset of the settings can be told from
// others.
func (s *Settings) Fingerprint() string { return s.Ruleset().Chains[0].Rules[0].Comment }

// FingerprintPrefix begins the comment of one rule. The rest of the comment depends on all rules,
// so it shows whether two machines, or a machine and its settings, have the same.
const FingerprintPrefix = "pilot-agent capture "

func (s *Settings) capturesInbound() bool { return s.Inbound.All || len(s.Inbound.List) > 0 }

// output are the rules for what programs of this machine send. The order matters: first
// what is never captured, then the proxy's own connections, then those of others.
func (s *Settings) output() (rules []rule) {
	for _, name := range s.InterfacesExcluded {
		rules = append(rules, rule{If: match{Out: name}, Then: netfilter.Return{}})
	}
	if s.Mode == TProxy {
		// A connection of the proxy to its workload that has the address of the caller.
		rules = append(rules, rule{If: match{Mark: s.Mark}, Then: netfilter.Return{}})
	}
	for _, family := range s.Families() {
		rules = append(rules, rule{If: match{Out: loopbackInterface, From: single(ownSource[family])}, Then: netfilter.Return{}})
	}
	rules = append(rules, s.never()...)
	for _, port := range s.OutboundExcluded {
		rules = append(rules, returnPort(netfilter.TCP, port), returnPort(netfilter.UDP, port))
	}
	rules = append(rules, s.ofProxy()...)
	rules = append(rules, s.byGroup()...)
	if s.DNS.captured() {
		rules = append(rules, rule{Then: netfilter.Jump{Chain: chainDNS}})
	}
	rules = append(rules, s.overLoopback()...)
	return append(rules, rule{If: match{Protocol: netfilter.TCP}, Then: netfilter.Jump{Chain: chainOutbound}})
}

const loopbackInterface = "lo"

func returnPort(protocol netfilter.Protocol, port int) rule {
	return rule{If: match{Protocol: protocol, ToPort: port}, Then: netfilter.Return{}}
}

// never are connections that no setting captures, in either direction.
func (s *Settings) never() []rule {
	rules := []rule{returnPort(netfilter.TCP, sshPort)}
	for _, server := range s.Servers {
		if s.covers(server.Addr()) {
			rules = append(rules, rule{If: match{Protocol: netfilter.TCP, To: single(server.Addr()), ToPort: int(server.Port())}, Then: netfilter.Return{}})
		}
	}
	return rules
}

// ofProxy are the rules for the proxy's own connections. Those to the machine itself are
// calls of its workload to a service that has an instance here. They are treated like
// calls from other machines.
func (s *Settings) ofProxy() (rules []rule) {
	if s.capturesInbound() {
		for _, owner := range s.Proxies {
			for _, family := range s.Families() {
				m := match{Out: loopbackInterface, Protocol: netfilter.TCP, NotTo: s.loopback(family), Owner: &owner}
				if s.DNS.captured() {
					m.NotToPorts = []int{dnsPort} // The resolver asks a server of this machine.
				}
				rules = append(rules, rule{If: m, Then: netfilter.Jump{Chain: chainInbound}})
			}
		}
	}
	for _, owner := range s.Proxies {
		rules = append(rules, rule{If: match{Owner: &owner}, Then: netfilter.Return{}})
	}
	return rules
}

func (s *Settings) byGroup() (rules []rule) {
	if len(s.Groups) > 0 {
		rules = append(rules, rule{If: match{NotOwners: groups(s.Groups)}, Then: netfilter.Return{}})
	}
	for _, owner := range groups(s.GroupsExcluded) {
		rules = append(rules, rule{If: match{Owner: &owner}, Then: netfilter.Return{}})
	}
	return rules
}

func groups(ids []uint32) []netfilter.Owner {
	out := make([]netfilter.Owner, len(ids))
	for i, id := range ids {
		out[i] = netfilter.Owner{Group: true, ID: id}
	}
	return out
}

// overLoopback returns connections between programs of this machine. Only blocks of
// loopback addresses that Ranges name are captured.
func (s *Settings) overLoopback() (rules []rule) {
	for _, family := range s.Families() {
		rules = append(rules, rule{If: match{To: s.loopback(family)}, Then: netfilter.Return{}})
	}
	for _, block := range s.Ranges.List {
		if block.Addr().IsLoopback() && s.covers(block.Addr()) {
			rules = append(rules, rule{If: match{Out: loopbackInterface, Protocol: netfilter.TCP, To: block}, Then: netfilter.Jump{Chain: chainOutbound}})
		}
	}
	return append(rules, rule{If: match{Out: loopbackInterface}, Then: netfilter.Return{}})
}

// outbound decides about TCP connections to other machines.
func (s *Settings) outbound() []rule {
	rules := s.never()
	for _, block := range s.RangesExcluded {
		if s.covers(block.Addr()) {
			rules = append(rules, rule{If: match{To: block}, Then: netfilter.Return{}})
		}
	}
	redirect := netfilter.Redirect{Port: s.OutboundPort}
	for _, port := range s.OutboundPorts {
		for _, family := range s.restricted() {
			rules = append(rules, rule{If: match{Family: family, Protocol: netfilter.TCP, ToPort: port}, Then: redirect})
		}
	}
	if s.Ranges.All {
		for _, family := range s.restricted() {
			rules = append(rules, rule{If: match{Family: family, Protocol: netfilter.TCP}, Then: redirect})
		}
	}
	for _, block := range s.Ranges.List {
		if s.covers(block.Addr()) {
			rules = append(rules, rule{If: match{Protocol: netfilter.TCP, To: block}, Then: redirect})
		}
	}
	return rules
}

// restricted returns the families to which a rule without an address must be restricted.
func (s *Settings) restricted() []netfilter.Family {
	if s.IPv6 {
		return []netfilter.Family{netfilter.Both}
	}
	return []netfilter.Family{netfilter.IPv4}
}

// prerouting are the rules for the first packet of a connection that arrives.
func (s *Settings) prerouting() (rules []rule) {
	for _, name := range s.InterfacesExcluded {
		rules = append(rules, rule{If: match{In: name}, Then: netfilter.Return{}})
	}
	for _, name := range s.VirtualInterfaces {
		rules = append(rules,
			rule{If: match{In: name, Protocol: netfilter.TCP}, Then: netfilter.Jump{Chain: chainOutbound}},
			rule{If: match{In: name}, Then: netfilter.Return{}})
	}
	captures := s.Mode == Redirect && s.capturesInbound()
	if captures {
		rules = append(rules, rule{If: match{Protocol: netfilter.TCP, ToThisMachine: true}, Then: netfilter.Jump{Chain: chainInbound}})
	}
	if !captures && len(s.VirtualInterfaces) == 0 {
		return nil
	}
	return rules
}

// inbound decides about TCP connections to this machine. capture returns the rules that
// capture a port; 0 means all.
func (s *Settings) inbound(capture func(port int) []rule) []rule {
	rules := s.never()
	for _, port := range s.inboundExcluded() {
		rules = append(rules, returnPort(netfilter.TCP, port))
	}
	if s.Inbound.All {
		return append(rules, capture(0)...)
	}
	for _, port := range s.Inbound.List {
		rules = append(rules, capture(port)...)
	}
	return rules
}

// inboundExcluded returns ports at which no inbound connection is captured.
func (s *Settings) inboundExcluded() []int {
	return unique(append([]int{s.TunnelPort, agentPort, healthPort, statsPort}, s.InboundExcluded...))
}

func (s *Settings) redirectInbound(port int) (rules []rule) {
	for _, family := range s.restricted() {
		rules = append(rules, rule{If: match{Family: family, Protocol: netfilter.TCP, ToPort: port}, Then: netfilter.Redirect{Port: s.InboundPort}})
	}
	return rules
}

// unique returns the values without those that occurred before.
func unique[T comparable](values []T) (out []T) {
	seen := map[T]bool{}
	for _, v := range values {
		if !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	return out
}
