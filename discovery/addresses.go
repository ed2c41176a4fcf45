package discovery

import (
	"strings"

	"github.com/pilot-api/pilot-api/mesh"
)

// changedAddresses are those at which there are other instances than before, as
// far as a proxy beside them can tell.
func changedAddresses(before, next *mesh.Snapshot) map[string]bool {
	found := map[string]bool{}
	a, b := before.Services, next.Services
	for len(a) > 0 || len(b) > 0 {
		order := 0
		switch {
		case len(a) == 0:
			order = 1
		case len(b) == 0:
			order = -1
		default:
			order = strings.Compare(a[0].Hostname, b[0].Hostname)
		}
		var old, new *mesh.Service
		if order <= 0 {
			old, a = a[0], a[1:]
		}
		if order >= 0 {
			new, b = b[0], b[1:]
		}
		if old != new {
			differingAddresses(own(old), own(new), found)
		}
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

// sameInstance compares what mesh.View.Key is made of, of instances of one
// service.
func sameInstance(a, b *mesh.Instance) bool {
	return a == b || a.Address == b.Address && a.EndpointPort == b.EndpointPort && a.Port.Name == b.Port.Name && a.Labels.Equal(b.Labels)
}
