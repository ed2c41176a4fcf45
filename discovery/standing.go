package discovery

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// Standings are how all objects stand with the proxies that are connected to this
// replica, at one moment (docs/decisions/019-feedback.md).
type Standings struct {
	// Revision of the published configuration, 0 before there is one.
	Revision int64
	// Objects that it was compiled from, in no order. The slice is shared.
	Objects []*schema.Object

	mesh     *mesh.Snapshot
	crews    []crew
	places   map[course]int     // of crews
	concern  map[diag.Ref][]int // crews, by the objects in their configuration
	refusals map[diag.Ref][]Refusal
	problems diag.List // in the order of compareProblems
}

// Standing is how one object stands.
type Standing struct {
	// Proxies that are connected and have the object in their configuration, or should
	// have, and those of them that run its revision and refuse nothing of it.
	Proxies, Running int
	// Refusals by proxies of what follows from the object, by node. The slice is shared.
	Refusals []Refusal
	// Problems that the published configuration has with it. The slice is shared.
	Problems diag.List
}

// Refusal is one proxy's.
type Refusal struct {
	Node  string `json:"node"`
	Type  string `json:"type"` // as in ProxyStatus
	Words string `json:"words"`
	// Withheld: the proxy does not refuse it, it is not sent it.
	Withheld bool `json:"withheld,omitempty"`
}

// String is the refusal in one line.
func (r Refusal) String() string {
	verb := "refuses its"
	if r.Withheld {
		verb = "is not sent its"
	}
	return fmt.Sprintf("proxy %s %s %s: %s", r.Node, verb, r.Type, r.oneLine())
}

func (r Refusal) oneLine() string { return strings.Join(strings.Fields(r.Words), " ") }

// course is from the view that a proxy has, nil when that is the one that it should have
// or none, to that one.
type course struct{ from, to *compiled.View }

// eachConcern visits the objects in either: what is no longer in the view that a proxy
// should have, it may still go by.
func (c course) eachConcern(visit func(diag.Ref)) {
	to := c.to.Origins()
	for ref := range to {
		visit(ref)
	}
	if c.from == nil {
		return
	}
	for ref := range c.from.Origins() {
		if _, both := to[ref]; !both {
			visit(ref)
		}
	}
}

// crew is the proxies of one course: what each of them runs, in order, and by object
// what those run that refuse something of it.
type crew struct {
	course
	runs    []int64
	refuses map[diag.Ref][]int64 // nil for most
}

// join takes in what one proxy runs, and of what it refuses something.
func (c *crew) join(revision int64, refuses []diag.Ref) {
	c.runs = append(c.runs, revision)
	for _, ref := range refuses {
		if c.refuses == nil {
			c.refuses = map[diag.Ref][]int64{}
		}
		c.refuses[ref] = append(c.refuses[ref], revision)
	}
}

// running are those that run an object of a revision or a later one, and all of it.
func (c *crew) running(ref diag.Ref, revision int64) int {
	behind, _ := slices.BinarySearch(c.runs, revision)
	running := len(c.runs) - behind
	for _, runs := range c.refuses[ref] {
		if runs >= revision {
			running--
		}
	}
	return running
}

// Standings takes a look at all proxies. What is as it was in an earlier look, nil for
// none, is shared with that.
func (s *Publisher) Standings(before *Standings) *Standings {
	if before == nil {
		before = &Standings{}
	}
	out := &Standings{refusals: map[diag.Ref][]Refusal{}}
	var published *compiled.Generation
	published, out.problems = s.newest.known()
	out.configured(published, before)
	out.muster(s, before)
	return out
}

// configured notes what is published, nil for nothing.
func (out *Standings) configured(published *compiled.Generation, before *Standings) {
	if published == nil {
		return
	}
	out.mesh, out.Revision, out.Objects = published.Mesh, published.Mesh.Revision, before.Objects
	if before.mesh != out.mesh {
		out.Objects = objectsOf(out.mesh)
	}
}

// muster sorts the proxies by the views that they have and should have.
func (out *Standings) muster(s *Publisher, before *Standings) {
	out.crews, out.places = before.empty()
	var refuses []diag.Ref // the one that is visited next
	s.stances(func(one stance) {
		i := out.crewOf(one)
		out.crews[i].join(one.revision, refuses)
		refuses = refuses[:0]
	}, regard{refusal: func(ref diag.Ref, r Refusal) {
		out.refusals[ref] = append(out.refusals[ref], r)
		if !slices.Contains(refuses, ref) {
			refuses = append(refuses, ref)
		}
	}})
	out.concern = out.dismiss(before.concern, len(before.crews))
	for _, c := range out.crews {
		slices.Sort(c.runs)
	}
	for _, all := range out.refusals {
		slices.SortFunc(all, func(a, b Refusal) int {
			return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.Type, b.Type), strings.Compare(a.Words, b.Words))
		})
	}
}

// crewOf is the place of a proxy's crew, a new one if need be.
func (out *Standings) crewOf(one stance) int {
	c := course{to: one.view}
	if one.at != one.view {
		c.from = one.at
	}
	i, known := out.places[c]
	if !known {
		i = len(out.crews)
		out.places[c] = i
		out.crews = append(out.crews, crew{course: c})
	}
	return i
}

// empty are the crews with nobody in them yet, and where they are.
func (s *Standings) empty() ([]crew, map[course]int) {
	crews, places := make([]crew, len(s.crews)), make(map[course]int, len(s.crews))
	for i, c := range s.crews {
		crews[i], places[c.course] = crew{course: c.course, runs: make([]int64, 0, len(c.runs))}, i
	}
	return crews, places
}

// dismiss lets the crews go that nobody is in any more, and returns whom objects concern
// then. So far that is known of as many crews; of the rest it is found out.
func (out *Standings) dismiss(concern map[diag.Ref][]int, known int) map[diag.Ref][]int {
	gone := func(c crew) bool { return len(c.runs) == 0 }
	if len(out.crews) == known && !slices.ContainsFunc(out.crews, gone) {
		return concern
	}
	old := out.crews
	places := make([]int, len(old))
	out.crews = nil
	for i, c := range old {
		if places[i] = len(out.crews); gone(c) {
			delete(out.places, c.course)
			continue
		}
		out.places[c.course] = len(out.crews)
		out.crews = append(out.crews, c)
	}
	next := make(map[diag.Ref][]int, len(concern))
	for ref, crews := range concern {
		stay := make([]int, 0, len(crews))
		for _, i := range crews {
			if !gone(old[i]) {
				stay = append(stay, places[i])
			}
		}
		if len(stay) > 0 {
			next[ref] = stay
		}
	}
	for i, c := range old[known:] {
		c.eachConcern(func(ref diag.Ref) { next[ref] = append(next[ref], places[known+i]) })
	}
	return next
}

// Of is how an object of a revision stands.
func (s *Standings) Of(ref diag.Ref, revision int64) Standing {
	out := Standing{Problems: problemsOf(s.problems, ref), Refusals: s.refusals[ref]}
	for _, i := range s.concern[ref] {
		out.Proxies += len(s.crews[i].runs)
		out.Running += s.crews[i].running(ref, revision)
	}
	return out
}

// eachRefusalOf visits what the streams of a proxy refuse, by the objects that it came
// from; that of nothing in particular comes with the zero Ref.
func (f *fleet) eachRefusalOf(c *client, visit func(diag.Ref, Refusal)) {
	for _, st := range f.streamsOf(c) {
		st.eachRefusal(visit)
	}
}

func (st *Stream) eachRefusal(visit func(diag.Ref, Refusal)) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if target, err := st.target(); err == nil {
		st.eachRefusalLocked(target, visit)
	}
}

func (st *Stream) eachRefusalLocked(target *compiled.Streamed, visit func(diag.Ref, Refusal)) {
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
				visit(ref, Refusal{Node: st.client.node.ID, Type: xds.NameOf(t.typeURL), Words: refused.words})
			}
		}
	}
	st.client.eachWithheld(st.withheld(target), target.View.Config, visit)
}

// culprits are the objects that a refused resource came from: of a route table,
// those of the virtual hosts that the proxy has not accepted before, in the view given;
// or of all, if there is no other.
func (t *subscribed) culprits(name string, before *compiled.View, target *compiled.Streamed, ip string) []diag.Ref {
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
