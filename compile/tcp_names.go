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
// services of other namespaces. They come before those services there, except for a
// service's own host, which is more precise than a wildcard that covers it.
func (c *writer) namedAtBlocks(blocks []tcpBlock) []tcpBlock {
	anywhere := slices.DeleteFunc(slices.Clone(blocks), func(b tcpBlock) bool { return !isNamed(b) })
	if len(anywhere) == 0 {
		return nil
	}
	var out []tcpBlock
	for _, b := range blocks {
		if b.width() < 0 || !c.isCovered(b.at, anywhere) {
			continue
		}
		if own := forOwnName(b); len(own.routes) > 0 {
			out = append(out, own)
		}
	}
	for _, named := range anywhere {
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

// isNamed reports whether a block has the connections for some server names, wherever
// they go.
func isNamed(b tcpBlock) bool { return b.width() < 0 && len(b.last().ServerNames) > 0 }

// isCovered reports whether one of the named services is older, of another namespace,
// and has a wildcard that covers the host of a service.
func (c *writer) isCovered(at servicePort, named []tcpBlock) bool {
	host := serverNames([]string{at.service.Hostname})
	return len(host) > 0 && slices.ContainsFunc(named, func(named tcpBlock) bool {
		return c.plan.isBefore(named.at.service, at.service) && !slices.Contains(named.last().ServerNames, host[0]) &&
			coversNames(named.last().ServerNames, host)
	})
}

// forOwnName returns the routes of a block for any name, as routes for the name of its
// service alone, unless it has routes for that name.
func forOwnName(b tcpBlock) tcpBlock {
	host := serverNames([]string{b.at.service.Hostname})
	out := tcpBlock{at: b.at}
	for _, r := range b.routes {
		switch {
		case slices.Contains(r.ServerNames, host[0]):
			return tcpBlock{at: b.at}
		case len(r.ServerNames) == 0:
			r.ServerNames, r.Assumed, r.NamesOnly = host, false, true
			out.routes = append(out.routes, r)
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
