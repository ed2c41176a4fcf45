package mesh

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// claim is the declaration of a host by an entry. Callers follow the first claim
// that is exported to them.
type claim struct {
	*entry
	viewers
	lostTo  *claim // an earlier claim that has some of its callers, or nil
	void    bool   // whether no callers are left
	service *Service
}

// claim records the hosts of an entry, each once.
func (r *registry) claim(e *entry) {
	seen := map[string]bool{}
	for _, host := range e.spec.GetHosts() {
		var c *claim
		if !seen[host] {
			seen[host] = true
			c = &claim{entry: e, viewers: viewersOf(r.settings.ExportTo(e.spec.GetExportTo()), e.Meta.Namespace)}
			r.claims[host] = insert(r.claims[host], c, r.order(host))
		}
		e.claims = append(e.claims, c)
	}
}

func (r *registry) unclaim(e *entry, t *touched) {
	for i, c := range e.claims {
		if c == nil {
			continue
		}
		host := e.spec.GetHosts()[i]
		t.hosts[host] = true
		if r.claims[host] = remove(r.claims[host], c, r.order(host)); len(r.claims[host]) == 0 {
			delete(r.claims, host)
		}
	}
}

// order returns the order of the claims to a host. If the host name contains a
// namespace of the mesh, claims of that namespace come first. Then the older object
// comes first.
func (r *registry) order(host string) func(a, b *claim) int {
	home := NamespaceOf(host, r.settings.Domain)
	return func(a, b *claim) int {
		return cmp.Or(cmp.Compare(away(a, home), away(b, home)), compareAge(a.Object, b.Object))
	}
}

// insert inserts an item into a sorted list, in place.
func insert[T any](list []*T, item *T, order func(a, b *T) int) []*T {
	at, _ := slices.BinarySearchFunc(list, item, order)
	return slices.Insert(list, at, item)
}

// remove removes an item from a sorted list, in place.
func remove[T any](list []*T, item *T, order func(a, b *T) int) []*T {
	at, found := slices.BinarySearchFunc(list, item, order)
	if !found {
		return list
	}
	return slices.Delete(list, at, at+1)
}

// settle decides which claims to the touched hosts are void. It touches all entries
// that have a claim.
func (r *registry) settle(t *touched) {
	for host := range t.hosts {
		contend(r.claims[host])
		for _, c := range r.claims[host] {
			c.service = nil
			t.entries[c.entry] = true
		}
	}
}

func away(c *claim, home string) int {
	if c.Meta.Namespace == home {
		return 0
	}
	return 1
}

// contend assigns each caller to the first of the sorted claims. A claim that is
// exported to nobody takes no part: it still provides its workloads.
func contend(claims []*claim) {
	var some, all *claim // the first claim with any callers, and the first for all callers
	taken := map[string]*claim{}
	for _, c := range claims {
		c.lostTo, c.void = nil, false
		switch {
		case c.none():
			continue
		case c.viewers.all:
			c.lostTo, c.void = cmp.Or(all, some), all != nil
		default:
			c.lose(taken, all)
		}
		some = cmp.Or(some, c)
		if c.viewers.all {
			all = cmp.Or(all, c)
		}
	}
}

// lose takes the remaining namespaces and records which claim has the others.
func (c *claim) lose(taken map[string]*claim, all *claim) {
	c.void = true
	for _, namespace := range slices.Sorted(maps.Keys(c.in)) {
		first := cmp.Or(taken[namespace], all)
		if first == nil {
			taken[namespace], c.void = c, false
		}
		c.lostTo = cmp.Or(c.lostTo, first)
	}
}

// link connects the services of each touched host with each other.
func (r *registry) link(t *touched) map[string][]*Service {
	out := map[string][]*Service{}
	for host := range t.hosts {
		out[host] = nil
		for _, c := range r.claims[host] {
			if c.service == nil {
				continue
			}
			if !c.viewers.all {
				c.service.apart = fmt.Sprintf("@%s.%s", c.Meta.Name, c.Meta.Namespace)
			}
			out[host] = append(out[host], c.service)
		}
		for i, svc := range out[host] {
			svc.before = out[host][:i]
		}
	}
	return out
}

// conflict returns the problem of a claim that lost callers to another one.
func (r *registry) conflict(c *claim, i int, host string) diag.Problem {
	owner, why := c.lostTo.Key(), "which is older, or comes first by namespace and name"
	if home := NamespaceOf(host, r.settings.Domain); owner.Namespace == home && c.Meta.Namespace != home {
		why = "which is of the host's own namespace"
	}
	effect := "this declaration has no effect"
	if !c.void {
		effect = "callers that see both follow that one"
	}
	return r.hostProblem(c.Object, i, host, fmt.Sprintf("the host is declared by %s, %s; %s", owner, why, effect))
}

func (r *registry) repeated(o *schema.Object, i int, host string) diag.Problem {
	return r.hostProblem(o, i, host, fmt.Sprintf("the host is declared by %s already; this declaration has no effect", o.Key()))
}

func (r *registry) hostProblem(o *schema.Object, i int, host, message string) diag.Problem {
	return diag.Problem{
		Severity: diag.Warning, Reason: diag.Conflict, Code: diag.HostClaimed, Object: o.Key().Ref(),
		Field: fmt.Sprintf("spec.hosts[%d]", i), Value: fmt.Sprintf("%q", host), Message: message,
	}
}
