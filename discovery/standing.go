package discovery

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/schema"
)

// Standings are how all objects stand with the proxies that are connected to this
// replica, at one moment (docs/decisions/019-feedback.md).
type Standings struct {
	// Revision of the published configuration, 0 before there is one.
	Revision int64
	// Objects that it was compiled from, in no order. The slice is shared.
	Objects []*schema.Object

	crews    []crew
	concern  map[diag.Ref][]int // crews, by the objects in their configuration
	refusals map[diag.Ref][]Refusal
	problems map[diag.Ref]diag.List
}

// Standing is how one object stands.
type Standing struct {
	// Proxies that are connected and have the object in their configuration, and
	// those of them that run its revision and refuse nothing of it.
	Proxies, Running int
	// Refusals by proxies of what follows from the object, by node. The slice is shared.
	Refusals []Refusal
	// Problems that the published configuration has with it.
	Problems diag.List
}

// Refusal is one proxy's.
type Refusal struct {
	Node  string `json:"node"`
	Type  string `json:"type"` // as in ProxyStatus
	Words string `json:"words"`
}

// crew is the proxies that should have one view.
type crew struct {
	view    *view
	members []member
}

// member is what one proxy runs, and what it refuses of that.
type member struct {
	revision int64
	refusals map[diag.Ref][]Refusal
}

// runs reports whether it runs an object of a revision.
func (m member) runs(ref diag.Ref, revision int64) bool {
	return m.revision >= revision && len(m.refusals[ref]) == 0
}

// Standings takes a look at all proxies.
func (s *Publisher) Standings() *Standings {
	out := &Standings{concern: map[diag.Ref][]int{}, refusals: map[diag.Ref][]Refusal{}, problems: map[diag.Ref]diag.List{}}
	published, problems := s.newest.known()
	if published != nil {
		out.Revision, out.Objects = published.mesh.Revision, objectsOf(published.mesh)
	}
	for _, p := range problems {
		out.problems[p.Object] = append(out.problems[p.Object], p)
	}
	out.muster(s)
	for i, c := range out.crews {
		for ref := range c.view.origins() {
			out.concern[ref] = append(out.concern[ref], i)
		}
	}
	return out
}

// muster sorts the proxies by the view that they should have.
func (out *Standings) muster(s *Publisher) {
	crews := map[*view]int{}
	s.stances(func(one stance) {
		i, known := crews[one.view]
		if !known {
			i = len(out.crews)
			crews[one.view] = i
			out.crews = append(out.crews, crew{view: one.view})
		}
		out.crews[i].members = append(out.crews[i].members, member{one.revision, one.refusals})
		for ref, refusals := range one.refusals {
			out.refusals[ref] = append(out.refusals[ref], refusals...)
		}
	})
	for _, all := range out.refusals {
		slices.SortFunc(all, func(a, b Refusal) int {
			return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.Type, b.Type), strings.Compare(a.Words, b.Words))
		})
	}
}

// Of is how an object of a revision stands.
func (s *Standings) Of(ref diag.Ref, revision int64) Standing {
	out := Standing{Problems: s.problems[ref], Refusals: s.refusals[ref]}
	for _, i := range s.concern[ref] {
		out.Proxies += len(s.crews[i].members)
		for _, m := range s.crews[i].members {
			if m.runs(ref, revision) {
				out.Running++
			}
		}
	}
	return out
}

// refusalsOf are what the streams of a proxy refuse, by the objects that it came
// from; those of nothing in particular are under the zero Ref.
func (f *fleet) refusalsOf(c *client) map[diag.Ref][]Refusal {
	var out map[diag.Ref][]Refusal
	for _, st := range f.streamsOf(c) {
		for ref, refusals := range st.refusals() {
			if out == nil {
				out = map[diag.Ref][]Refusal{}
			}
			out[ref] = append(out[ref], refusals...)
		}
	}
	return out
}

func (st *Stream) refusals() map[diag.Ref][]Refusal {
	st.mu.Lock()
	defer st.mu.Unlock()
	target, err := st.target()
	if err != nil {
		return nil
	}
	return st.refusalsLocked(target)
}

func (st *Stream) refusalsLocked(target *streamed) map[diag.Ref][]Refusal {
	var out map[diag.Ref][]Refusal
	for _, t := range st.types() {
		for name, refused := range t.refused(st.desired(t, target)) {
			refs := refused.origins
			if len(refs) == 0 {
				refs = t.culprits(name, refused.view, target, st.client.proxy.IP)
			}
			if len(refs) == 0 {
				refs = []diag.Ref{{}}
			}
			for _, ref := range refs {
				if out == nil {
					out = map[diag.Ref][]Refusal{}
				}
				out[ref] = append(out[ref], Refusal{st.client.node.ID, typeNames[t.typeURL], refused.words})
			}
		}
	}
	return out
}

// culprits are the objects that a refused resource came from: of a route table,
// those of the virtual hosts that the proxy has not accepted before, in the view given.
func (t *subscribed) culprits(name string, before *view, target *streamed, ip string) []diag.Ref {
	var refs []diag.Ref
	add := func(ref diag.Ref) {
		if ref != (diag.Ref{}) && !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	switch t.typeURL {
	case ClusterType:
		for _, c := range target.view.config.Clusters {
			if envoy.ClusterName(c.Name) == name {
				for _, ref := range c.Origins {
					add(ref)
				}
			}
		}
	case ListenerType:
		for _, l := range target.view.config.ListenersAt(ip) {
			if envoy.ListenerName(l) == name {
				l.EachOrigin(add)
			}
		}
	case SecretType:
		for _, s := range target.view.config.Secrets {
			if s.Name == name {
				for _, ref := range s.Origins {
					add(ref)
				}
			}
		}
	case RouteType:
		accepted := map[*ir.VirtualHost]bool{}
		if before != nil {
			for _, h := range hostsOf(before, name) {
				accepted[h] = true
			}
		}
		for _, h := range hostsOf(target.view, name) {
			if !accepted[h] {
				h.EachOrigin(add)
			}
		}
	}
	return refs
}

func hostsOf(v *view, table string) []*ir.VirtualHost {
	for _, t := range v.config.RouteTables {
		if t.Name == table {
			return t.VirtualHosts
		}
	}
	return nil
}
