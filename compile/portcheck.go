package compile

import (
	"fmt"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// reportTCP reports a port that cannot be reached. It names the address if the
// service has several.
func (c *writer) reportTCP(svc *mesh.Service, port *mesh.Port, destinations []string, why string) {
	if c.scope.role == mesh.Router {
		return // A router reaches the service by cluster only; sidecars report the problem.
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

// reportLostAddress reports an address at a port that another service owns.
func (c *writer) reportLostAddress(claim placed, lost loss) {
	svc, port := claim.service, claim.port.Number
	why := fmt.Sprintf("connections there go to %s of %s, %s", lost.to.Hostname, lost.to.Origin, whyOlder(lost.to, svc))
	if lost.crowded {
		why = fmt.Sprintf("more than %d pairs of a server name of an older object, such as %s, and an address are at the port", maxNamedBlocks, lost.to.Origin)
	}
	c.plan.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.Conflict, Code: diag.PortClaimed, Object: svc.Origin.Ref(), Field: "spec.ports",
		Value: fmt.Sprint(port),
		Message: fmt.Sprintf("port %d of %s at %s cannot be reached: %s; give the service an address of its own, or another port",
			port, svc.Hostname, claim.block, why),
	})
}

// reportNamed reports connections to the addresses of a service that go to others
// by server name. A service with TLS is skipped: clients that ask for another host
// do not mean it.
func (c *writer) reportNamed(svc *mesh.Service, port *mesh.Port) {
	if readsNames(port) {
		return
	}
	named := c.plan.namedBefore(c.owners.named[port.Number], svc)
	more := ""
	if n := len(named) - 1; n > 0 {
		more = fmt.Sprintf(", and so with %d other server names", n)
	}
	c.plan.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.Conflict, Code: diag.PortClaimed, Object: svc.Origin.Ref(), Field: "spec.ports",
		Value: fmt.Sprint(port.Number),
		Message: fmt.Sprintf("connections to port %d of %s that ask for the server name %s go to %s, %s%s; give the service another port",
			port.Number, svc.Hostname, named[0].Hostname, named[0].Origin, whyOlder(named[0], svc), more),
	})
}

// reportLostName reports a server name in a rule that is the host of a service that
// does not follow the rule.
func (c *writer) reportLostName(rule diag.Ref, name string, owner *mesh.Service, port *mesh.Port) {
	if c.scope.role == mesh.Router {
		return
	}
	c.plan.conflict(diag.RuleClaimed, rule, "spec.tls", fmt.Sprintf(
		"connections to port %d that ask for the server name %s do not follow the rule: %s declares %s, and is of another namespace", port.Number, name, owner.Origin, owner.Hostname))
}

func (c *writer) reportOwnPort(ref diag.Ref, port int) {
	c.plan.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.Conflict, Code: diag.PortClaimed, Object: ref, Field: "spec.ports", Value: fmt.Sprint(port),
		Message: fmt.Sprintf("port %d cannot be reached: it is the proxies' own (proxyListenPort of the mesh settings)", port),
	})
}

// reportHTTPLost reports to the owner of the port that HTTP services there cannot
// be reached.
func (c *writer) reportHTTPLost(l *ir.Listener, t *tableLayout) {
	c.plan.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.Conflict, Code: diag.PortClaimed, Object: l.Origins[0], Field: "spec.ports", Value: fmt.Sprint(t.port),
		Message: fmt.Sprintf("every connection to port %d is treated as TCP, also those to HTTP services such as %s; give this service an address of its own, or another port, or %s",
			t.port, t.first.Hostname, switchHint("tcpTakesHTTPPort", "HTTP has the port")),
	})
}
