package discovery

import (
	"cmp"
	"slices"
	"strings"
)

// Response is what a stream tells its proxy about one type. It is immutable.
type Response struct {
	version string
	nonce   string
	*content
}

// Nonce is by which the client answers it.
func (r *Response) Nonce() string { return r.nonce }

// due is the response that leads to a set from what was sent, but for the nonce;
// nil where there is nothing to say. find is for names that the set need not have.
// What differs is in it, and in a full one what else the proxy wants.
func (t *subscribed) due(to at, find func(string) *resource, delta bool) (r *Response, differing []*resource) {
	if whole := t.refusals.whole; whole != nil && t.owed.nothing() && t.alike(whole, to.set) {
		return nil, nil
	}
	t.aim(to, find)
	t.refusals.revise(find)
	t.owe(t.refusals.next())
	differing, removed := t.differing(to.set, find)
	if len(differing) == 0 && len(removed) == 0 && !t.owed.answer {
		t.rest(to)
		return nil, nil
	}
	r = &Response{version: to.set.version, content: &content{TypeURL: t.typeURL, delta: delta, resources: differing, removed: removed}}
	if !delta {
		t.spellOut(r, to.set)
	}
	return r, differing
}

// spellOut makes it a response of the state of the world: of the wild types it says
// all, so that what is not in it is removed.
func (t *subscribed) spellOut(r *Response, desired *set) {
	if t.wild() {
		r.resources, r.removed = t.whole(desired), nil
	}
	if !t.all || !t.wild() || !t.refusals.none() {
		r.version = versionOf(nil, r.resources)
	}
}

// differing is what the proxy wants and was not sent, or is owed.
func (t *subscribed) differing(desired *set, find func(string) *resource) (changed []*resource, removed []string) {
	d := desired.since(t.sent.set)
	for _, r := range d.changed {
		if a := t.refusals.tables[r.name]; a != nil && a.isTaken() {
			continue
		}
		if t.wants(r.name) {
			changed = append(changed, cmp.Or(t.refusals.instead(r), t.refusals.amended(r)))
		}
	}
	if t.wild() {
		removed = slices.DeleteFunc(slices.Clone(d.removed), func(name string) bool { return !t.wants(name) })
	}
	if t.owed.all {
		changed = append(changed, t.whole(desired)...)
	}
	none := t.eachOwed(desired, find, func(r *resource) {
		if r = t.refusals.instead(r); r != nil {
			changed = append(changed, r)
		}
	})
	if t.wild() {
		removed = append(removed, none...)
	}
	return unique(changed), uniqueNames(removed)
}

// eachOwed visits the resources that the proxy is owed by name, and returns the names of
// which there is none. find makes some for names that nobody has, of which it visits as
// many as a response has room for; the others wait for the next one.
func (t *subscribed) eachOwed(desired *set, find func(string) *resource, visit func(*resource)) (none []string) {
	o := &t.owed
	waiting := o.later
	o.later, o.made = nil, 0
	take := func(name string) {
		r := desired.named(name)
		switch {
		case !t.wants(name):
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

// whole is all of a set that the proxy wants, as far as it takes it.
func (t *subscribed) whole(s *set) []*resource {
	if t.all && t.refusals.none() {
		return s.sorted
	}
	out := make([]*resource, 0, len(s.sorted))
	for _, r := range s.sorted {
		if r = t.refusals.instead(r); r != nil && t.wants(r.name) {
			out = append(out, r)
		}
	}
	return out
}

// unique sorts by name.
func unique(all []*resource) []*resource {
	slices.SortFunc(all, func(a, b *resource) int { return strings.Compare(a.name, b.name) })
	return slices.CompactFunc(all, func(a, b *resource) bool { return a.name == b.name })
}

func uniqueNames(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}
