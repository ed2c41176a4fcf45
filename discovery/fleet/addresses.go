package fleet

import (
	"github.com/pilot-api/pilot-api/mesh"
)

// changedAddresses returns the addresses at which a proxy would notice that the instances
// have changed.
func changedAddresses(before, next *mesh.Snapshot) map[string]bool {
	found := map[string]bool{}
	for _, c := range next.ServicesSince(before) {
		if c.Before != nil && c.After != nil && mesh.CompareServices(c.Before, c.After) != 0 {
			// The service has another position among those of its host, which is part of
			// keys.
			differingAddresses(own(c.Before), nil, found)
			differingAddresses(nil, own(c.After), found)
			continue
		}
		differingAddresses(own(c.Before), own(c.After), found)
	}
	return found
}

// own returns the instances that a proxy may be beside.
func own(s *mesh.Service) []*mesh.Instance {
	if s == nil || s.External {
		return nil
	}
	return s.Instances
}

// differingAddresses returns the addresses of all instances between the common beginning
// and the common end of two lists.
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

// sameInstance reports whether two instances of one service are equal in everything that
// mesh.Traits depends on.
func sameInstance(a, b *mesh.Instance) bool {
	return a == b || a.Address == b.Address && a.EndpointPort == b.EndpointPort && a.Port.Name == b.Port.Name &&
		a.Zone == b.Zone && a.Labels.Equal(b.Labels) && a.Peer.Equal(b.Peer)
}
