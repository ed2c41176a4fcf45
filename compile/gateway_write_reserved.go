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
func (listener *edgeListener) reserve(gw *gateway, host gatewayHost) {
	one := reservation{gw, host}
	if listener.allowed[one] {
		return
	}
	listener.allowed[one] = true
	if host.namespace != "*" {
		listener.reserved[host.host] = append(listener.reserved[host.host], gw)
	}
}

// allows reports whether the servers of a Gateway allow a host to a namespace.
func (listener *edgeListener) allows(gw *gateway, host, namespace string) bool {
	for text := range textsFor(host) {
		if listener.allowed[reservation{gw, gatewayHost{namespace, text}}] || listener.allowed[reservation{gw, gatewayHost{"*", text}}] {
			return true
		}
	}
	return false
}

// permitted returns the bindings that no other Gateway of the listener forbids. It
// reports the others.
func (p *plan) permitted(listener *edgeListener, all []boundCandidate) []boundCandidate {
	if len(listener.reserved) == 0 {
		return all
	}
	byHost := map[string][]boundCandidate{}
	for _, c := range all {
		key := strings.ToLower(c.host)
		if owner, _ := listener.ownerOf(key); c.group.kind == passthroughServer || owner == nil || owner == c.group { // Others are not reached.
			byHost[key] = append(byHost[key], c)
		}
	}
	forbidden, told := map[boundCandidate]bool{}, map[binding]bool{}
	for _, key := range slices.Sorted(maps.Keys(byHost)) {
		for c, why := range p.forbidden(listener, key, byHost[key]) {
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
func (rd *reader) forbidden(listener *edgeListener, host string, of []boundCandidate) iter.Seq2[boundCandidate, string] {
	return func(yield func(boundCandidate, string) bool) {
		var reservers []*gateway
		first := map[string]boundCandidate{} // of each namespace
		for _, c := range rd.byAge(of) {
			why := ""
			if gw := rd.reserverOf(listener, host, c, reservers); gw != nil {
				why = fmt.Sprintf("%s keeps %s at port %d from VirtualServices of the namespace %s", gw.ref, c.host, listener.port, c.vs.ref.Namespace)
			} else if earlier := listener.earlierForeign(host, c, first); earlier != nil {
				why = fmt.Sprintf("%s does not allow it to the namespace %s, and its requests at port %d already follow %s through %s",
					c.by.gw.ref, earlier.vs.ref.Namespace, listener.port, earlier.vs.ref, earlier.by.gw.ref)
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
			if !listener.allows(c.by.gw, host, "*") && !slices.Contains(reservers, c.by.gw) {
				reservers = append(reservers, c.by.gw)
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

// reserverOf returns a Gateway that keeps a host from a binding, or nil. It is one that
// names the host, or one of those with an earlier binding.
func (rd *reader) reserverOf(listener *edgeListener, host string, c boundCandidate, earlier []*gateway) *gateway {
	keeps := func(gw *gateway) bool { return gw != c.by.gw && !listener.allows(gw, host, c.vs.ref.Namespace) }
	for _, gw := range listener.reserved[host] {
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
func (rd *reader) keptFrom(listener *edgeListener, claim claimedHost) bool {
	return slices.ContainsFunc(listener.reserved[claim.host], func(gw *gateway) bool {
		return gw != claim.gw && rd.inAgeOrder(gw.declared, claim.gw.declared) < 0 && !listener.allows(gw, claim.host, claim.gw.ref.Namespace)
	})
}

// earlierForeign returns an earlier binding of a host whose namespace the Gateway of a
// later one does not allow, or nil.
func (listener *edgeListener) earlierForeign(host string, c boundCandidate, first map[string]boundCandidate) *boundCandidate {
	if listener.allows(c.by.gw, host, "*") {
		return nil
	}
	for _, namespace := range slices.Sorted(maps.Keys(first)) {
		if !listener.allows(c.by.gw, host, namespace) {
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
