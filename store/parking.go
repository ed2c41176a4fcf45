package store

// parking are the cursors at the end of a log, by what they are after. A change wakes
// those in whose scope it is: to it, thousands of watches of other namespaces are as
// none. It is guarded by the log's mutex.
type parking map[place]map[*cursor]struct{}

// place is a part of what a scope says, "" for all.
type place struct{ kind, namespace string }

func (s Scope) place() place {
	if s.Kind == nil {
		return place{"", s.Namespace}
	}
	return place{s.Kind.Kind, s.Namespace}
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

// wake wakes whom a batch of one revision concerns. They have missed nothing before it.
func (p parking) wake(b Batch) {
	for _, ev := range b.Events {
		key := ev.Object.Key()
		for _, at := range []place{{key.Kind, key.Namespace}, {key.Kind, ""}, {"", key.Namespace}, {"", ""}} {
			p.wakeIn(p[at], b)
		}
	}
}

func (p parking) wakeIn(cursors map[*cursor]struct{}, b Batch) {
	for c := range cursors {
		if b.Revision > c.after && b.concerns(c.scope) {
			c.after = b.Revision - 1
			p.wakeOne(c)
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
