package compile

import (
	"fmt"
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// policy is a DestinationPolicy for one version of a host.
type policy struct {
	declared
	spec   *schema.DestinationPolicy
	host   string
	labels mesh.Labels // exactly those of the version; empty for the cluster without labels
	source *source     // nil for any caller
}

func (pol *policy) version() labelled { return labelled{pol.host, pol.labels.String()} }

func readDestinationPolicy(p *plan, of declared, spec *schema.DestinationPolicy) *policy {
	if spec.Destination == nil {
		p.reportNoDestination(of.ref)
		return nil
	}
	return &policy{
		declared: of, spec: spec,
		host:   p.hostname(spec.Destination, of.ref.Namespace),
		labels: spec.Destination.Labels,
		source: p.source(spec.Source, of.ref.Namespace),
	}
}

// firstBySource returns the policies for a version that take effect, by their
// source.
func (rd *reader) firstBySource(of labelled) map[string]*policy {
	out := map[string]*policy{}
	owner := rd.ownerOf(of.host)
	for _, pol := range rd.policiesFor.under(rd, of) {
		from := rd.followers(pol.source, pol.ref.Namespace, owner).String()
		if out[from] == nil {
			out[from] = pol
		}
	}
	return out
}

func (rp *reporter) reportLosingPolicy(pol, first *policy) {
	rp.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.Conflict, Code: diag.RuleClaimed, Object: pol.ref, Field: "spec.destination",
		Message: fmt.Sprintf("the policy has no effect: %s is for the same destination and callers and comes first by namespace and name; policies are not merged", first.ref),
	})
}

// reportReplacedRule reports a DestinationRule whose policy for the same version
// this policy replaces.
func (p *plan) reportReplacedRule(pol *policy) {
	rule := p.home(pol.ref.Namespace).ruleFor(pol.host)
	if rule == nil {
		return
	}
	replaced := rule.spec.GetTrafficPolicy() != nil
	for _, s := range rule.spec.GetSubsets() {
		replaced = replaced || s.GetTrafficPolicy() != nil && pol.labels.Equal(s.GetLabels())
	}
	if replaced {
		p.conflict(diag.RuleClaimed, rule.policyRef, "spec.trafficPolicy", fmt.Sprintf("only the TLS settings have effect where %s holds, which is for %s too; the two are not merged", pol.ref, pol.host))
	}
}

// checkPolicy reports what the policy asks for and cannot get.
func (p *plan) checkPolicy(pol *policy) {
	if !p.checkService(pol.ref, "spec.destination", pol.host, "so the policy has no effect") {
		return
	}
	from := p.followers(pol.source, pol.ref.Namespace, p.ownerOf(pol.host))
	if first := p.firstPolicies.Get(p.r, pol.version())[from.String()]; first != pol {
		p.reportLosingPolicy(pol, first)
		return
	}
	p.checkSource(pol.ref, "spec.source", pol.source)
	p.checkFollowers(pol.ref, "spec.destination", pol.source, pol.host)
	if p.serviceOf(pol.ref.Namespace, pol.host).NamesExternal() && p.pilot().ExternalNamePoliciesIgnored {
		p.notHonoured(diag.AsPilot, pol.ref, "spec.destination", "the policy has no effect on a service with an external name; "+switchHint("externalNamePoliciesIgnored", "it has"))
		return
	}
	p.reportReplacedRule(pol)
	p.checkLabels(pol.ref, "spec.destination.labels", pol.host, pol.labels, "so the policy has no effect")
	ignored := func(code diag.Code, field, message string) { p.notHonoured(code, pol.ref, field, message) }
	if len(pol.labels) > 0 && !p.routed.Get(p.r, pol.version()) {
		ignored(diag.PolicyUnused, "spec.destination.labels", "the policy has no effect: no RouteRule sends requests to exactly these labels")
	}
	if pol.spec.LoadBalancing != nil && p.serviceOf(pol.ref.Namespace, pol.host).Resolution == mesh.Passthrough {
		ignored(diag.NotFollowed, "spec.loadBalancing", "connections go to the address that the caller chose, because the service has resolution NONE")
	}
	if pol.spec.CircuitBreaker == nil || pol.spec.CircuitBreaker.SimpleCB == nil {
		return
	}
	cb := pol.spec.CircuitBreaker.SimpleCB
	const short = "under one second, so Envoy's default is used instead"
	if cb.SleepWindow.Duration < time.Second {
		ignored(diag.NotFollowed, "spec.circuitBreaker.simpleCb.sleepWindow", short)
	}
	if cb.HTTPDetectionInterval.Duration < time.Second {
		ignored(diag.NotFollowed, "spec.circuitBreaker.simpleCb.httpDetectionInterval", short)
	}
}

// isRouted reports whether any rule sends requests to a version of a host.
func (rd *reader) isRouted(version labelled) bool {
	for _, rule := range rd.rulesInto.under(rd, version) {
		if svc := rd.serviceOf(rule.namespace, rule.host); svc != nil && !svc.Egress {
			return true
		}
	}
	for _, vs := range rd.virtualInto.under(rd, version.host) {
		home := rd.home(vs.ref.Namespace)
		for _, to := range vs.destinations() {
			labels, ok := home.subset(version.host, to.GetSubset())
			if ok && home.complete(to.GetHost(), vs.ref.Namespace) == version.host && labels.String() == version.labels {
				return true
			}
		}
	}
	return false
}

var loadBalancers = map[string]ir.LoadBalancer{
	"ROUND_ROBIN": ir.RoundRobin,
	"LEAST_CONN":  ir.LeastRequest,
	"RANDOM":      ir.Random,
}

// applied returns a cluster with the policy applied.
func (pol *policy) applied(cluster *ir.Cluster) *ir.Cluster {
	out := *cluster
	out.Origins = append(slices.Clone(out.Origins), pol.ref)
	if lb := pol.spec.LoadBalancing; lb != nil && lb.Name != nil && out.Type != ir.OriginalDestination {
		out.LoadBalancer = loadBalancers[*lb.Name]
	}
	if pol.spec.CircuitBreaker == nil || pol.spec.CircuitBreaker.SimpleCB == nil {
		return &out
	}
	cb := pol.spec.CircuitBreaker.SimpleCB
	out.MaxRequestsPerConnection = int(cb.HTTPMaxRequestsPerConnection)
	out.CircuitBreaker = &ir.CircuitBreaker{
		MaxConnections:     int(cb.MaxConnections),
		MaxPendingRequests: int(cb.HTTPMaxPendingRequests),
		MaxRequests:        int(cb.HTTPMaxRequests),
		MaxRetries:         max(0, int(cb.HTTPMaxRetries)),
	}
	out.OutlierDetection = outlierDetection(cb)
	return &out
}

// outlierDetection omits durations under one second and, by default, ejects at most
// a tenth of the instances, both as in Pilot.
func outlierDetection(cb *schema.SimpleCircuitBreaker) *ir.OutlierDetection {
	out := &ir.OutlierDetection{MaxEjectionPercent: 10}
	if n := int(cb.HTTPConsecutiveErrors); n > 0 {
		out.ConsecutiveErrors = &n
	}
	if cb.HTTPDetectionInterval.Duration >= time.Second {
		out.Interval = cb.HTTPDetectionInterval.Duration
	}
	if cb.SleepWindow.Duration >= time.Second {
		out.BaseEjectionTime = cb.SleepWindow.Duration
	}
	if cb.HTTPMaxEjectionPercent > 0 {
		out.MaxEjectionPercent = int(cb.HTTPMaxEjectionPercent)
	}
	return out
}
