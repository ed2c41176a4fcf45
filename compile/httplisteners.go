package compile

import (
	"slices"
	"strconv"

	"github.com/pilot-api/pilot-api/ir"
)

// httpListeners writes a listener for each table. It accepts traffic to any address
// at the port.
func (c *writer) httpListeners(tables []*tableLayout) {
	for _, t := range tables {
		if t.port == c.plan.settings.ProxyListenPort {
			c.reportOwnPort(t.origins[0], t.port)
			continue
		}
		if bind := c.scope.bindsAt(t.port); bind != "" {
			c.listen(&ir.Listener{
				IP: bind, Port: t.port, Bind: true, Direction: ir.Outbound,
				HTTP: c.http(strconv.Itoa(t.port)), Origins: t.origins,
			})
			continue
		}
		if l := c.tcp[ir.HostPort{Host: anyAddress, Port: t.port}]; l != nil {
			c.reportHTTPLost(l, t)
		}
		c.listen(c.withBeside(&ir.Listener{
			IP: anyAddress, Port: t.port, Direction: ir.Outbound,
			HTTP:    c.http(strconv.Itoa(t.port)),
			Origins: t.origins,
		}))
	}
}

// withBeside adds the TCP routes that come before HTTP at the port to an HTTP
// listener.
func (c *writer) withBeside(l *ir.Listener) *ir.Listener {
	at := slices.IndexFunc(c.beside, func(b *ir.Listener) bool { return b.Port == l.Port })
	if at < 0 {
		return l
	}
	before := c.beside[at]
	l.Chains = []*ir.FilterChain{{TCP: before.TCP, Origins: before.Origins}, {HTTP: l.HTTP, Origins: l.Origins}}
	l.HTTP, l.Origins = nil, slices.Concat(before.Origins, l.Origins)
	return l
}

// http returns the part that all HTTP listeners have in common. If the route table
// selects by host, the Host header must be a valid host. So no other spelling of a
// host can bypass its rules through a wildcard or as an unknown destination.
func (c *writer) http(table string) *ir.HTTPListener {
	return &ir.HTTPListener{
		Table:       table,
		StrictHosts: table != "" && !c.plan.pilot().HostsAsWritten,
		Tracing:     c.plan.settings.EnableTracing,
		AccessLog:   c.plan.settings.AccessLogFile,
	}
}
