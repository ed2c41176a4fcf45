package compile

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// addressKey is the part of a scope that decides who owns an address.
type addressKey struct {
	namespace string
	sidecar   *sidecar
	router    bool
}

// addressOwners says who owns the addresses that services declare, for the callers
// of a scope. An address is owned at a port, whatever the protocol.
type addressOwners struct {
	lost map[placed]loss
	// beside has the blocks that keep their connections at a port that HTTP
	// services use too, but later.
	beside map[placed]bool
	// named has the services whose connections are identified by server name, by
	// port, in the order of compareOwners.
	named map[int][]*mesh.Service
}

// placed is an address or block of a service at a port.
type placed struct {
	servicePort
	block netip.Prefix
}

// loss says who owns what a service declares too.
type loss struct {
	to *mesh.Service
	// crowded is set if too many server names would have connections to the block.
	crowded bool
}

func (a *addressOwners) equal(other *addressOwners) bool {
	return maps.Equal(a.lost, other.lost) && maps.Equal(a.beside, other.beside) &&
		maps.EqualFunc(a.named, other.named, slices.Equal[[]*mesh.Service])
}

// maxNamedBlocks is the maximum number of pairs, at a port, of a server name and a
// block of a younger object of another namespace. A proxy receives a route for each
// pair.
const maxNamedBlocks = 100_000

// addressesIn returns the address owners for the callers of a scope.
func (rd *reader) addressesIn(s scope) *addressOwners {
	key := addressKey{namespace: rd.forDomain(s.domain).namespace, router: s.role == mesh.Router}
	if s.sidecar.limits() {
		key.sidecar = s.sidecar
	} else if !rd.seesApart.Get(rd.r, none{})[key.namespace] {
		// Callers of a namespace that sees what every namespace sees share one result,
		// so that a further namespace costs nothing here.
		key.namespace = ""
	}
	return rd.addresses.Get(rd.r, key)
}

// findSeesApart returns the namespaces that exportTo of some service names: callers there
// may see other services than callers elsewhere.
func (rd *reader) findSeesApart() map[string]bool {
	out := map[string]bool{}
	for _, svc := range rd.services() {
		if mesh.Exported(svc.ExportTo, svc.Namespace, "") {
			continue
		}
		for _, namespace := range svc.ExportTo {
			if namespace == "." {
				namespace = svc.Namespace
			}
			out[namespace] = true
		}
	}
	return out
}

// addressClaims are the claims to one port.
type addressClaims struct {
	blocks []placed
	http   []*mesh.Service // services with HTTP at the port
	named  []*mesh.Service
}

// findAddressOwners decides each port separately.
func (rd *reader) findAddressOwners(key addressKey) *addressOwners {
	out := &addressOwners{lost: map[placed]loss{}, beside: map[placed]bool{}, named: map[int][]*mesh.Service{}}
	if rd.pilot().AnyNamespaceRules {
		return out
	}
	for number, at := range rd.addressClaims(key) {
		rd.settleAddresses(at, out)
		if len(at.http) == 0 && len(at.named) > 0 {
			out.named[number] = at.named
			rd.boundNamed(at, out)
		}
	}
	return out
}

// addressClaims returns the claims by port, each list in the order of
// compareOwners.
func (rd *reader) addressClaims(key addressKey) map[int]*addressClaims {
	s := scope{sidecar: key.sidecar, role: mesh.Sidecar}
	if key.router {
		s.role = mesh.Router
	}
	out := map[int]*addressClaims{}
	for _, svc := range rd.inOwnerOrder(rd.servicesIn(key.namespace, s)) {
		blocks := declaredBlocks(svc)
		for _, port := range rd.portsFor(s, svc) {
			if port.Protocol == mesh.UDP {
				continue
			}
			at := out[port.Number]
			if at == nil {
				at = &addressClaims{}
				out[port.Number] = at
			}
			for _, block := range blocks {
				at.blocks = append(at.blocks, placed{servicePort{svc, port}, block})
			}
			switch {
			case rd.routesHTTP(svc, port):
				at.http = append(at.http, svc)
			case readsNames(port) && len(blocks) == 0:
				at.named = append(at.named, svc)
			}
		}
	}
	return out
}

// declaredBlocks returns the addresses of a service as blocks. An external host may
// itself be an address.
func declaredBlocks(svc *mesh.Service) []netip.Prefix {
	texts, err := blocksOf(declaredAddresses(svc))
	if err != nil {
		return nil
	}
	var out []netip.Prefix
	for _, text := range texts {
		if block, err := ir.ParseDestination(text); err == nil {
			out = append(out, block)
		}
	}
	return out
}

func declaredAddresses(svc *mesh.Service) []string {
	if len(svc.Addresses) == 0 && svc.External {
		return []string{svc.Hostname}
	}
	return svc.Addresses
}

// settleAddresses decides the claims to a port. Each claim gets its block, unless
// the narrowest enclosing block that is already owned belongs to another namespace.
func (rd *reader) settleAddresses(at *addressClaims, out *addressOwners) {
	have := map[netip.Prefix]*mesh.Service{}
	for _, claim := range at.blocks {
		if len(at.http) > 0 && !claim.block.IsSingleIP() && !rd.routesHTTP(claim.service, claim.port) {
			if !rd.keepsBeside(claim.service, at.http) {
				continue // HTTP owns the port.
			}
			out.beside[claim] = true
		}
		switch owner := around(have, claim.block); {
		case owner != nil && owner.Namespace != claim.service.Namespace:
			out.lost[claim] = loss{to: owner}
			delete(out.beside, claim)
		case have[claim.block] == nil:
			have[claim.block] = claim.service
		}
	}
}

// keepsBeside reports whether a service keeps its blocks at a port that other
// services use for HTTP: it came first, and its own namespace has no HTTP there.
func (rd *reader) keepsBeside(svc *mesh.Service, http []*mesh.Service) bool {
	return !rd.pilot().TCPTakesHTTPPort && rd.compareOwners(svc, http[0]) < 0 &&
		!slices.ContainsFunc(http, func(other *mesh.Service) bool { return other.Namespace == svc.Namespace })
}

// around returns the owner of the narrowest block that contains a block, or nil.
func around(have map[netip.Prefix]*mesh.Service, block netip.Prefix) *mesh.Service {
	for bits := block.Bits(); bits >= 0 && len(have) > 0; bits-- {
		if owner := have[netip.PrefixFrom(block.Addr(), bits).Masked()]; owner != nil {
			return owner
		}
	}
	return nil
}

// boundNamed gives up blocks if too many server names would have connections to
// them.
func (rd *reader) boundNamed(at *addressClaims, out *addressOwners) {
	pairs := 0
	for _, claim := range at.blocks {
		if _, lost := out.lost[claim]; lost {
			continue
		}
		named := rd.namedBefore(at.named, claim.service)
		if pairs += len(named); pairs > maxNamedBlocks && len(named) > 0 {
			out.lost[claim] = loss{to: named[0], crowded: true}
		}
	}
}

// namedBefore returns those of the named services that also get the connections for
// their names at the addresses of another service: the older ones of other
// namespaces.
func (m *model) namedBefore(named []*mesh.Service, svc *mesh.Service) []*mesh.Service {
	var out []*mesh.Service
	for _, n := range named {
		if m.isBefore(n, svc) {
			out = append(out, n)
		}
	}
	return out
}

// isBefore reports whether a service is older than svc and of another namespace.
func (m *model) isBefore(first, svc *mesh.Service) bool {
	return first.Namespace != svc.Namespace && m.compareOwners(first, svc) < 0
}

// lostAt returns the owner of an address of a service port, or nil if no other
// service owns it.
func (a *addressOwners) lostAt(at servicePort, address string) *mesh.Service {
	addr, err := netip.ParseAddr(address)
	if err != nil || len(a.lost) == 0 {
		return nil
	}
	return a.lost[placed{at, netip.PrefixFrom(addr, addr.BitLen())}].to
}

// losesAny reports whether a service port loses an address that a Host header can
// name.
func (a *addressOwners) losesAny(at servicePort) bool {
	return len(a.lost) > 0 && slices.ContainsFunc(declaredAddresses(at.service), func(address string) bool { return a.lostAt(at, address) != nil })
}
