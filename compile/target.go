package compile

import (
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// target is a set of instances that a route or listener sends to: one
// outbound cluster.
type target struct {
	name    string // of the cluster
	key     mesh.ServiceKey
	service *mesh.Service // nil: not in the registry
	port    *mesh.Port    // nil: not a port of the service
	labels  mesh.Labels
	origin  diag.Ref // who asked for it
}

// newTarget is a version of a service at one of its ports.
func newTarget(svc *mesh.Service, port *mesh.Port, labels mesh.Labels, origin diag.Ref) target {
	key := mesh.NewServiceKey(svc, port, labels)
	return target{outbound(key), key, svc, port, labels, origin}
}

func outbound(key mesh.ServiceKey) string { return "out." + key.String() }

// destination is where a rule for own sends requests of one of own's ports: to
// the port of the same name of another service or, when that is external, of
// the same number. When there is none, the cluster is one without endpoints.
func (p *plan) destination(rule *routeRule, own *mesh.Service, port *mesh.Port, to *schema.IstioService, labels mesh.Labels) target {
	if to == nil {
		return newTarget(own, port, labels, rule.ref)
	}
	host := p.hostname(to, rule.namespace)
	if host == own.Hostname {
		return newTarget(own, port, labels, rule.ref)
	}
	dest := p.snap.Service(host)
	if shared := sharedPort(port, dest); shared != nil {
		return newTarget(dest, shared, labels, rule.ref)
	}
	key := mesh.ServiceKey{Hostname: host}.With(port.Name, labels)
	return target{outbound(key), key, dest, nil, labels, rule.ref}
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

// hosts are the endpoints of a target whose cluster lists them itself. A DNS
// service without endpoints is the endpoint of its own name.
func (t target) hosts() []ir.HostPort {
	if t.service.Resolution == mesh.DNS && len(t.service.Instances) == 0 && len(t.labels) == 0 {
		return []ir.HostPort{{Host: t.service.Hostname, Port: t.port.Number}}
	}
	var out []ir.HostPort
	for _, i := range t.service.Instances {
		if i.Port == t.port && t.labels.SubsetOf(i.Labels) {
			out = append(out, ir.HostPort{Host: i.Address, Port: i.EndpointPort})
		}
	}
	return out
}
