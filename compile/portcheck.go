package compile

import (
	"fmt"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// reportTCP is about a port at one of the service's addresses, which is named
// where there are others.
func (c *writer) reportTCP(svc *mesh.Service, port *mesh.Port, destinations []string, why string) {
	if c.scope.role == mesh.Router {
		return // It reaches the service by cluster only; sidecars complain.
	}
	at := ""
	if len(svc.Addresses) > 1 {
		at = " at " + strings.Join(destinations, ", ")
	}
	c.plan.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.Conflict, Code: diag.PortClaimed, Object: svc.Origin.Ref(), Field: "spec.ports",
		Value: fmt.Sprint(port.Number),
		Message: fmt.Sprintf("port %d of %s%s cannot be reached: %s; give the service an address of its own, or another port",
			port.Number, svc.Hostname, at, why),
	})
}

func (c *writer) reportOwnPort(ref diag.Ref, port int) {
	c.plan.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.Conflict, Code: diag.PortClaimed, Object: ref, Field: "spec.ports", Value: fmt.Sprint(port),
		Message: fmt.Sprintf("port %d cannot be reached: it is the proxies' own (proxyListenPort of the mesh settings)", port),
	})
}

// reportHTTPLost tells the one who has the port what that costs the others.
func (c *writer) reportHTTPLost(l *ir.Listener, t *tableLayout) {
	c.plan.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.Conflict, Code: diag.PortClaimed, Object: l.Origins[0], Field: "spec.ports", Value: fmt.Sprint(t.port),
		Message: fmt.Sprintf("every connection to port %d is taken as TCP, also those to HTTP services such as %s; give this service an address of its own, or another port, or %s",
			t.port, t.first.Hostname, switchHint("tcpTakesHTTPPort", "HTTP has the port")),
	})
}
