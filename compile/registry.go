package compile

import (
	"reflect"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/compile/query"
	"github.com/pilot-api/pilot-api/mesh"
)

// registry has the services as inputs. A service stays the same value while
// only its instances change, for hardly anything depends on those: endpoints
// are answered by themselves. So nothing here may read the Instances of a
// service but through instances.
type registry struct {
	services    *index[none, mesh.Service]   // by host name
	byHost      *index[string, mesh.Service] // of several the first one first
	byNamespace *index[string, mesh.Service]
	beneath     *index[string, mesh.Service] // by the wildcards that stand for them
	namesakes   *index[string, mesh.Service] // of the mesh, by host name up to the first dot
	instances   *query.Input[*mesh.Service, *list[mesh.Instance]]
	closedPorts *query.Input[none, *mesh.ClosedPorts]
	under       *query.Input[string, portSums] // by the wildcards that hosts are under

	sums    map[string]portSums // the same
	count   func(*mesh.Service) portSums
	known   map[*mesh.Service]*mesh.Service // of the last snapshot, to what stands for it
	members map[*mesh.Service]*list[mesh.Instance]
}

func newRegistry(g *query.Graph, count func(*mesh.Service) portSums) *registry {
	return &registry{
		services:    newIndex(g, mesh.CompareServices, func(*mesh.Service) []none { return []none{{}} }),
		byHost:      newIndex(g, mesh.CompareServices, func(svc *mesh.Service) []string { return []string{svc.Hostname} }),
		byNamespace: newIndex(g, mesh.CompareServices, func(svc *mesh.Service) []string { return []string{svc.Namespace} }),
		beneath: newIndex(g, mesh.CompareServices, func(svc *mesh.Service) []string {
			return slices.Collect(wildcards(strings.TrimPrefix(svc.Hostname, "*")))
		}),
		namesakes: newIndex(g, mesh.CompareServices, func(svc *mesh.Service) []string {
			if name, _, ok := strings.Cut(svc.Hostname, "."); ok && !svc.External {
				return []string{name}
			}
			return nil
		}),
		instances:   query.NewInput[*mesh.Service, *list[mesh.Instance]](g),
		closedPorts: query.NewInput[none, *mesh.ClosedPorts](g),
		known:       map[*mesh.Service]*mesh.Service{},
		members:     map[*mesh.Service]*list[mesh.Instance]{},
		under:       query.NewInput[string, portSums](g),
		sums:        map[string]portSums{},
		count:       count,
	}
}

func (reg *registry) update(changes []mesh.ServiceChange) {
	var changed []change[mesh.Service]
	for _, ch := range changes {
		standing := reg.known[ch.Before]
		delete(reg.known, ch.Before)
		if ch.Before != nil && ch.After != nil && standing.SameShape(ch.After) {
			reg.known[ch.After] = standing
			reg.setInstances(standing, ch.After)
			continue
		}
		if standing != nil {
			reg.forget(standing)
		}
		if ch.After != nil {
			reg.known[ch.After] = ch.After
			reg.setInstances(ch.After, ch.After)
		}
		changed = append(changed, change[mesh.Service]{standing, ch.After})
	}
	if len(changed) == 0 {
		return
	}
	reg.services.update(changed)
	reg.byHost.update(changed)
	reg.byNamespace.update(changed)
	reg.namesakes.update(changed)
	reg.beneath.update(changed)
	reg.sum(changed)
}

// portSums are numbers of ports of some services.
type portSums struct {
	http  int
	other int // at each address of the service by itself
}

// sum counts the ports under each wildcard.
func (reg *registry) sum(changes []change[mesh.Service]) {
	touched := map[string]bool{}
	add := func(svc *mesh.Service, sign int) {
		if svc == nil {
			return
		}
		ports := reg.count(svc)
		for wildcard := range wildcards(svc.Hostname) {
			sums := reg.sums[wildcard]
			reg.sums[wildcard] = portSums{sums.http + sign*ports.http, sums.other + sign*ports.other}
			touched[wildcard] = true
		}
	}
	for _, ch := range changes {
		add(ch.before, -1)
		add(ch.after, 1)
	}
	for wildcard := range touched {
		reg.under.Set(wildcard, reg.sums[wildcard])
		if reg.sums[wildcard] == (portSums{}) {
			delete(reg.sums, wildcard)
		}
	}
}

// setInstances leaves them as they are when they are the same.
func (reg *registry) setInstances(standing, now *mesh.Service) {
	if slices.EqualFunc(reg.members[standing].listed(), now.Instances, sameInstance) {
		return
	}
	if len(now.Instances) == 0 {
		delete(reg.members, standing)
	} else {
		reg.members[standing] = &list[mesh.Instance]{items: now.Instances}
	}
	reg.instances.Set(standing, reg.members[standing])
}

func (reg *registry) forget(standing *mesh.Service) {
	delete(reg.members, standing)
	reg.instances.Set(standing, nil)
}

// sameInstance reports whether two instances of a service and its port are
// alike.
func sameInstance(a, b *mesh.Instance) bool {
	left, right := *a, *b
	left.Service, right.Service, left.Port, right.Port = nil, nil, nil, nil
	return *a.Port == *b.Port && reflect.DeepEqual(left, right)
}

// ownInstance is what matters of an instance to the proxy beside it, and to
// nobody else: no address, and its service as the model knows it.
func (reg *registry) ownInstance(i *mesh.Instance) *mesh.Instance {
	svc := i.Service
	if standing := reg.known[svc]; standing != nil {
		svc = standing
	}
	return &mesh.Instance{Service: svc, Port: i.Port, EndpointPort: i.EndpointPort, Labels: i.Labels}
}

func sameOwn(a, b *mesh.Instance) bool {
	return a.Service == b.Service && *a.Port == *b.Port && a.EndpointPort == b.EndpointPort && a.Labels.Equal(b.Labels)
}
