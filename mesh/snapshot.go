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
	// Files has the secrets in files, which are not objects.
	Files *FileSecrets
	// Keys has the public keys that the server fetched.
	Keys *KeySets

	objects    map[string][]*schema.Object
	domains    domains
	asked      asked
	turned     []Label // labels that became selected or are no longer selected since the previous snapshot
	localities localities

	id, after *identity
	changes   []schema.Change
}

// Registry is the service registry of a snapshot. Later snapshots share it until it
// changes.
type Registry struct {
	// Services are sorted by hostname. Several may have the same one, each for
	// callers of other namespaces; these are in order of precedence.
	Services []*Service
	// Problems are those found while building the registry: two entries for one host, a
	// workload that no entry selects, and so on. They are sorted by object.
	Problems diag.List

	// ClosedPorts is the same value as long as it does not change.
	ClosedPorts *ClosedPorts
	// Parts is the number of parts that all ServiceEntries multiply to, without those that
	// are withheld.
	Parts int

	byHost table[[]*Service]
	byKey  table[*Service] // by KeyHost
	byIP   table[[]*Instance]

	id, after *identity
	changes   []ServiceChange // since the registry that it was made from
	by        *registry
}

// NewSnapshot builds the model from all config objects at one revision. The order
// of objs has no effect.
func NewSnapshot(revision int64, settings *Settings, objs []*schema.Object) *Snapshot {
	s := &Snapshot{Revision: revision, Settings: settings, objects: groupByKind(objs), id: new(identity)}
	s.Registry = newRegistry(settings, s.objects)
	s.domains = s.domainsAfter(nil, added(objs))
	s.asked, s.turned = s.askedAfter(nil, added(objs))
	s.localities = s.localitiesAfter(nil, added(objs))
	return s
}

// groupByKind groups objects by kind in tie-break order: by "namespace/name" as one
// string, in which "a-b" sorts before "a" because "-" is less than "/".
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

// CompareKeys sorts objects of one kind in tie-break order.
func CompareKeys(a, b *schema.Object) int {
	return compareNames(a.Meta.Namespace, a.Meta.Name, b.Meta.Namespace, b.Meta.Name)
}

func compareNames(namespace, name, otherNamespace, otherName string) int {
	if namespace == otherNamespace {
		return cmp.Compare(name, otherName)
	}
	return cmp.Compare(namespace+"/"+name, otherNamespace+"/"+otherName)
}

// compareAge sorts objects of one kind by age, the oldest first, as Istio resolves
// conflicts. An object without a creation time counts as the oldest. Objects of the same
// age are in tie-break order.
func compareAge(a, b *schema.Object) int {
	return cmp.Or(a.Meta.CreationTimestamp.Compare(b.Meta.CreationTimestamp.Time), CompareKeys(a, b))
}

// Objects returns the objects of one kind in tie-break order: by the string
// "dashed-kind/namespace/name", ascending. The slice is shared.
func (s *Snapshot) Objects(kind string) []*schema.Object { return s.objects[kind] }

// Object returns the object with a key, or nil.
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

// Service returns the first service with exactly this host name, or nil.
func (s *Snapshot) Service(hostname string) *Service {
	if all := s.byHost.get(hostname); len(all) > 0 {
		return all[0]
	}
	return nil
}

// ServiceOfKey returns the service whose KeyHost is the host in a service key, or
// nil.
func (s *Snapshot) ServiceOfKey(host string) *Service { return s.byKey.get(host) }

// ServiceIn returns the service that callers in a namespace see under a host name,
// or nil.
func (s *Snapshot) ServiceIn(namespace, hostname string) *Service {
	for _, svc := range s.byHost.get(hostname) {
		if svc.VisibleIn(namespace) {
			return svc
		}
	}
	return nil
}

// InstancesAt returns the mesh's instances at an IP address, in registry order. The
// slice is shared.
func (s *Snapshot) InstancesAt(ip string) []*Instance { return s.byIP.get(canonicalIP(ip)) }

// Endpoints returns the instances that a service key means, in registry order. It
// returns none for a service that is unknown or external, whose endpoints are found
// by DNS or sockets or not at all, and for labels that no instance has. Of several
// instances at one address and port it returns the first, as Envoy does.
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
