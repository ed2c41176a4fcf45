package compile

import (
	"encoding/json"
	"fmt"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// target is a set of instances that a route or listener sends to. Equal targets
// are the same cluster.
type target struct {
	name    string        // of the cluster, but for what its TLS adds
	key     string        // to ask endpoints by
	host    string        // whose rules hold for it
	number  int           // of the host's port
	version version       // of the host
	subset  string        // of the DestinationRule; "" for a version by labels
	service *mesh.Service // whose instances they are; nil: nobody's
	port    *mesh.Port    // of the service
	origin  diag.Ref
	// nobody: it is closed, whatever endpoints there are by its key.
	nobody bool
}

// version is labels as a key of maps; "" for none.
type version string

func versionOf(labels mesh.Labels) version {
	if len(labels) == 0 {
		return ""
	}
	text, _ := json.Marshal(labels) // In order of names; texts cannot fail.
	return version(text)
}

func (v version) labels() mesh.Labels {
	if v == "" {
		return nil
	}
	var labels mesh.Labels
	_ = json.Unmarshal([]byte(v), &labels) // It was made by versionOf.
	return labels
}

// ofNoSubset is the target in place of one for a subset that nobody has.
func (t target) ofNoSubset(name string) target {
	t.name, t.nobody = t.name+"|no-such-subset-"+name, true // Labels have an equals sign.
	return t
}

// newTarget is a version of a service at one of its ports.
func (p *plan) newTarget(svc *mesh.Service, port *mesh.Port, labels mesh.Labels) target {
	t := keyed(mesh.NewServiceKey(svc, port, labels))
	t.host, t.number, t.version = svc.Hostname, port.Number, versionOf(labels)
	t.service, t.port, t.origin = svc, port, svc.Origin.Ref()
	return t
}

func keyed(key mesh.ServiceKey) target {
	text := key.String()
	return target{name: "out." + text, key: text}
}

// viaExternal is another host at the endpoints of an external service, as Pilot
// built all destinations in the routes of that one.
func (p *plan) viaExternal(host string, own *mesh.Service, port *mesh.Port, labels mesh.Labels) target {
	name := mesh.NewServiceKey(own, port, nil).Ports[0]
	t := keyed(mesh.ServiceKey{Hostname: host}.With(name, labels))
	t.host, t.number, t.version = host, port.Number, versionOf(labels)
	t.service, t.port, t.origin = own, port, own.Origin.Ref()
	return t
}

// blackhole is a cluster without endpoints: what cannot be reached fails. Pilot
// called it by the caller's port, which is left only where the host has a port
// of that name: its cluster does have endpoints.
func (p *plan) blackhole(host string, port *mesh.Port, labels mesh.Labels, origin diag.Ref) target {
	name := port.Name
	if dest := p.serviceOf("", host); dest != nil && !dest.External && dest.PortByName(name) != nil {
		name = fmt.Sprintf("no-such-port-%d", port.Number)
	}
	t := keyed(mesh.ServiceKey{Hostname: host}.With(name, labels))
	t.host, t.number, t.version, t.origin = host, port.Number, versionOf(labels), origin
	return t
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
