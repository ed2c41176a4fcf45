package compile

import (
	"fmt"
	"net/netip"

	"github.com/pilot-api/pilot-api/diag"
)

// edgePlan is the result of the Gateways of a router and the hosts bound to them.
type edgePlan struct {
	listeners []*edgeListener
	byPort    map[int][]*edgeListener
	served    map[binding]bool              // bindings whose host a server of its Gateways has
	arrivals  map[*virtualService][]arrival // where its requests arrive
	problems  diag.List
}

// edgeListener is an address shared by servers of one family.
type edgeListener struct {
	ip     string
	port   int
	family string
	groups []*edgeGroup
	origin []diag.Ref // the Gateways
	alike  map[groupKey]*edgeGroup
	owners map[string]*edgeGroup // by the server name that clients send

	allowed  map[reservation]bool  // what the servers allow
	reserved map[string][]*gateway // Gateways with a host for some namespaces only
}

// groupKey is what servers of a group have in common.
type groupKey struct {
	kind serverKind
	tls  string
}

// edgeGroup is a group of servers that handle their clients alike.
type edgeGroup struct {
	gatewayServer // the first
	claimed       []claimedHost
	bound         []*boundHost
	tlsRoutes     []*edgeRoute // for a passthroughServer
	table         string       // name of its route table, for an httpServer
}

// claimedHost is a host of a server in a group.
type claimedHost struct {
	gatewayHost
	gw      *gateway
	toHTTPS bool
}

// arrival is a host of a VirtualService at a port of gateways.
type arrival struct {
	port int
	kind serverKind
	host *boundHost
}

// planGateways decides which servers and hosts have a port.
func (p *plan) planGateways(of gatewaySet) *edgePlan {
	out := &edgePlan{byPort: map[int][]*edgeListener{}, served: map[binding]bool{}, arrivals: map[*virtualService][]arrival{}}
	wanted := map[*gateway]map[string][]binding{}
	for _, name := range of.names() {
		gw := p.gatewayNamed.under(&p.reader, name)[0]
		wanted[gw] = hostsOf(p.byGateway.under(&p.reader, gw.name()))
		for _, server := range p.serversOf(gw) {
			if l := p.lackOfServer(server.tls); l.why != "" {
				p.report(l.problem(server.ref(), server.field+".tls", "the server is left out: "))
				p.leaveOut(out, server, wanted[gw])
			} else if listener := p.listenerFor(out, server); listener != nil {
				p.join(out, listener, server, wanted[gw])
			} else {
				p.leaveOut(out, server, wanted[gw])
			}
		}
	}
	for _, listener := range out.listeners {
		bound := p.bindHosts(out, listener, wanted)
		p.nameRoutes(listener)
		p.checkReached(listener, bound)
		listener.nameTables()
	}
	out.problems = p.problems.List()
	return out
}

// listenerFor returns the listener of a server, or nil if its port is taken.
func (rp *reporter) listenerFor(out *edgePlan, s *gatewayServer) *edgeListener {
	for _, listener := range out.byPort[s.port] {
		switch {
		case listener.ip == s.ip && listener.family == s.family():
			return listener
		case listener.ip == s.ip:
			rp.conflict(diag.GatewayClaimed, s.ref(), s.field+".port", fmt.Sprintf("the server is left out: %s serves %s at its port", listener.origin[0], listener.family))
			return nil
		case unspecified(listener.ip) || unspecified(s.ip):
			rp.conflict(diag.GatewayClaimed, s.ref(), s.field+".bind", fmt.Sprintf("the server is left out: %s opens its port at %s", listener.origin[0], listener.ip))
			return nil
		}
	}
	listener := &edgeListener{ip: s.ip, port: s.port, family: s.family(), alike: map[groupKey]*edgeGroup{}, owners: map[string]*edgeGroup{},
		allowed: map[reservation]bool{}, reserved: map[string][]*gateway{}}
	out.listeners, out.byPort[s.port] = append(out.listeners, listener), append(out.byPort[s.port], listener)
	return listener
}

func unspecified(ip string) bool {
	addr, err := netip.ParseAddr(ip)
	return err == nil && addr.IsUnspecified()
}

// join adds a server to the group that serves its clients in the same way. A client
// chooses the group by server name, so each name belongs to one group, the first.
// The servers of a Gateway are added consecutively.
func (p *plan) join(out *edgePlan, listener *edgeListener, s *gatewayServer, wanted map[string][]binding) {
	if ref := s.ref(); len(listener.origin) == 0 || listener.origin[len(listener.origin)-1] != ref {
		listener.origin = append(listener.origin, ref)
	}
	group, key := listener.groupFor(s)
	for _, host := range s.hosts {
		if owner := listener.owners[host.host]; s.tls != nil && owner != nil && owner != group {
			p.conflict(diag.GatewayClaimed, s.ref(), s.field+".hosts", fmt.Sprintf("clients that ask for %s come to %s, which comes first", host.host, owner.ref()))
			why := fmt.Sprintf("clients that ask for %s at port %d come to %s, which comes first", host.host, s.port, owner.ref())
			p.notReached(out, p.wantedAt(claimedHost{host, s.gw, s.toHTTPS}, wanted), why)
			continue
		}
		if s.tls != nil {
			listener.owners[host.host] = group
		}
		if len(group.claimed) == 0 {
			listener.add(group, key)
		}
		group.claimed = append(group.claimed, claimedHost{host, s.gw, s.toHTTPS})
		listener.reserve(s.gw, host)
	}
}

// groupFor returns the group of a server, or a new one. Requests under equal TLS
// settings are distinguished by host alone, so that clients may reuse connections.
func (listener *edgeListener) groupFor(s *gatewayServer) (*edgeGroup, groupKey) {
	key := groupKey{kind: s.kind}
	if s.tls != nil {
		key.tls = string(encodedTLS(s.tls))
	}
	if g := listener.alike[key]; g != nil {
		return g, key
	}
	return &edgeGroup{gatewayServer: *s}, key
}

// add adds a group with its first host. TCP servers with TLS are never grouped:
// their connections are distinguished by the server.
func (listener *edgeListener) add(g *edgeGroup, key groupKey) {
	listener.groups = append(listener.groups, g)
	if g.kind != tcpServer || g.tls == nil {
		listener.alike[key] = g
	}
}

// serverNames returns the server names that lead clients to the group.
func (g *edgeGroup) serverNames() []string {
	var names []string
	known := map[string]bool{}
	for _, host := range g.claimed {
		if !known[host.host] {
			known[host.host] = true
			names = append(names, host.host)
		}
	}
	return serverNames(names)
}
