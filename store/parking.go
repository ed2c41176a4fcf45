package store

import "github.com/pilot-api/pilot-api/schema"

// parking holds the cursors at the end of a log, by the scope of their watches. A
// change wakes only the cursors that have it in scope, so it costs nothing for
// thousands of watches of other namespaces. The log's mutex guards it.
type parking map[place]map[*cursor]struct{}

// place is the part of a scope that keys are looked up by; "" means all.
type place struct{ kind, namespace, name string }

func (s Scope) place() place {
	switch {
	case s.Kind == nil:
		return place{namespace: s.Namespace}
	case s.Namespace == "":
		return place{kind: s.Kind.Kind}
	}
	return place{s.Kind.Kind, s.Namespace, s.Name}
}

// placesOf returns the places of all scopes that contain an object.
func placesOf(k schema.Key) [5]place {
	return [...]place{{k.Kind, k.Namespace, k.Name}, {k.Kind, k.Namespace, ""}, {kind: k.Kind}, {namespace: k.Namespace}, {}}
}

func (p *parking) park(c *cursor) {
	if *p == nil {
		*p = parking{}
	}
	at := c.scope.place()
	if (*p)[at] == nil {
		(*p)[at] = map[*cursor]struct{}{}
	}
	(*p)[at][c] = struct{}{}
	c.parked = true
}

func (p parking) unpark(c *cursor) {
	at := c.scope.place()
	if delete(p[at], c); len(p[at]) == 0 {
		delete(p, at)
	}
	c.parked = false
}

// wake wakes the cursors that a batch of one revision concerns. They have missed
// nothing before it.
func (p parking) wake(b Batch) {
	for _, ev := range b.Events {
		key := ev.Object.Key()
		for _, at := range placesOf(key) {
			for c := range p[at] {
				if b.Revision > c.after && c.scope.Contains(key) {
					c.after = b.Revision - 1
					p.wakeOne(c)
				}
			}
		}
	}
}

func (p parking) wakeAll() {
	for _, cursors := range p {
		for c := range cursors {
			p.wakeOne(c)
		}
	}
}

func (p parking) wakeOne(c *cursor) {
	p.unpark(c)
	c.sign()
}
