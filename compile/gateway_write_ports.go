package compile

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
)

// edgePlan is what the Gateways of a router come to, with the hosts that are
// bound to them.
type edgePlan struct {
	places   []*edgePlace
	served   map[binding]bool
	arrivals map[*virtualService][]arrival // where requests come in for it
	problems diag.List
}

// edgePlace is an address that servers of one family have.
type edgePlace struct {
	ip     string
	port   int
	family string
	groups []*edgeGroup
	origin []diag.Ref // the Gateways
}

// edgeGroup are servers whose clients are not told apart.
type edgeGroup struct {
	gatewayServer // the first
	claimed       []claimedHost
	bound         []*boundHost
	tlsRoutes     []*edgeRoute // of passthroughServer
	table         string       // is the name of its route table, for an httpServer
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

// planGateways settles which servers and hosts have a port.
func (p *plan) planGateways(of gatewaySet) *edgePlan {
	out := &edgePlan{served: map[binding]bool{}, arrivals: map[*virtualService][]arrival{}}
	owners := map[*edgePlace]map[string]*edgeGroup{}
	wanted := map[*gateway]map[string][]binding{}
	for _, name := range of.names() {
		gw := p.gatewayNamed.under(p, name)[0]
		wanted[gw] = hostsOf(p.byGateway.under(p, gw.name()))
		for _, server := range p.serversOf(gw) {
			if l := p.lackOfServer(server.tls); l.why != "" {
				p.report(l.problem(server.ref(), server.field+".tls", "the server is left out: "))
				continue
			}
			place := p.placeFor(out, server)
			if place == nil {
				continue
			}
			if owners[place] == nil {
				owners[place] = map[string]*edgeGroup{}
			}
			p.join(place, server, owners[place])
		}
	}
	for _, place := range out.places {
		p.bindHosts(out, place, wanted)
		p.nameRoutes(place, owners[place])
		place.nameTables()
	}
	out.problems = p.problems.List()
	return out
}

// placeFor is nil for a server whose port others have.
func (p *plan) placeFor(out *edgePlan, s *gatewayServer) *edgePlace {
	for _, place := range out.places {
		switch {
		case place.port != s.port:
		case place.ip == s.ip && place.family == s.family():
			return place
		case place.ip == s.ip:
			p.conflict(diag.GatewayClaimed, s.ref(), s.field+".port", fmt.Sprintf("the server is left out: %s serves %s at its port", place.origin[0], place.family))
			return nil
		case unspecified(place.ip) || unspecified(s.ip):
			p.conflict(diag.GatewayClaimed, s.ref(), s.field+".bind", fmt.Sprintf("the server is left out: %s opens its port at %s", place.origin[0], place.ip))
			return nil
		}
	}
	place := &edgePlace{ip: s.ip, port: s.port, family: s.family()}
	out.places = append(out.places, place)
	return place
}

func unspecified(ip string) bool {
	addr, err := netip.ParseAddr(ip)
	return err == nil && addr.IsUnspecified()
}

// join puts a server to those that serve their clients alike. Which of them a
// client means it says by the name that it asks for when it begins TLS, so each
// name is for one of them, the first.
func (p *plan) join(place *edgePlace, s *gatewayServer, owners map[string]*edgeGroup) {
	if ref := s.ref(); !slices.Contains(place.origin, ref) {
		place.origin = append(place.origin, ref)
	}
	group := place.groupFor(s)
	for _, host := range s.hosts {
		if owner := owners[host.host]; s.tls != nil && owner != nil && owner != group {
			p.conflict(diag.GatewayClaimed, s.ref(), s.field+".hosts", fmt.Sprintf("clients that ask for %s come to %s, which comes first", host.host, owner.ref()))
			continue
		}
		if s.tls != nil {
			owners[host.host] = group
		}
		group.claimed = append(group.claimed, claimedHost{host, s.gw, s.toHTTPS})
	}
	if len(group.claimed) > 0 && !slices.Contains(place.groups, group) {
		place.groups = append(place.groups, group)
	}
}

// groupFor is a new one where there is none yet. Requests within equal TLS are
// told apart by their host alone, so that clients may reuse connections.
func (place *edgePlace) groupFor(s *gatewayServer) *edgeGroup {
	for _, g := range place.groups {
		if g.kind == s.kind && reflect.DeepEqual(g.tls, s.tls) && (s.kind != tcpServer || s.tls == nil) {
			return g
		}
	}
	return &edgeGroup{gatewayServer: *s}
}

// serverNames are those that lead clients to the group.
func (g *edgeGroup) serverNames() []string {
	var names []string
	for _, host := range g.claimed {
		if !slices.Contains(names, host.host) {
			names = append(names, host.host)
		}
	}
	return serverNames(names)
}
