package compile

import (
	"fmt"
	"slices"

	security "istio.io/api/security/v1beta1"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// guard adds to the listeners for calls of others whose tokens they verify, and who may call.
// The listeners may be shared, so they are copied.
func (c *writer) guard() {
	policies, authentications := c.plan.policiesOf(c.caller), c.plan.authenticationsOf(c.caller)
	if len(policies)+len(authentications) == 0 {
		return
	}
	requests, connections := c.plan.accessOf(c.caller, true), c.plan.accessOf(c.caller, false)
	tokens := c.plan.tokensOf(authentications)
	if step, refuses := refusesAll(authentications); refuses {
		requests = withStep(step, requests)
	}
	var origins []diag.Ref
	for _, policy := range policies {
		origins = append(origins, policy.ref)
	}
	var verifying []diag.Ref
	for _, ra := range authentications {
		verifying = append(verifying, ra.ref)
	}
	for i, l := range c.listeners {
		if l.Direction == ir.Outbound {
			continue
		}
		guarded := *l
		guarded.HTTP, guarded.TCP = withAccess(l.HTTP, tokens, requests), withConnectionAccess(l.TCP, connections)
		guarded.Chains = slices.Clone(l.Chains)
		for j, chain := range l.Chains {
			own := *chain
			own.HTTP, own.TCP = withAccess(chain.HTTP, tokens, requests), withConnectionAccess(chain.TCP, connections)
			guarded.Chains[j] = &own
		}
		guarded.Origins = slices.Concat(l.Origins, origins)
		if takesRequests(l) {
			guarded.Origins = append(guarded.Origins, verifying...)
		}
		c.listeners[i] = &guarded
	}
}

// takesRequests reports whether a listener reads connections as HTTP.
func takesRequests(l *ir.Listener) bool {
	found := false
	l.EachHTTP(func(*ir.HTTPListener) { found = true })
	return found
}

// withStep returns access with a step before all others. access may be nil.
func withStep(step ir.AccessStep, access *ir.Access) *ir.Access {
	if access == nil {
		return &ir.Access{Steps: []ir.AccessStep{step}}
	}
	return &ir.Access{Steps: slices.Concat([]ir.AccessStep{step}, access.Steps), Paths: access.Paths}
}

func withAccess(h *ir.HTTPListener, tokens *ir.Tokens, access *ir.Access) *ir.HTTPListener {
	if h == nil {
		return nil
	}
	out := *h
	out.Tokens, out.Access = tokens, access
	return &out
}

func withConnectionAccess(t *ir.TCPListener, access *ir.Access) *ir.TCPListener {
	if t == nil {
		return nil
	}
	out := *t
	out.Access = access
	return &out
}

// checkAuthorizationPolicy reports a policy that denies by the identity of callers where callers
// need none: what they send in plain text passes it.
func (p *plan) checkAuthorizationPolicy(policy *authorizationPolicy) {
	if policy.action != security.AuthorizationPolicy_DENY || policy.dryRun || !policy.needsIdentity() {
		return
	}
	services := p.registry.byNamespace.under(&p.reader, policy.ref.Namespace)
	if policy.ref.Namespace == p.settings.RootNamespace {
		services = p.services()
	}
	for _, svc := range services {
		for _, i := range p.instances(svc) {
			if !policy.selector.SubsetOf(i.Labels) {
				continue
			}
			if mode, _ := i.Peer.At(i.EndpointPort); mode != mesh.PeerStrict {
				p.notHonoured(diag.NotFollowed, policy.ref, "spec.rules", fmt.Sprintf(
					"callers in plain text have no identity, so it does not refuse them: port %d of %s, which %s declares, accepts plain text; a PeerAuthentication with mode STRICT refuses it", i.EndpointPort, svc.Hostname, svc.Origin))
				return
			}
		}
	}
}

// needsIdentity reports whether a rule fits only peers with an identity.
func (policy *authorizationPolicy) needsIdentity() bool {
	return slices.ContainsFunc(policy.http, func(rule ir.AccessPolicy) bool { return testsIdentity(&rule.Peer) })
}

// testsIdentity reports whether a condition fails without an identity.
func testsIdentity(c *ir.Condition) bool {
	switch {
	case c.Test != nil:
		return c.Test.Attribute == ir.AttrPeerName
	case len(c.All) > 0:
		return slices.ContainsFunc(c.All, func(one ir.Condition) bool { return testsIdentity(&one) })
	case len(c.Any) > 0:
		return !slices.ContainsFunc(c.Any, func(one ir.Condition) bool { return !testsIdentity(&one) })
	}
	return false
}
