package diag

import "unique"

// Interned is a List that keeps each distinct problem once in the process. Parts of
// configurations keep their problems in this form: thousands of virtual hosts may repeat
// the problem of one route. It is immutable and safe for concurrent use.
type Interned []unique.Handle[Problem]

// Intern returns the problems of a list, in its order and each once, within the bounds
// of a Collector. Problems without a code get the one given.
func Intern(list List, code Code) Interned {
	if len(list) == 0 {
		return nil
	}
	var bounded Collector
	seen := make(map[Problem]bool, min(len(list), MaxPerObject))
	for _, p := range list {
		if p.Code == "" {
			p.Code = code
		}
		if !seen[p] {
			seen[p] = true
			bounded.Add(p)
		}
	}
	kept := bounded.List()
	out := make(Interned, len(kept))
	for i, p := range kept {
		out[i] = unique.Make(p)
	}
	return out
}

// AddTo adds the problems to a Collector. Problems without a code get the one given.
func (l Interned) AddTo(c *Collector, code Code) {
	for _, handle := range l {
		p := handle.Value()
		if p.Code == "" {
			p.Code = code
		}
		c.Add(p)
	}
}

// List returns the problems. The list is the caller's.
func (l Interned) List() List {
	out := make(List, len(l))
	for i, handle := range l {
		out[i] = handle.Value()
	}
	return out
}
