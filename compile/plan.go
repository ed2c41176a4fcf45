package compile

import (
	"fmt"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
)

// plan is what a computation has that both reads the model and reports problems.
// A computation that does one of the two takes that part alone.
type plan struct {
	reader
	reporter
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
					"requests to port %d of %s are treated and forwarded as plain HTTP, because it is a service with an external name; %s",
					port.Number, svc.Hostname, switchHint("externalNameHTTPSAsHTTP", "connections are passed on as they are")))
			}
		}
	}
}
