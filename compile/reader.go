package compile

import (
	"github.com/pilot-api/pilot-api/compile/query"
	"github.com/pilot-api/pilot-api/mesh"
)

// reader is the access of one computation to the model. The computation depends on
// everything that it reads, and on nothing else. A reader cannot report problems.
type reader struct {
	*model
	r *query.Reader
}

// services returns the services of the registry, by host name. The slice is shared.
func (rd *reader) services() []*mesh.Service { return rd.registry.services.under(rd, none{}) }

// registered returns the first service of the registry with a host name, or nil.
func (rd *reader) registered(host string) *mesh.Service {
	if found := rd.registry.byHost.under(rd, host); len(found) > 0 {
		return found[0]
	}
	return nil
}

// registeredIn returns the service of the registry that callers in a namespace see
// under a host name, or nil.
func (rd *reader) registeredIn(namespace, host string) *mesh.Service {
	for _, svc := range rd.registry.byHost.under(rd, host) {
		if svc.VisibleIn(namespace) {
			return svc
		}
	}
	return nil
}

// service returns the first service with a host name, from the registry or else an
// EgressRule, or nil. Callers may see another one, as seenBy says.
func (rd *reader) service(host string) *mesh.Service {
	if svc := rd.registered(host); svc != nil {
		return svc
	}
	return rd.egressHost.Get(rd.r, host)
}

// seenBy returns the service that callers in a namespace see under a host, from the
// registry or an EgressRule, or nil.
func (rd *reader) seenBy(namespace, host string) *mesh.Service {
	if svc := rd.registeredIn(namespace, host); svc != nil {
		return svc
	}
	return rd.egressHost.Get(rd.r, host)
}

// hasSeveral reports whether a host is not the same service to all callers that see
// it.
func (rd *reader) hasSeveral(host string) bool {
	registered := len(rd.registry.byHost.under(rd, host))
	return registered > 1 || registered == 1 && rd.egressHost.Get(rd.r, host) != nil
}

// instances returns the instances of a service. The service must come from the
// model.
func (rd *reader) instances(svc *mesh.Service) []*mesh.Instance {
	return rd.registry.instances.Get(rd.r, svc).listed()
}
