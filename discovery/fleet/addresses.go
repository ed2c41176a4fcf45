package fleet

import (
	"github.com/pilot-api/pilot-api/mesh"
)

// changedAddresses are those at which there are other instances than before, as
// far as a proxy beside them can tell.
func changedAddresses(before, next *mesh.Snapshot) map[string]bool {
	found := map[string]bool{}
	for _, c := range next.ServicesSince(before) {
		if c.Before != nil && c.After != nil && mesh.CompareServices(c.Before, c.After) != 0 {
			// It comes in another turn among the services of its host, and so in keys.
			differingAddresses(own(c.Before), nil, found)
			differingAddresses(nil, own(c.After), found)
			continue
		}
		differingAddresses(own(c.Before), own(c.After), found)
	}
	return found
}

// own are the instances that proxies may be beside.
func own(s *mesh.Service) []*mesh.Instance {
	if s == nil || s.External {
		return nil
	}
	return s.Instances
}

// differingAddresses are those of all instances between what both lists begin
// and end with.
func differingAddresses(a, b []*mesh.Instance, found map[string]bool) {
	for len(a) > 0 && len(b) > 0 && sameInstance(a[0], b[0]) {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && sameInstance(a[len(a)-1], b[len(b)-1]) {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	for _, list := range [][]*mesh.Instance{a, b} {
		for _, i := range list {
			found[i.Address] = true
		}
	}
}

// sameInstance compares what mesh.View is made of, of instances of one
// service.
func sameInstance(a, b *mesh.Instance) bool {
	return a == b || a.Address == b.Address && a.EndpointPort == b.EndpointPort && a.Port.Name == b.Port.Name &&
		a.Zone == b.Zone && a.Labels.Equal(b.Labels)
}
