package compile

import (
	"fmt"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
)

// This file decides which callers follow a RouteRule or a DestinationPolicy. These
// kinds have no exportTo. A rule for a host of another namespace applies only to callers
// in the rule's own namespace, as for the kinds that have exportTo (decision 011).

// foreign reports whether a rule of a namespace may not decide for all callers of a
// host that belongs to the namespace owner.
func (rd *reader) foreign(namespace, owner string) bool {
	return !rd.pilot().AnyNamespaceRules && owner != "" && owner != namespace && namespace != rd.settings.RootNamespace
}

// followers returns the source of the callers that follow a rule of a namespace for a
// host of the namespace owner, given the source that the rule states.
func (rd *reader) followers(stated *source, namespace, owner string) *source {
	if !rd.foreign(namespace, owner) {
		return stated
	}
	out := source{}
	if stated != nil {
		out = *stated
	}
	out.home = namespace
	return &out
}

// checkFollowers reports a rule that fewer callers follow than its source accepts.
func (p *plan) checkFollowers(ref diag.Ref, field string, stated *source, host string) {
	owner := p.ownerOf(host)
	if svc := p.seenBy(ref.Namespace, host); svc != nil && svc.Egress {
		owner = svc.Namespace // Another service of this host is not that of the rule.
	}
	if !p.foreign(ref.Namespace, owner) {
		return
	}
	whose := fmt.Sprintf("%s belongs to namespace %s%s", host, owner, p.home(ref.Namespace).declaredBy(host))
	inHome := func(svc *mesh.Service) bool { return svc.Namespace == ref.Namespace }
	switch {
	case stated == nil:
		p.notHonoured(diag.FollowedByFew, ref, field, fmt.Sprintf("only callers in namespace %s follow it: %s", ref.Namespace, whose))
	case p.service(stated.host) != nil && !slices.ContainsFunc(p.registry.byHost.under(&p.reader, stated.host), inHome):
		p.notHonoured(diag.FollowedByFew, ref, field, fmt.Sprintf("no caller follows it: %s, so only callers in namespace %s would, and its source is %s of another namespace", whose, ref.Namespace, stated.host))
	}
}
