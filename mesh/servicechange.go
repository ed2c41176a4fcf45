package mesh

import (
	"iter"
	"maps"
	"slices"
	"strings"
)

// ServiceChange replaces one service with another: Before is nil for a new one,
// After for a removed one.
type ServiceChange struct{ Before, After *Service }

// ServicesSince returns the changes of services since an earlier snapshot, which
// may be nil. Services with the same KeyHost are one change. It takes time in
// proportion to the number of changes if s was made from that snapshot with no
// other registry in between. The slice is shared.
func (s *Snapshot) ServicesSince(before *Snapshot) []ServiceChange {
	switch {
	case before == nil:
		return serviceChanges(nil, s.Services)
	case before.Registry == s.Registry:
		return nil
	case s.Registry.after != nil && s.Registry.after == before.Registry.id:
		return s.Registry.changes
	}
	return serviceChanges(before.Services, s.Services)
}

func serviceChanges(before, after []*Service) []ServiceChange {
	last := map[string]*Service{}
	for _, svc := range before {
		last[svc.KeyHost()] = svc
	}
	var out []ServiceChange
	for _, svc := range after {
		key := svc.KeyHost()
		if last[key] != svc {
			out = append(out, ServiceChange{last[key], svc})
		}
		delete(last, key)
	}
	for gone := range maps.Values(last) {
		out = append(out, ServiceChange{Before: gone})
	}
	return out
}

// with returns the registry after the services of some hosts have changed.
func (r *Registry) with(hosts map[string][]*Service) *Registry {
	next := &Registry{id: new(identity), after: r.id}
	byHost, list := r.byHost.draft(), r.Services
	next.Services = make([]*Service, 0, len(list)+len(hosts))
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		before, after := r.byHost.get(host), hosts[host]
		next.changes = append(next.changes, serviceChanges(before, after)...)
		at, _ := slices.BinarySearchFunc(list, host, func(svc *Service, host string) int { return strings.Compare(svc.Hostname, host) })
		next.Services = append(append(next.Services, list[:at]...), after...)
		list = list[at+len(before):]
		if len(after) > 0 {
			byHost.set(host, after)
		} else {
			byHost.remove(host)
		}
	}
	next.Services = append(next.Services, list...)
	next.byHost = byHost.done()
	next.byKey = rekeyed(r.byKey, next.changes)
	next.byIP = moved(r.byIP, next.changes)
	return next
}

func rekeyed(services table[*Service], changes []ServiceChange) table[*Service] {
	d := services.draft()
	for _, c := range changes {
		if c.After != nil {
			d.set(c.After.KeyHost(), c.After)
		} else {
			d.remove(c.Before.KeyHost())
		}
	}
	return d.done()
}

// moved updates the instances of changed services at their addresses, in the order
// of the services.
func moved(instances table[[]*Instance], changes []ServiceChange) table[[]*Instance] {
	gone, come := map[*Service]bool{}, map[string][]*Instance{} // come has all addresses that change
	add := func(ip string, some ...*Instance) { come[ip] = append(come[ip], some...) }
	for _, c := range changes {
		gone[c.Before] = true
		for ip := range runs(c.Before.own()) {
			add(ip)
		}
		for ip, some := range runs(c.After.own()) {
			add(ip, some...)
		}
	}
	d := instances.draft()
	for ip, some := range come {
		before := d.get(ip)
		now := make([]*Instance, 0, len(before)+len(some))
		for _, i := range before {
			if !gone[i.Service] {
				now = append(now, i)
			}
		}
		now = append(now, some...)
		slices.SortStableFunc(now, func(a, b *Instance) int { return CompareServices(a.Service, b.Service) })
		if len(now) > 0 {
			d.set(ip, now)
		} else {
			d.remove(ip)
		}
	}
	return d.done()
}

// runs divides instances into runs of the same address. An address may have several.
func runs(instances []*Instance) iter.Seq2[string, []*Instance] {
	return func(yield func(string, []*Instance) bool) {
		for len(instances) > 0 {
			ip, n := instances[0].Address, 1
			for n < len(instances) && instances[n].Address == ip {
				n++
			}
			if !yield(ip, instances[:n]) {
				return
			}
			instances = instances[n:]
		}
	}
}

// own returns the instances that may have a proxy beside them: none of an external
// service, whose endpoints are outside the mesh, and none of nil.
func (s *Service) own() []*Instance {
	if s == nil || s.External {
		return nil
	}
	return s.Instances
}
