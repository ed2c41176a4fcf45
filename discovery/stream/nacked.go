package stream

import (
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

func (st *Stream) EachRefusal(visit func(diag.Ref, feedback.Refusal)) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if target, err := st.target(); err == nil {
		st.eachRefusalLocked(target, visit)
	}
}

func (st *Stream) eachRefusalLocked(target *compiled.Streamed, visit func(diag.Ref, feedback.Refusal)) {
	for _, t := range st.subscriptions() {
		for name, refused := range t.nacks.Each(t, st.desired(t, target)) {
			refs := refused.Origins
			if len(refs) == 0 {
				refs = t.culprits(name, refused.View, target, st.proxy.Address())
			}
			if len(refs) == 0 {
				refs = []diag.Ref{{}}
			}
			for _, ref := range refs {
				visit(ref, feedback.Refusal{Node: st.proxy.ID(), Type: xds.NameOf(t.typeURL), Words: refused.Words})
			}
		}
	}
	feedback.EachWithheld(st.proxy.ID(), st.withheld(target), target.View.Config, visit)
}

// culprits are the objects that a refused resource came from: of a route table,
// those of the virtual hosts that the proxy has not accepted before, in the view given;
// or of all, if there is no other.
func (t *subscription) culprits(name string, before *compiled.View, target *compiled.Streamed, ip string) []diag.Ref {
	var refs []diag.Ref
	add := func(ref diag.Ref) {
		if ref != (diag.Ref{}) && !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	switch t.typeURL {
	case xds.ClusterType:
		for _, c := range target.View.Config.Clusters {
			if envoy.ClusterName(c.Name) == name {
				for _, ref := range c.Origins {
					add(ref)
				}
			}
		}
	case xds.EndpointType:
		_, key := envoy.ParseEndpointsName(name)
		if svc := target.View.Encoder.Current.Load().Mesh.ServiceOfKey(mesh.ParseServiceKey(key).Hostname); svc != nil {
			add(svc.Origin.Ref())
		}
	case xds.ListenerType:
		for _, l := range target.View.Config.ListenersAt(ip) {
			if envoy.ListenerName(l) == name {
				l.EachOrigin(add)
			}
		}
	case xds.SecretType:
		for _, s := range target.View.Config.Secrets {
			if s.Name == name {
				for _, ref := range s.Origins {
					add(ref)
				}
			}
		}
	case xds.RouteType:
		accepted := map[*ir.VirtualHost]bool{}
		if before != nil {
			for _, h := range compiled.HostsOf(before, name) {
				accepted[h] = true
			}
		}
		hosts := compiled.HostsOf(target.View, name)
		if fresh := slices.DeleteFunc(slices.Clone(hosts), func(h *ir.VirtualHost) bool { return accepted[h] }); len(fresh) > 0 {
			hosts = fresh
		}
		for _, h := range hosts {
			h.EachOrigin(add)
		}
	}
	return refs
}
