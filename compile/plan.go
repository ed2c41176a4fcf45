package compile

import (
	"fmt"

	"github.com/pilot-api/pilot-api/compile/query"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
)

// plan is the access of one computation to the model. The computation depends on
// what it reads through the plan, and reports problems to it.
type plan struct {
	*model
	r        *query.Reader
	problems *diag.Collector
}

// services returns the services of the registry, by host name. The slice is shared.
func (p *plan) services() []*mesh.Service { return p.registry.services.under(p, none{}) }

// registered returns the first service of the registry with a host name, or nil.
func (p *plan) registered(host string) *mesh.Service {
	if of := p.registry.byHost.under(p, host); len(of) > 0 {
		return of[0]
	}
	return nil
}

// registeredIn returns the service of the registry that callers in a namespace see
// under a host name, or nil.
func (p *plan) registeredIn(namespace, host string) *mesh.Service {
	for _, svc := range p.registry.byHost.under(p, host) {
		if svc.VisibleIn(namespace) {
			return svc
		}
	}
	return nil
}

// service returns the first service with a host name, from the registry or else an
// EgressRule, or nil. Callers may see another one, as seenBy says.
func (p *plan) service(host string) *mesh.Service {
	if svc := p.registered(host); svc != nil {
		return svc
	}
	return p.egressHost.Get(p.r, host)
}

// seenBy returns the service that callers in a namespace see under a host, from the
// registry or an EgressRule, or nil.
func (p *plan) seenBy(namespace, host string) *mesh.Service {
	if svc := p.registeredIn(namespace, host); svc != nil {
		return svc
	}
	return p.egressHost.Get(p.r, host)
}

// hasSeveral reports whether a host is not the same service to all callers that see
// it.
func (p *plan) hasSeveral(host string) bool {
	registered := len(p.registry.byHost.under(p, host))
	return registered > 1 || registered == 1 && p.egressHost.Get(p.r, host) != nil
}

// instances returns the instances of a service. The service must come from the
// model.
func (p *plan) instances(svc *mesh.Service) []*mesh.Instance {
	return p.registry.instances.Get(p.r, svc).listed()
}

// routesHTTP reports whether requests to the port are routed one by one. For a host
// outside the mesh, the proxy may start TLS itself; it then accepts plain HTTP.
func (m *model) routesHTTP(svc *mesh.Service, port *mesh.Port) bool {
	if port.Protocol != mesh.HTTPS {
		return port.Protocol.IsHTTP()
	}
	return svc.Egress || svc.NamesExternal() && m.pilot().ExternalNameHTTPSAsHTTP
}

// countPorts returns the port counts of a service.
func (m *model) countPorts(svc *mesh.Service) portSums {
	var out portSums
	for _, port := range svc.Ports {
		if m.routesHTTP(svc, port) {
			out.http++
		} else if port.Protocol != mesh.UDP {
			out.other += max(1, len(svc.Addresses))
		}
	}
	return out
}

// checkExternalNames reports TLS ports to which proxies send plain HTTP.
func (p *plan) checkExternalNames() {
	if !p.pilot().ExternalNameHTTPSAsHTTP {
		return
	}
	for _, svc := range p.services() {
		for _, port := range svc.Ports {
			if port.Protocol == mesh.HTTPS && p.routesHTTP(svc, port) {
				p.notHonoured(diag.AsPilot, svc.Origin.Ref(), "spec.ports", fmt.Sprintf(
					"requests to port %d of %s are taken and sent on as plain HTTP, as it is a service with an external name; %s",
					port.Number, svc.Hostname, switchHint("externalNameHTTPSAsHTTP", "connections are passed on as they are")))
			}
		}
	}
}
