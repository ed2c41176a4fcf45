package mesh

import (
	"cmp"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// Snapshot is the whole mesh at one revision. It is immutable.
type Snapshot struct {
	Revision int64
	Settings *Settings
	*Registry

	objects    map[string][]*schema.Object
	namespaces namespaces
	domains    domains

	id, after *identity
	changes   []schema.Change
}

// Registry is that of a snapshot, and of those after it until it
// changes.
type Registry struct {
	// Services sorted by hostname. Several may have one, each for callers of
	// other namespaces; of those there is first what comes first.
	Services []*Service
	// Problems found while building the registry: two entries for one host,
	// a workload that selects nothing, and so on. Sorted by object.
	Problems diag.List

	byHost map[string][]*Service
	byKey  map[string]*Service // by KeyHost
	byIP   map[string][]*Instance
}

// NewSnapshot builds the model from all config objects at one revision. The
// order of objs has no effect.
func NewSnapshot(revision int64, settings *Settings, objs []*schema.Object) *Snapshot {
	s := &Snapshot{
		Revision: revision, Settings: settings,
		objects: groupByKind(objs), namespaces: namespaces{}, id: new(identity),
	}
	s.Registry = s.register(s.objects)
	for _, o := range objs {
		s.namespaces.add(o, 1)
	}
	s.domains = s.knownDomains()
	return s
}

// register builds the registry. Services that are as they were in s stay the
// same values.
func (s *Snapshot) register(objects map[string][]*schema.Object) *Registry {
	out := &Registry{byHost: map[string][]*Service{}, byKey: map[string]*Service{}, byIP: map[string][]*Instance{}}
	out.Services, out.Problems = buildRegistry(s.Settings, objects["ServiceEntry"], objects["WorkloadEntry"])
	for _, svc := range out.Services {
		out.byHost[svc.Hostname] = append(out.byHost[svc.Hostname], svc)
		out.byKey[svc.KeyHost()] = svc
		if svc.External {
			continue // Its endpoints are outside the mesh: no proxy's own.
		}
		for _, i := range svc.Instances {
			out.byIP[i.Address] = append(out.byIP[i.Address], i)
		}
	}
	return out
}

// groupByKind sorts each kind in tie-break order: by "namespace/name" as one
// text, in which "a-b" comes before "a", for "-" is less than "/".
func groupByKind(objs []*schema.Object) map[string][]*schema.Object {
	groups := map[string][]*schema.Object{}
	for _, o := range objs {
		groups[o.Kind.Kind] = append(groups[o.Kind.Kind], o)
	}
	for _, group := range groups {
		slices.SortFunc(group, CompareKeys)
	}
	return groups
}

// CompareKeys puts objects of one kind in tie-break order.
func CompareKeys(a, b *schema.Object) int {
	if a.Meta.Namespace == b.Meta.Namespace {
		return cmp.Compare(a.Meta.Name, b.Meta.Name)
	}
	return cmp.Compare(a.Meta.Namespace+"/"+a.Meta.Name, b.Meta.Namespace+"/"+b.Meta.Name)
}

// ByAge are objects in tie-break order with the oldest first, as Istio settles
// conflicts. What has no creation time is the oldest.
func ByAge(objs []*schema.Object) []*schema.Object {
	out := slices.Clone(objs)
	slices.SortStableFunc(out, func(a, b *schema.Object) int {
		return a.Meta.CreationTimestamp.Compare(b.Meta.CreationTimestamp.Time)
	})
	return out
}

// Objects of one kind in tie-break order: by the text
// "dashed-kind/namespace/name", ascending. The slice is shared.
func (s *Snapshot) Objects(kind string) []*schema.Object { return s.objects[kind] }

// Service by exact host name, the first one of several; nil when there is none.
func (s *Snapshot) Service(hostname string) *Service {
	if all := s.byHost[hostname]; len(all) > 0 {
		return all[0]
	}
	return nil
}

// ServiceIn is the service that callers in a namespace know by a host name; nil
// when there is none.
func (s *Snapshot) ServiceIn(namespace, hostname string) *Service {
	for _, svc := range s.byHost[hostname] {
		if svc.VisibleIn(namespace) {
			return svc
		}
	}
	return nil
}

// InstancesAt are the mesh's instances at an IP address, in registry order. The slice
// is shared.
func (s *Snapshot) InstancesAt(ip string) []*Instance { return s.byIP[canonicalIP(ip)] }

// Endpoints are the instances a service key means, in registry order; none
// for an unknown service, an external one, one that is found by DNS or not at
// all, or labels nobody has. Of several at one address and port there is the
// first, as Envoy would have it.
func (s *Snapshot) Endpoints(key ServiceKey) []*Instance {
	svc := s.byKey[key.Hostname]
	if svc == nil || svc.External || svc.Resolution != Static {
		return nil
	}
	type address struct {
		host string
		port int
	}
	seen := map[address]bool{}
	return slices.DeleteFunc(svc.selected(key), func(i *Instance) bool {
		at := address{i.Address, i.EndpointPort}
		taken := seen[at]
		seen[at] = true
		return taken
	})
}
