package compile

import (
	"reflect"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/compile/query"
	"github.com/pilot-api/pilot-api/mesh"
)

// registry has the services as inputs. A service stays the same value while only
// its instances change: hardly anything depends on those, because proxies receive
// endpoints separately. So code here must read the Instances of a service only
// through instances.
type registry struct {
	services    *index[none, mesh.Service]   // by host name
	byHost      *index[string, mesh.Service] // if several share a host, in order of precedence
	byNamespace *index[string, mesh.Service]
	beneath     *index[string, mesh.Service] // by the wildcards that stand for them
	namesakes   *index[string, mesh.Service] // services of the mesh, by host name up to the first dot
	byName      *index[string, mesh.Service] // by the names by which some callers call them by HTTP
	wild        *index[none, mesh.Service]   // those with HTTP whose host is a wildcard
	byHTTP      *index[int, mesh.Service]    // by their ports with HTTP
	byTCP       *index[none, mesh.Service]   // those with a port that is neither HTTP nor UDP
	instances   *query.Input[*mesh.Service, *list[mesh.Instance]]
	closedPorts *query.Input[none, *mesh.ClosedPorts]
	under       *query.Input[audience, portSums] // by the wildcards that cover their hosts

	sums    map[audience]portSums // the same values
	count   func(*mesh.Service) portSums
	known   map[*mesh.Service]*mesh.Service // from each service of the last snapshot to the value that represents it
	members map[*mesh.Service]*list[mesh.Instance]
}

func newRegistry(g *query.Graph, m *model) *registry {
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
		byName: newIndex(g, mesh.CompareServices, m.namesOf),
		byHTTP: newIndex(g, mesh.CompareServices, m.httpNumbersOf),
		wild: newIndex(g, mesh.CompareServices, func(svc *mesh.Service) []none {
			if strings.HasPrefix(svc.Hostname, "*") && len(m.httpNumbersOf(svc)) > 0 {
				return []none{{}}
			}
			return nil
		}),
		byTCP: newIndex(g, mesh.CompareServices, func(svc *mesh.Service) []none {
			if m.countPorts(svc).other > 0 {
				return []none{{}}
			}
			return nil
		}),
		instances:   query.NewInput[*mesh.Service, *list[mesh.Instance]](g),
		closedPorts: query.NewInput[none, *mesh.ClosedPorts](g),
		known:       map[*mesh.Service]*mesh.Service{},
		members:     map[*mesh.Service]*list[mesh.Instance]{},
		under:       query.NewInput[audience, portSums](g),
		sums:        map[audience]portSums{},
		count:       m.countPorts,
	}
}

func (reg *registry) update(changes []mesh.ServiceChange) {
	var changed []change[mesh.Service]
	for _, ch := range changes {
		known := reg.known[ch.Before]
		delete(reg.known, ch.Before)
		if ch.Before != nil && ch.After != nil && known.SameShape(ch.After) {
			reg.known[ch.After] = known
			reg.setInstances(known, ch.After)
			continue
		}
		if known != nil {
			reg.forget(known)
		}
		if ch.After != nil {
			reg.known[ch.After] = ch.After
			reg.setInstances(ch.After, ch.After)
		}
		changed = append(changed, change[mesh.Service]{known, ch.After})
	}
	if len(changed) == 0 {
		return
	}
	reg.services.update(changed)
	reg.byHost.update(changed)
	reg.byNamespace.update(changed)
	reg.namesakes.update(changed)
	reg.beneath.update(changed)
	reg.byName.update(changed)
	reg.byHTTP.update(changed)
	reg.wild.update(changed)
	reg.byTCP.update(changed)
	reg.sum(changed)
}

// portSums counts the ports of some services.
type portSums struct {
	http  int
	other int // counted once for each address of the service
}

// audience is the callers in a namespace of the hosts under a wildcard. The namespace
// "" has the hosts that are exported to all.
type audience struct{ wildcard, namespace string }

// audiences returns the namespaces that see a service, and its own; "" alone if all
// do.
func audiences(svc *mesh.Service) []string {
	if mesh.Exported(svc.ExportTo, svc.Namespace, "") {
		return []string{""}
	}
	out := append([]string{svc.Namespace}, svc.ExportTo...)
	out = slices.DeleteFunc(out, func(name string) bool { return name == "." || name == "~" })
	slices.Sort(out)
	return slices.Compact(out)
}

// portsUnder counts the ports under a wildcard of the services that a namespace sees,
// and of its own.
func (rd *reader) portsUnder(wildcard, namespace string) portSums {
	out := rd.registry.under.Get(rd.r, audience{wildcard, ""})
	private := rd.registry.under.Get(rd.r, audience{wildcard, namespace})
	return portSums{out.http + private.http, out.other + private.other}
}

// sum updates the port counts under each wildcard.
func (reg *registry) sum(changes []change[mesh.Service]) {
	touched := map[audience]bool{}
	add := func(svc *mesh.Service, sign int) {
		if svc == nil {
			return
		}
		ports := reg.count(svc)
		for _, namespace := range audiences(svc) {
			for wildcard := range wildcards(svc.Hostname) {
				at := audience{wildcard, namespace}
				sums := reg.sums[at]
				reg.sums[at] = portSums{sums.http + sign*ports.http, sums.other + sign*ports.other}
				touched[at] = true
			}
		}
	}
	for _, ch := range changes {
		add(ch.before, -1)
		add(ch.after, 1)
	}
	for at := range touched {
		reg.under.Set(at, reg.sums[at])
		if reg.sums[at] == (portSums{}) {
			delete(reg.sums, at)
		}
	}
}

// setInstances sets the instances of a service, unless they are unchanged.
func (reg *registry) setInstances(known, now *mesh.Service) {
	if slices.EqualFunc(reg.members[known].listed(), now.Instances, sameInstance) {
		return
	}
	if len(now.Instances) == 0 {
		delete(reg.members, known)
	} else {
		reg.members[known] = &list[mesh.Instance]{items: now.Instances}
	}
	reg.instances.Set(known, reg.members[known])
}

func (reg *registry) forget(known *mesh.Service) {
	delete(reg.members, known)
	reg.instances.Set(known, nil)
}

// sameInstance reports whether two instances, including their ports, are equal
// apart from their services.
func sameInstance(a, b *mesh.Instance) bool {
	left, right := *a, *b
	left.Service, right.Service, left.Port, right.Port = nil, nil, nil, nil
	return *a.Port == *b.Port && reflect.DeepEqual(left, right)
}

// ownInstance returns the part of an instance that only the proxy beside it needs:
// without address, and with its service as the model knows it.
func (reg *registry) ownInstance(i *mesh.Instance) *mesh.Instance {
	svc := i.Service
	if known := reg.known[svc]; known != nil {
		svc = known
	}
	return &mesh.Instance{Service: svc, Port: i.Port, EndpointPort: i.EndpointPort, Labels: i.Labels, Peer: i.Peer}
}

func sameOwn(a, b *mesh.Instance) bool {
	return a.Service == b.Service && *a.Port == *b.Port && a.EndpointPort == b.EndpointPort && a.Labels.Equal(b.Labels) && a.Peer.Equal(b.Peer)
}
