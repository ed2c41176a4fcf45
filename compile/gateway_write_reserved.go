package compile

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// A server may reserve a host for the VirtualServices of a namespace. This holds at
// the port of the router, not only at the Gateway: what others bind to the host by
// way of another Gateway would take its requests all the same.

// reservation is a host that a Gateway allows to VirtualServices of a namespace.
type reservation struct {
	gw *gateway
	gatewayHost
}

// reserve records what a server of a Gateway allows.
func (place *edgePlace) reserve(gw *gateway, host gatewayHost) {
	one := reservation{gw, host}
	if place.allowed[one] {
		return
	}
	place.allowed[one] = true
	if host.namespace != "*" {
		place.reserved[host.host] = append(place.reserved[host.host], gw)
	}
}

// allows reports whether the servers of a Gateway allow a host to a namespace.
func (place *edgePlace) allows(gw *gateway, host, namespace string) bool {
	for text := range textsFor(host) {
		if place.allowed[reservation{gw, gatewayHost{namespace, text}}] || place.allowed[reservation{gw, gatewayHost{"*", text}}] {
			return true
		}
	}
	return false
}

// permitted returns the bindings that no other Gateway of the place forbids. It
// reports the others.
func (p *plan) permitted(place *edgePlace, all []boundCandidate) []boundCandidate {
	if len(place.reserved) == 0 {
		return all
	}
	byHost := map[string][]boundCandidate{}
	for _, c := range all {
		key := strings.ToLower(c.host)
		if owner, _ := place.ownerOf(key); c.group.kind == passthroughServer || owner == nil || owner == c.group { // Others are not reached.
			byHost[key] = append(byHost[key], c)
		}
	}
	forbidden, told := map[boundCandidate]bool{}, map[binding]bool{}
	for _, key := range slices.Sorted(maps.Keys(byHost)) {
		for c, why := range p.forbidden(place, key, byHost[key]) {
			forbidden[c] = true
			if !told[c.binding] {
				told[c.binding] = true
				p.reportNotReached(c.binding, why)
			}
		}
	}
	return slices.DeleteFunc(all, func(c boundCandidate) bool { return forbidden[c] })
}

// forbidden returns the bindings of a host that other Gateways forbid, and why. The
// older comes first: a reservation holds against all bindings that are younger than
// its Gateway. One for a wildcard holds from its first binding to the host on. A
// Gateway that comes too late to keep a namespace from a host does not share the
// host with it.
func (rd *reader) forbidden(place *edgePlace, host string, of []boundCandidate) iter.Seq2[boundCandidate, string] {
	return func(yield func(boundCandidate, string) bool) {
		var keepers []*gateway
		first := map[string]boundCandidate{} // of each namespace
		for _, c := range rd.byAge(of) {
			why := ""
			if gw := rd.keeper(place, host, c, keepers); gw != nil {
				why = fmt.Sprintf("%s keeps %s at port %d from VirtualServices of the namespace %s", gw.ref, c.host, place.port, c.vs.ref.Namespace)
			} else if earlier := place.stranger(host, c, first); earlier != nil {
				why = fmt.Sprintf("%s does not allow it to the namespace %s, and its requests at port %d already follow %s by way of %s",
					c.by.gw.ref, earlier.vs.ref.Namespace, place.port, earlier.vs.ref, earlier.by.gw.ref)
			}
			if why != "" {
				if !yield(c, why) {
					return
				}
				continue
			}
			if _, known := first[c.vs.ref.Namespace]; !known {
				first[c.vs.ref.Namespace] = c
			}
			if !place.allows(c.by.gw, host, "*") && !slices.Contains(keepers, c.by.gw) {
				keepers = append(keepers, c.by.gw)
			}
		}
	}
}

// byAge sorts bindings by their younger part.
func (rd *reader) byAge(of []boundCandidate) []boundCandidate {
	out := slices.Clone(of)
	slices.SortStableFunc(out, func(a, b boundCandidate) int { return rd.inAgeOrder(a.youngerPart(rd), b.youngerPart(rd)) })
	return out
}

// keeper returns a Gateway that keeps a host from a binding, or nil. It is one that
// names the host, or one of those with an earlier binding.
func (rd *reader) keeper(place *edgePlace, host string, c boundCandidate, earlier []*gateway) *gateway {
	keeps := func(gw *gateway) bool { return gw != c.by.gw && !place.allows(gw, host, c.vs.ref.Namespace) }
	for _, gw := range place.reserved[host] {
		if keeps(gw) && rd.inAgeOrder(gw.declared, c.youngerPart(rd)) < 0 {
			return gw
		}
	}
	if at := slices.IndexFunc(earlier, keeps); at >= 0 {
		return earlier[at]
	}
	return nil
}

// keptFrom reports whether an older Gateway keeps a host of a server from the
// namespace of the server's Gateway.
func (rd *reader) keptFrom(place *edgePlace, claim claimedHost) bool {
	return slices.ContainsFunc(place.reserved[claim.host], func(gw *gateway) bool {
		return gw != claim.gw && rd.inAgeOrder(gw.declared, claim.gw.declared) < 0 && !place.allows(gw, claim.host, claim.gw.ref.Namespace)
	})
}

// stranger returns an earlier binding of a host whose namespace the Gateway of a
// later one does not allow, or nil.
func (place *edgePlace) stranger(host string, c boundCandidate, first map[string]boundCandidate) *boundCandidate {
	if place.allows(c.by.gw, host, "*") {
		return nil
	}
	for _, namespace := range slices.Sorted(maps.Keys(first)) {
		if !place.allows(c.by.gw, host, namespace) {
			earlier := first[namespace]
			return &earlier
		}
	}
	return nil
}

// youngerPart returns the younger one of the VirtualService and the Gateway of a
// binding. The binding is no older than either.
func (c boundCandidate) youngerPart(rd *reader) declared {
	if rd.inAgeOrder(c.vs.declared, c.by.gw.declared) < 0 {
		return c.by.gw.declared
	}
	return c.vs.declared
}
