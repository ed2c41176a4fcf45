package stream

import (
	"cmp"
	"slices"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/xds"
)

// due returns the response, without its nonce, that leads from what was sent to a set, or
// nil if there is nothing to send. find returns resources of names that the set may lack.
// The response has what differs and, in the state of the world, everything else that the
// proxy wants.
func (t *subscription) due(to compiled.At, find func(string) *xds.Resource, delta bool) (r *xds.Response, differing []*xds.Resource) {
	if t.pending.nothing() && t.nacks.IsAll(t, to.Set) {
		return nil, nil
	}
	t.nacks.Retarget(t, to, find)
	t.nacks.Revise(find)
	t.addPending(t.nacks.Next())
	differing, removed := t.differing(to.Set, find, delta)
	if len(differing) == 0 && len(removed) == 0 && !t.pending.answer {
		t.rest(to)
		return nil, nil
	}
	r = &xds.Response{Version: to.Set.Version, Content: &xds.Content{TypeURL: t.typeURL, Delta: delta, Resources: differing, Removed: removed}}
	if !delta {
		t.complete(r, to.Set)
	}
	return r, differing
}

// complete completes a response for the state of the world. For wild types it adds
// everything, because the proxy removes what is missing.
func (t *subscription) complete(r *xds.Response, desired *xds.Set) {
	if t.Wild() {
		r.Resources, r.Removed = t.whole(desired), nil
	}
	if !t.all || !t.Wild() || !t.nacks.None() {
		r.Version = xds.VersionOf(nil, r.Resources)
	}
}

// differing returns what the proxy wants and was not sent, or is pending.
func (t *subscription) differing(desired *xds.Set, find func(string) *xds.Resource, delta bool) (changed []*xds.Resource, removed []string) {
	d := desired.Since(t.sent.Set)
	for _, r := range d.Changed {
		if t.nacks.HasPartial(r.Name) {
			continue
		}
		if t.Wants(r.Name) {
			changed = append(changed, cmp.Or(t.nacks.Instead(r), t.nacks.Partial(r)))
		}
	}
	if t.Wild() {
		removed = slices.DeleteFunc(slices.Clone(d.Removed), func(name string) bool { return !t.Wants(name) })
	}
	if t.pending.all {
		changed = append(changed, t.whole(desired)...)
	}
	none := t.eachPending(desired, find, func(r *xds.Resource) {
		if r = t.nacks.Instead(r); r != nil {
			changed = append(changed, r)
		}
	})
	if t.Wild() || delta && t.typeURL == xds.SecretType {
		// An Envoy that is not told that a secret does not exist waits for it.
		removed = append(removed, none...)
	}
	return xds.Unique(changed), xds.UniqueNames(removed)
}

// eachPending visits the pending resources by name, and returns the names that have none.
// find makes a resource for a name that does not exist. eachPending visits as many of these
// as a response has room for; the others wait for the next one.
func (t *subscription) eachPending(desired *xds.Set, find func(string) *xds.Resource, visit func(*xds.Resource)) (none []string) {
	o := &t.pending
	waiting := o.later
	o.later, o.made = nil, 0
	take := func(name string) {
		r := desired.Named(name)
		switch {
		case !t.Wants(name):
			return
		case r == nil && o.made == maxMade:
			o.later = append(o.later, name)
			return
		case r == nil:
			if r = find(name); r == nil {
				none = append(none, name)
				return
			}
			o.made++
		}
		visit(r)
	}
	for name := range o.names {
		take(name)
	}
	for o.made < maxMade && len(waiting) > 0 {
		take(waiting[0])
		waiting = waiting[1:]
	}
	if len(o.later) > 0 {
		waiting = append(o.later, waiting...)
	}
	o.later = waiting
	return none
}

// whole returns everything of a set that the proxy wants and does not nack.
func (t *subscription) whole(s *xds.Set) []*xds.Resource {
	if t.all && t.nacks.None() {
		return s.Sorted
	}
	out := make([]*xds.Resource, 0, len(s.Sorted))
	for _, r := range s.Sorted {
		if r = t.nacks.Instead(r); r != nil && t.Wants(r.Name) {
			out = append(out, r)
		}
	}
	return out
}
