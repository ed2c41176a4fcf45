package compile

import (
	"fmt"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
)

// checkTarget reports a destination where requests find no endpoint.
func (d *domainPlan) checkTarget(vs *virtualService, at string, to *networking.Destination) {
	const consequence = "so requests that go there fail"
	host := d.complete(to.GetHost(), vs.ref.Namespace)
	if d.service(host) == nil {
		d.checkService(vs.ref, at+".host", host, consequence)
		return
	}
	labels := mesh.Labels(d.subset(host, to.GetSubset()))
	d.routed[labelled{host, labels.String()}] = true
	if to.GetSubset() != "" && d.ruleFor(host).subset(to.GetSubset()) == nil {
		what := "so all instances are taken; " + switchHint("unknownSubsetIsAll", "requests that go there fail")
		if !d.pilot().UnknownSubsetIsAll {
			what = consequence
		}
		d.report(diag.Problem{
			Severity: diag.Warning, Reason: diag.NoSuchReference, Object: vs.ref, Field: at + ".subset",
			Value: fmt.Sprintf("%q", to.GetSubset()), Message: "no DestinationRule of the host has this subset, " + what,
		})
		return
	}
	d.checkLabels(vs.ref, at+".subset", host, labels, consequence)
	if to.GetPort() != nil && d.pilot().DestinationPortIgnored {
		d.checkDestinationPort(vs, at+".port", host, to)
	}
}

// checkBorrowing warns of destinations that are not where they say, because the
// routes are those of an external service.
func (d *domainPlan) checkBorrowing(vs *virtualService) {
	for _, name := range vs.meshHosts() {
		own := d.service(d.complete(name, vs.ref.Namespace))
		if own == nil || !own.External || isEgress(own) || !d.pilot().ExternalRouteEndpoints {
			continue
		}
		for _, r := range vs.http {
			for i, to := range r.spec.GetRoute() {
				if host := d.complete(to.GetDestination().GetHost(), vs.ref.Namespace); host != own.Hostname {
					d.notHonoured(vs.ref, fmt.Sprintf("%s.route[%d].destination", r.field, i), fmt.Sprintf("requests go to the endpoints of %s, as they came for it; %s",
						own.Hostname, switchHint("externalRouteEndpoints", "they go to those of "+host)))
				}
			}
		}
	}
}

// checkDestinationPort warns of a port that is not the only one.
func (d *domainPlan) checkDestinationPort(vs *virtualService, at, host string, to *networking.Destination) {
	if port := onlyHTTPPort(d.service(host)); port != nil && port.Number == int(to.GetPort().GetNumber()) {
		return
	}
	d.notHonoured(vs.ref, at, "requests go to the port that has the name of the one they came for (http, at gateways); "+
		switchHint("destinationPortIgnored", "they go to this one"))
}
