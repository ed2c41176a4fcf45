package capture

import (
	"net/netip"

	"github.com/pilot-api/pilot-api/agent/capture/netfilter"
)

// The resolver answers programs from port 15053, and asks servers itself. Both may have
// the same addresses and ports, so their connections are tracked in zones of their own.
const (
	zoneServers  = 1 // the resolver and the servers that it asks
	zonePrograms = 2 // programs and the resolver
)

// dnsChains are the rules that redirect questions of DNS to the agent's resolver.
func (s *Settings) dnsChains() []*netfilter.Chain {
	var redirect, sent, received []rule
	for _, owner := range s.Proxies {
		sent = append(sent,
			rule{If: match{Protocol: netfilter.UDP, ToPort: dnsPort, Owner: &owner}, Then: netfilter.Zone{ID: zoneServers}},
			rule{If: match{Protocol: netfilter.UDP, FromPort: ResolverPort, Owner: &owner}, Then: netfilter.Zone{ID: zonePrograms}})
	}
	for _, to := range s.dnsDestinations() {
		for _, protocol := range []netfilter.Protocol{netfilter.TCP, netfilter.UDP} {
			m := to
			m.Protocol, m.ToPort = protocol, dnsPort
			redirect = append(redirect, rule{If: m, Then: netfilter.Redirect{Port: ResolverPort}})
		}
		question, answer := to, match{Family: to.Family, From: to.To}
		question.Protocol, question.ToPort = netfilter.UDP, dnsPort
		answer.Protocol, answer.FromPort = netfilter.UDP, dnsPort
		sent = append(sent, rule{If: question, Then: netfilter.Zone{ID: zonePrograms}})
		received = append(received, rule{If: answer, Then: netfilter.Zone{ID: zoneServers}})
	}
	return []*netfilter.Chain{
		{Table: netfilter.NAT, Name: chainDNS, Rules: redirect},
		{Table: netfilter.Raw, Name: chainOutput, Hook: netfilter.Output, Rules: sent},
		{Table: netfilter.Raw, Name: chainPrerouting, Hook: netfilter.Prerouting, Rules: received},
	}
}

// dnsDestinations returns a condition for each server whose questions are redirected.
func (s *Settings) dnsDestinations() (out []match) {
	if s.DNS.All {
		for _, family := range s.restricted() {
			out = append(out, match{Family: family})
		}
		return out
	}
	for _, server := range s.DNS.Servers {
		if s.covers(server) {
			out = append(out, match{To: netip.PrefixFrom(server, server.BitLen())})
		}
	}
	return out
}
