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
	// Files hold secrets beside the objects.
	Files *FileSecrets

	objects map[string][]*schema.Object
	domains domains
	asked   asked
	turned  []Label // that are asked for and were not in the one before, or the other way round
	places  places

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

	// ClosedPorts are the same value as long as they are the same.
	ClosedPorts *ClosedPorts

	byHost table[string, []*Service]
	byKey  table[string, *Service] // by KeyHost
	byIP   table[string, []*Instance]

	id, after *identity
	changes   []ServiceChange // since the one that it came from
	by        *registry
}

// NewSnapshot builds the model from all config objects at one revision. The
// order of objs has no effect.
func NewSnapshot(revision int64, settings *Settings, objs []*schema.Object) *Snapshot {
	s := &Snapshot{Revision: revision, Settings: settings, objects: groupByKind(objs), id: new(identity)}
	s.Registry = newRegistry(settings, s.objects)
	s.domains = s.domainsAfter(nil, added(objs))
	s.asked, s.turned = s.askedAfter(nil, added(objs))
	s.places = s.placesAfter(nil, added(objs))
	return s
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
	return compareNames(a.Meta.Namespace, a.Meta.Name, b.Meta.Namespace, b.Meta.Name)
}

func compareNames(namespace, name, otherNamespace, otherName string) int {
	if namespace == otherNamespace {
		return cmp.Compare(name, otherName)
	}
	return cmp.Compare(namespace+"/"+name, otherNamespace+"/"+otherName)
}

// ByAge are objects in tie-break order with the oldest first, as Istio settles
// conflicts. What has no creation time is the oldest.
func ByAge(objs []*schema.Object) []*schema.Object {
	out := slices.Clone(objs)
	slices.SortStableFunc(out, byCreation)
	return out
}

func byCreation(a, b *schema.Object) int {
	return a.Meta.CreationTimestamp.Compare(b.Meta.CreationTimestamp.Time)
}

// compareAge puts objects of one kind in the order of ByAge.
func compareAge(a, b *schema.Object) int { return cmp.Or(byCreation(a, b), CompareKeys(a, b)) }

// Objects of one kind in tie-break order: by the text
// "dashed-kind/namespace/name", ascending. The slice is shared.
func (s *Snapshot) Objects(kind string) []*schema.Object { return s.objects[kind] }

// Object by its key; nil when there is none.
func (s *Snapshot) Object(key schema.Key) *schema.Object {
	of := s.objects[key.Kind]
	at, found := slices.BinarySearchFunc(of, key, func(o *schema.Object, key schema.Key) int {
		return compareNames(o.Meta.Namespace, o.Meta.Name, key.Namespace, key.Name)
	})
	if !found {
		return nil
	}
	return of[at]
}

// Service by exact host name, the first one of several; nil when there is none.
func (s *Snapshot) Service(hostname string) *Service {
	if all := s.byHost.get(hostname); len(all) > 0 {
		return all[0]
	}
	return nil
}

// ServiceOfKey is the service that service keys name by a host, its KeyHost; nil
// when there is none.
func (s *Snapshot) ServiceOfKey(host string) *Service { return s.byKey.get(host) }

// ServiceIn is the service that callers in a namespace know by a host name; nil
// when there is none.
func (s *Snapshot) ServiceIn(namespace, hostname string) *Service {
	for _, svc := range s.byHost.get(hostname) {
		if svc.VisibleIn(namespace) {
			return svc
		}
	}
	return nil
}

// InstancesAt are the mesh's instances at an IP address, in registry order. The slice
// is shared.
func (s *Snapshot) InstancesAt(ip string) []*Instance { return s.byIP.get(canonicalIP(ip)) }

// Endpoints are the instances a service key means, in registry order; none
// for an unknown service, an external one, one that is found by DNS, by sockets
// or not at all, or labels nobody has. Of several at one address and port there is the
// first, as Envoy would have it.
func (s *Snapshot) Endpoints(key ServiceKey) []*Instance {
	svc := s.byKey.get(key.Hostname)
	if svc == nil || svc.External || svc.Sockets || svc.Resolution != Static {
		return nil
	}
	type address struct {
		host string
		port int
	}
	seen := map[address]bool{}
	reached := s.Settings.Reached(svc.selected(key), key.Network, len(key.LabelSets) > 0)
	return slices.DeleteFunc(reached, func(i *Instance) bool {
		at := address{i.Address, i.EndpointPort}
		taken := seen[at]
		seen[at] = true
		return taken
	})
}
