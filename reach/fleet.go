package reach

import (
	"slices"

	"github.com/pilot-api/pilot-api/mesh"
)

// Proxy is a proxy that is connected to the mesh, or was.
type Proxy struct {
	mesh.Proxy
	// Lost is set for a proxy that lost its connection, and may still run.
	Lost bool
	// V1 is set for an Envoy of the v1 API, and Proxyless for a program without a proxy.
	V1, Proxyless bool
}

// Fleet has the proxies of a mesh. It does not change.
type Fleet struct {
	byIP     map[string][]Proxy
	routers  []Proxy
	complete bool
}

// NewFleet returns a fleet. complete is set if there are no other proxies.
func NewFleet(all []Proxy, complete bool) *Fleet {
	f := &Fleet{byIP: map[string][]Proxy{}, complete: complete}
	for _, p := range all {
		if p.Role == mesh.Sidecar {
			f.byIP[p.IP] = append(f.byIP[p.IP], p)
		} else {
			f.routers = append(f.routers, p)
		}
	}
	return f
}

// presence says whether a workload has a proxy.
type presence int

const (
	absent presence = iota
	unsure          // it may have one
	present
)

// beside returns the proxy of an instance. Without a fleet each instance has one.
func (f *Fleet) beside(i *mesh.Instance, settings *mesh.Settings) (Proxy, presence) {
	assumed := Proxy{Proxy: mesh.Proxy{Role: mesh.Sidecar, IP: i.Address, Domain: i.Service.Namespace + ".svc." + settings.Domain}}
	if f == nil {
		return assumed, present
	}
	found, is := assumed, absent
	if !f.complete {
		is = unsure
	}
	for _, p := range f.byIP[i.Address] {
		home := settings.NamespaceOf(p.Proxy)
		if home != "" && home != i.Service.Namespace && i.Service.Namespace != settings.RootNamespace && !settings.V1Compatibility.AnyNamespaceRules {
			continue
		}
		switch {
		case !p.Lost:
			return p, present
		case is != present:
			found, is = p, unsure
		}
	}
	return found, is
}

// gateways returns the connected routers at whose addresses there are no instances.
func (f *Fleet) gateways(s *mesh.Snapshot, settings *mesh.Settings) []Proxy {
	if f == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(f.routers), func(p Proxy) bool {
		return p.Lost || settings.NamespaceOf(p.Proxy) == "" || len(s.InstancesAt(p.IP)) > 0
	})
}
