package compile

import (
	"encoding/json"
	"fmt"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// target is a set of instances that a route or listener sends to. Equal targets
// have the same cluster.
type target struct {
	name    string        // of the cluster, without the suffix for TLS
	key     string        // key by which endpoints are found
	host    string        // host whose rules apply to it
	number  int           // of the host's port
	version version       // of the host
	subset  string        // of the DestinationRule; "" for a version by labels
	service *mesh.Service // service of the instances, or nil
	port    *mesh.Port    // of the service
	origin  diag.Ref
	// nobody is set if the cluster is closed, whatever endpoints its key has.
	nobody bool
}

// version is a set of labels as a map key; "" for none.
type version string

func versionOf(labels mesh.Labels) version {
	if len(labels) == 0 {
		return ""
	}
	text, _ := json.Marshal(labels) // JSON sorts names, and strings always encode.
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

// ofNoSubset returns the target that stands for a subset that does not exist.
func (t target) ofNoSubset(name string) target {
	t.name, t.nobody = t.name+"|no-such-subset-"+name, true // No conflict with labels, which contain an equals sign.
	return t
}

// newTarget returns a version of a service at one of its ports.
func (rd *reader) newTarget(svc *mesh.Service, port *mesh.Port, labels mesh.Labels) target {
	t := keyed(mesh.NewServiceKey(svc, port, labels))
	t.host, t.number, t.version = svc.Hostname, port.Number, versionOf(labels)
	t.service, t.port, t.origin = svc, port, svc.Origin.Ref()
	return t
}

func keyed(key mesh.ServiceKey) target {
	text := key.String()
	return target{name: "out." + text, key: text}
}

// viaExternal returns the target of another host at the endpoints of an external
// service. Pilot built all destinations in the routes of such a service in this
// way.
func (rd *reader) viaExternal(host string, own *mesh.Service, port *mesh.Port, labels mesh.Labels) target {
	name := mesh.NewServiceKey(own, port, nil).Ports[0]
	t := keyed(mesh.ServiceKey{Hostname: host}.With(name, labels))
	t.host, t.number, t.version = host, port.Number, versionOf(labels)
	t.service, t.port, t.origin = own, port, own.Origin.Ref()
	return t
}

// blackhole returns a target whose cluster has no endpoints, so that its requests
// fail. Like Pilot, it names the cluster after the caller's port, unless the host
// has a port of that name: that cluster does have endpoints.
func (rd *reader) blackhole(host string, port *mesh.Port, labels mesh.Labels, origin diag.Ref) target {
	name := port.Name
	if dest := rd.serviceOf("", host); dest != nil && !dest.External && dest.PortByName(name) != nil {
		name = fmt.Sprintf("no-such-port-%d", port.Number)
	}
	t := keyed(mesh.ServiceKey{Hostname: host}.With(name, labels))
	t.host, t.number, t.version, t.origin = host, port.Number, versionOf(labels), origin
	return t
}

// destination returns where a rule for own sends requests of one of own's ports: to
// the port of the same name of another service or, if that is external, of the same
// number. If there is none, or the rule's namespace does not see the other service,
// the cluster has no endpoints.
func (rd *reader) destination(rule *routeRule, own *mesh.Service, port *mesh.Port, to *schema.IstioService, labels mesh.Labels) target {
	if to == nil {
		return rd.newTarget(own, port, labels)
	}
	host := rd.hostname(to, rule.namespace)
	if host == own.Hostname {
		return rd.newTarget(own, port, labels)
	}
	dest := rd.seenBy(rule.namespace, host)
	if shared := sharedPort(port, dest); shared != nil {
		return rd.newTarget(dest, shared, labels)
	}
	return rd.blackhole(host, port, labels, rule.ref)
}

// sharedPort returns the port of dest that corresponds to a port of another
// service, or nil.
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
