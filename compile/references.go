package compile

import (
	"fmt"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/compile/query"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// maxReferences is the maximum number of references from one object, and of those
// to it.
const maxReferences = 1000

// References returns the references from and to the object with a key, according to
// the last snapshot. The object need not exist.
func (c *Compiler) References(key schema.Key) diag.References {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out diag.References
	c.model.graph.Do(func(r *query.Reader) {
		from := referrals{plan: c.model.context(r), referrer: key}
		from.gather()
		to := referrals{plan: c.model.context(r), to: key.Ref()}
		to.gather()
		from.cut()
		to.cut()
		out = diag.References{RefersTo: from.found, ReferredBy: to.found, Omitted: from.omitted + to.omitted}
	})
	return out
}

// referrals collects the references from one object, or those to one object.
type referrals struct {
	*plan
	referrer schema.Key // the referring object; zero for all
	to       diag.Ref   // the wanted target; zero for any

	found   []diag.Reference // at most twice as many as are returned
	seen    map[diag.Reference]bool
	omitted int
}

// cut keeps the first references: of those to an object, the first by name of the
// referring object.
func (r *referrals) cut() {
	if r.to != (diag.Ref{}) {
		slices.SortStableFunc(r.found, func(a, b diag.Reference) int { return strings.Compare(a.From.String(), b.From.String()) })
	}
	kept := min(len(r.found), maxReferences)
	for _, one := range r.found[kept:] {
		delete(r.seen, one)
	}
	r.omitted += len(r.found) - kept
	r.found = append([]diag.Reference{}, r.found[:kept]...)
}

// gather visits everything that may have references.
func (r *referrals) gather() {
	named(r, r.routeRules, (*referrals).routeRule)
	named(r, r.destinationPolicies, (*referrals).destinationPolicy)
	named(r, r.ingressRules, (*referrals).ingressRule)
	named(r, r.virtualServices, (*referrals).virtualService)
	named(r, r.destinationRules, (*referrals).destinationRule)
	named(r, r.gateways, (*referrals).gatewaySecrets)
	named(r, r.sidecars, (*referrals).sidecar)
	for _, svc := range r.services() {
		if r.referrer == (schema.Key{}) || r.referrer == svc.Origin {
			r.workloads(svc)
		}
	}
}

// named calls say for the rules of a kind, or only for that of one object.
func named[T any](r *referrals, k *kind[T], say func(*referrals, *T)) {
	if r.referrer != (schema.Key{}) {
		if of := k.readings[r.referrer]; of != nil && of.rule != nil {
			say(r, of.rule)
		}
		return
	}
	for _, rule := range k.rules(&r.plan.reader) {
		say(r, rule)
	}
}

// add records a wanted reference once. An omitted one may be counted more than
// once.
func (r *referrals) add(one diag.Reference) {
	if r.to != (diag.Ref{}) && r.to != one.To || r.seen[one] {
		return
	}
	if r.seen == nil {
		r.seen = map[diag.Reference]bool{}
	}
	if len(r.found) == 2*maxReferences {
		r.cut()
	}
	r.seen[one] = true
	r.found = append(r.found, one)
}

// host adds a reference to the object that declares a host, as the referring
// object's namespace sees it. If the host is not needed, a missing one is not
// reported.
func (r *referrals) host(from diag.Ref, field, host string, needed bool) {
	one := diag.Reference{From: from, Field: field, Names: "host " + host}
	if strings.HasPrefix(host, "*") {
		r.covered(one, host)
		return
	}
	if svc := r.serviceOf(from.Namespace, host); svc != nil {
		one.To = svc.Origin.Ref()
	} else if one.Missing = true; !needed {
		return
	}
	r.add(one)
}

// covered adds references to the hosts under a wildcard.
func (r *referrals) covered(one diag.Reference, wildcard string) {
	all := imported{namespace: "*", host: wildcard}
	for _, svc := range slices.Concat(r.services(), r.egressIn(one.From.Namespace)) {
		if all.covers(strings.ToLower(svc.Hostname)) && svc.VisibleIn(one.From.Namespace) {
			one.To = svc.Origin.Ref()
			r.add(one)
		}
	}
}

// version adds references to the objects of the instances of a host that have some
// labels.
func (r *referrals) version(from diag.Ref, field, name, host string, labels mesh.Labels) {
	svc := r.serviceOf(from.Namespace, host)
	if svc == nil || len(labels) == 0 || svc.IsItsOwnEndpoint() {
		return
	}
	one := diag.Reference{From: from, Field: field, Names: name + labels.String() + " of " + host}
	for _, i := range r.instances(svc) {
		if labels.SubsetOf(i.Labels) {
			one.To = i.Origin.Ref()
			r.add(one)
		}
	}
	if one.To == (diag.Ref{}) {
		one.Missing = true
		r.add(one)
	}
}

// workloads adds references to the workloads that a service selects.
func (r *referrals) workloads(svc *mesh.Service) {
	for _, i := range r.instances(svc) {
		if i.Origin != svc.Origin {
			r.add(diag.Reference{From: svc.Origin.Ref(), Field: "spec.workloadSelector", Names: "its instances", To: i.Origin.Ref()})
		}
	}
}

func (r *referrals) routeRule(rule *routeRule) {
	r.host(rule.ref, "spec.destination", rule.host, true)
	r.source(rule.ref, "spec.match.source", rule.source)
	spec := rule.spec()
	for i, entry := range spec.Route {
		r.istioService(rule, fmt.Sprintf("spec.route[%d]", i), entry.Destination, entry.Labels)
	}
	if to := spec.Mirror; to != nil {
		r.istioService(rule, "spec.mirror", to, to.Labels)
	}
}

// istioService adds the references of a destination of a rule. The default is the
// rule's own host.
func (r *referrals) istioService(rule *routeRule, field string, to *schema.IstioService, labels mesh.Labels) {
	host := r.hostOr(rule, to)
	if to != nil {
		r.host(rule.ref, field, host, true)
	}
	r.version(rule.ref, field+".labels", "", host, labels)
}

func (r *referrals) source(from diag.Ref, field string, s *source) {
	if s != nil && s.host != "" {
		r.host(from, field, s.host, true)
		r.version(from, field+".labels", "", s.host, s.labels)
	}
}

func (r *referrals) destinationPolicy(pol *policy) {
	r.host(pol.ref, "spec.destination", pol.host, true)
	r.version(pol.ref, "spec.destination.labels", "", pol.host, pol.labels)
	r.source(pol.ref, "spec.source", pol.source)
}

func (r *referrals) ingressRule(rule *ingressRule) {
	r.host(rule.ref, "spec.destination", rule.host, true)
}

func (r *referrals) virtualService(vs *virtualService) {
	home := r.home(vs.ref.Namespace)
	inMesh := len(vs.meshHosts()) > 0
	for i, host := range vs.spec.GetHosts() {
		r.host(vs.ref, fmt.Sprintf("spec.hosts[%d]", i), home.complete(host, vs.ref.Namespace), inMesh)
	}
	for i, name := range vs.spec.GetGateways() {
		r.gateway(vs, fmt.Sprintf("spec.gateways[%d]", i), name)
	}
	for _, route := range vs.http {
		r.delegate(vs, route)
		for at, to := range route.destinations() {
			r.destination(home, vs.ref, at, to)
		}
	}
	for at, to := range vs.connectionDestinations() {
		r.destination(home, vs.ref, at, to)
	}
}

func (r *referrals) gateway(vs *virtualService, field, name string) {
	if name = vs.gatewayName(name); name == meshGateway {
		return
	}
	r.add(diag.Reference{
		From: vs.ref, Field: field, Names: "gateway " + name, To: refOf("Gateway", name),
		Missing: len(r.gatewayNamed.under(&r.plan.reader, name)) == 0,
	})
}

func (r *referrals) delegate(vs *virtualService, route *httpRoute) {
	name := vs.delegateName(route.spec.GetDelegate())
	if name == "" {
		return
	}
	to, _ := r.plan.delegate(vs, route.spec.GetDelegate())
	r.add(diag.Reference{
		From: vs.ref, Field: route.field + ".delegate", Names: "delegate " + name, To: refOf("VirtualService", name), Missing: to == nil,
	})
}

// refOf parses a name of the form namespace/name.
func refOf(kind, name string) diag.Ref {
	namespace, name, _ := strings.Cut(name, "/")
	return diag.Ref{Kind: kind, Namespace: namespace, Name: name}
}

// destination adds the references of a destination: its host, and the rule that has
// the subset.
func (r *referrals) destination(v *viewpoint, from diag.Ref, field string, to *networking.Destination) {
	host := v.complete(to.GetHost(), from.Namespace)
	r.host(from, field+".host", host, true)
	if to.GetSubset() == "" {
		return
	}
	one := diag.Reference{From: from, Field: field + ".subset", Names: "subset " + to.GetSubset() + " of " + host}
	rule := v.ruleFor(host)
	if rule != nil {
		one.To = rule.ref
	}
	one.Missing = rule.subset(to.GetSubset()) == nil
	r.add(one)
}

func (r *referrals) destinationRule(rule *destinationRule) {
	host := r.home(rule.ref.Namespace).complete(rule.spec.GetHost(), rule.ref.Namespace)
	r.host(rule.ref, "spec.host", host, true)
	for i, s := range rule.spec.GetSubsets() {
		r.version(rule.ref, fmt.Sprintf("spec.subsets[%d]", i), "subset "+s.GetName()+", ", host, s.GetLabels())
	}
	rule.eachPolicy(func(at string, tls *networking.ClientTLSSettings, _ *networking.TrafficPolicy_PortTrafficPolicy) {
		r.clientSecret(rule.ref, at, tls)
	})
}

// sidecar adds references to the imported hosts, and to the VirtualServices for
// them.
func (r *referrals) sidecar(sc *sidecar) {
	for at, l := range sc.egress {
		for _, i := range l.imports {
			one := diag.Reference{
				From: sc.ref, Field: fmt.Sprintf("spec.egress[%d].hosts", at), Names: "hosts " + i.namespace + "/" + i.host,
			}
			r.imported(one, i.readBy(sc.ref.Namespace))
		}
	}
}

func (r *referrals) imported(one diag.Reference, i imported) {
	for _, svc := range slices.Concat(r.services(), r.egressIn(one.From.Namespace)) {
		if i.in(svc.Namespace) && i.covers(strings.ToLower(svc.Hostname)) && svc.VisibleIn(one.From.Namespace) {
			one.To = svc.Origin.Ref()
			r.add(one)
		}
	}
	for _, vs := range r.virtualServices.rules(&r.plan.reader) {
		covers := func(host string) bool { return i.covers(r.home(vs.ref.Namespace).complete(host, vs.ref.Namespace)) }
		if i.in(vs.ref.Namespace) && slices.ContainsFunc(vs.meshHosts(), covers) && mesh.Exported(vs.exported, vs.ref.Namespace, one.From.Namespace) {
			one.To = vs.ref
			r.add(one)
		}
	}
}
