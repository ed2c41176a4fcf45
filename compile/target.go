package compile

import (
	"cmp"
	"fmt"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// target is a set of instances that a route or listener sends to.
type target struct {
	host    string
	port    int // of the host
	labels  mesh.Labels
	subset  string      // of the DestinationRule; "" for a version by labels
	cluster *ir.Cluster // as it is without a policy; shared, not to be changed
}

// newTarget is a version of a service at one of its ports.
func (p *plan) newTarget(svc *mesh.Service, port *mesh.Port, labels mesh.Labels) target {
	cluster := p.newCluster(mesh.NewServiceKey(svc, port, labels), svc.Origin.Ref())
	cluster.HTTP2 = isHTTP2(port)
	reach(cluster, svc.Hostname, svc, port, labels)
	if isEgress(svc) && port.Protocol == mesh.HTTPS {
		cluster.TLS = &ir.ClientTLS{}
	}
	return target{host: svc.Hostname, port: port.Number, labels: labels, cluster: cluster}
}

// viaExternal is another host at the endpoints of an external service, as Pilot
// built all destinations in the routes of that one.
func (p *plan) viaExternal(host string, own *mesh.Service, port *mesh.Port, labels mesh.Labels) target {
	name := mesh.NewServiceKey(own, port, nil).Ports[0]
	cluster := p.newCluster(mesh.ServiceKey{Hostname: host}.With(name, labels), own.Origin.Ref())
	cluster.HTTP2 = isHTTP2(port)
	reach(cluster, host, own, port, labels)
	return target{host: host, port: port.Number, labels: labels, cluster: cluster}
}

// blackhole is a cluster without endpoints: what cannot be reached fails. Pilot
// called it by the caller's port, which is left only where the host has a port
// of that name: its cluster does have endpoints.
func (p *plan) blackhole(host string, port *mesh.Port, labels mesh.Labels, origin diag.Ref) target {
	name := port.Name
	if dest := cmp.Or(p.snap.ServiceIn("", host), p.service(host)); dest != nil && !dest.External && dest.PortByName(name) != nil {
		name = fmt.Sprintf("no-such-port-%d", port.Number)
	}
	cluster := p.newCluster(mesh.ServiceKey{Hostname: host}.With(name, labels), origin)
	return target{host: host, port: port.Number, labels: labels, cluster: cluster}
}

// destination is where a rule for own sends requests of one of own's ports: to
// the port of the same name of another service or, when that is external, of
// the same number. When there is none, the cluster is one without endpoints.
func (p *plan) destination(rule *routeRule, own *mesh.Service, port *mesh.Port, to *schema.IstioService, labels mesh.Labels) target {
	if to == nil {
		return p.newTarget(own, port, labels)
	}
	host := p.hostname(to, rule.namespace)
	if host == own.Hostname {
		return p.newTarget(own, port, labels)
	}
	dest := p.serviceOf(rule.namespace, host)
	if shared := sharedPort(port, dest); shared != nil {
		return p.newTarget(dest, shared, labels)
	}
	return p.blackhole(host, port, labels, rule.ref)
}

// sharedPort is the port of dest that stands for a port of another service.
func sharedPort(port *mesh.Port, dest *mesh.Service) *mesh.Port {
	switch {
	case dest == nil:
		return nil
	case dest.External:
		return dest.Port(port.Number)
	default:
		return dest.PortByName(port.Name)
	}
}
