package compile

import (
	"fmt"
	"iter"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
)

// isMirror reports whether a field is that of a mirror.
func isMirror(at string) bool { return strings.Contains(at, ".mirror") }

// lossOf returns the consequence of a missing destination.
func lossOf(at string) string {
	if isMirror(at) {
		return "so copies that go there are lost"
	}
	return "so requests that go there fail"
}

// checkTarget reports a destination at which requests find no endpoint.
func (d *check) checkTarget(vs *virtualService, at string, to *networking.Destination) {
	consequence := lossOf(at)
	host := d.complete(to.GetHost(), vs.ref.Namespace)
	if d.service(host) == nil {
		svc := d.plan.serviceOf(vs.ref.Namespace, host)
		if isOwn := svc != nil && svc.Namespace == vs.ref.Namespace; len(vs.gatewayNames()) > 0 && !isOwn {
			d.plan.checkSeen(vs.ref, at+".host", host, consequence)
		} else { // Callers elsewhere may see it.
			d.checkService(vs.ref, at+".host", host, consequence)
		}
		return
	}
	if to.GetSubset() != "" && d.ruleFor(host).subset(to.GetSubset()) == nil {
		what := "so all instances are used; " + switchHint("unknownSubsetIsAll", strings.TrimPrefix(consequence, "so "))
		if !d.pilot().UnknownSubsetIsAll {
			what = consequence
		}
		d.report(diag.Problem{
			Severity: diag.Warning, Reason: diag.NoSuchReference, Code: diag.UnknownSubset, Object: vs.ref, Field: at + ".subset",
			Value: fmt.Sprintf("%q", to.GetSubset()), Message: "no DestinationRule of the host has this subset, " + what,
		})
		return
	}
	labels, _ := d.subset(host, to.GetSubset())
	d.plan.checkLabels(vs.ref, at+".subset", host, labels, consequence)
	if to.GetPort() != nil && d.pilot().DestinationPortIgnored {
		d.checkDestinationPort(vs, at+".port", host, to)
	}
}

// checkEgressTargets reports other destinations of requests to the host of an
// EgressRule: all of them go to that host.
func (d *check) checkEgressTargets(vs *virtualService) {
	for _, name := range vs.meshHosts() {
		own := d.service(d.complete(name, vs.ref.Namespace))
		if own == nil || !own.Egress {
			continue
		}
		for _, r := range d.httpRoutesOf(vs) {
			for at, to := range r.destinations() {
				if isMirror(at) || d.complete(to.GetHost(), r.virtual.ref.Namespace) != own.Hostname || to.GetSubset() != "" {
					d.notHonoured(diag.NotFollowed, r.virtual.ref, at, fmt.Sprintf("requests for %s, the host of an EgressRule, go to that host only", own.Hostname))
				}
			}
		}
	}
}

// checkBorrowing reports destinations that are not followed because the routes are
// those of an external service.
func (d *check) checkBorrowing(vs *virtualService) {
	for _, name := range vs.meshHosts() {
		own := d.service(d.complete(name, vs.ref.Namespace))
		if own == nil || !own.External || own.Egress || !d.pilot().ExternalRouteEndpoints {
			continue
		}
		for _, r := range d.httpRoutesOf(vs) {
			for i, to := range r.spec.GetRoute() {
				if host := d.complete(to.GetDestination().GetHost(), r.virtual.ref.Namespace); host != own.Hostname {
					d.notHonoured(diag.AsPilot, r.virtual.ref, fmt.Sprintf("%s.route[%d].destination", r.field, i), fmt.Sprintf("requests go to the endpoints of %s, because they were sent to it; %s",
						own.Hostname, switchHint("externalRouteEndpoints", "they go to those of "+host)))
				}
			}
		}
	}
}

// destinations returns the destinations and mirrors of the route, by field.
func (r *httpRoute) destinations() iter.Seq2[string, *networking.Destination] {
	return func(yield func(string, *networking.Destination) bool) {
		for i, to := range r.spec.GetRoute() {
			if !yield(fmt.Sprintf("%s.route[%d].destination", r.field, i), to.GetDestination()) {
				return
			}
		}
		for _, m := range mirrorsOf(r.spec) {
			if !yield(r.field+"."+m.field, m.destination) {
				return
			}
		}
	}
}
