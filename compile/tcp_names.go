package compile

import (
	"slices"

	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// withOwnNames returns a route by server name without the names that are the host
// of another service at the port, unless that service is in the namespace of the
// rule or follows the same rule. At its own addresses a service may use any name.
func (c *writer) withOwnNames(planned plannedTCP, svc *mesh.Service, port *mesh.Port, destinations []string) plannedTCP {
	named := c.owners.named[port.Number]
	if len(destinations) > 0 || len(named) == 0 {
		return planned
	}
	var names []string
	for _, name := range planned.names {
		owner := ownerOfName(named, name)
		if owner == nil || owner == svc || owner.Namespace == planned.origin.Namespace {
			names = append(names, name)
			continue
		}
		if vs := c.domain.virtualFor(owner.Hostname); vs != nil && vs.ref == planned.origin {
			names = append(names, name)
			continue
		}
		c.reportLostName(planned.origin, name, owner, port)
	}
	planned.names = names
	return planned
}

// ownerOfName returns the service whose host a server name is: the exact host, else
// the longest wildcard.
func ownerOfName(named []*mesh.Service, name string) *mesh.Service {
	var owner *mesh.Service
	for _, svc := range named {
		host := serverNames([]string{svc.Hostname})
		if len(host) == 0 || !covers(host[0], name) {
			continue
		}
		if owner == nil || host[0] == name || owner.Hostname != name && len(svc.Hostname) > len(owner.Hostname) {
			owner = svc
		}
	}
	return owner
}

// namedAtBlocks returns the parts of named services at the blocks of younger
// services of other namespaces. They come before those services there.
func (c *writer) namedAtBlocks(blocks []tcpBlock) []tcpBlock {
	var out []tcpBlock
	for _, named := range blocks {
		if named.width() >= 0 || len(named.last().ServerNames) == 0 {
			continue
		}
		at := map[int][]string{} // by width
		for _, b := range blocks {
			if b.width() >= 0 && c.plan.isBefore(named.at.service, b.at.service) {
				at[b.width()] = append(at[b.width()], b.last().Destinations...)
			}
		}
		for _, destinations := range at {
			part := tcpBlock{at: named.at}
			for _, r := range named.routes {
				if r.Destinations = within(r.Destinations, destinations); len(r.Destinations) > 0 {
					r.Assumed, r.NamesOnly = false, true
					part.routes = append(part.routes, r)
				}
			}
			if len(part.routes) > 0 {
				out = append(out, part)
			}
		}
	}
	return out
}

// within returns the intersections of some blocks with others. No blocks means all
// destinations.
func within(blocks, others []string) []string {
	if len(blocks) == 0 {
		return others
	}
	var out []string
	for _, a := range blocks {
		for _, b := range others {
			if part := narrower(a, b); part != "" && !slices.Contains(out, part) {
				out = append(out, part)
			}
		}
	}
	return out
}

// narrower returns the narrower of two blocks if one contains the other, else "".
func narrower(a, b string) string {
	one, err := ir.ParseDestination(a)
	other, otherErr := ir.ParseDestination(b)
	switch {
	case err != nil || otherErr != nil || !one.Overlaps(other):
		return ""
	case one.Bits() < other.Bits():
		return b
	}
	return a
}
