package main

import "github.com/pilot-api/pilot-api/client"

// query is the request of a verb that reads.
type query struct {
	Selection
	namespace string // "" for all
	selected  Selector
	revision  int64 // of objects by name; 0 for now
	chunk     ChunkSize
}

// what returns the selection to list if there are no names.
func (q query) what() client.Selection { return q.selected.Among(q.Kinds, q.namespace) }

func newQuery(s *Session, output string, selector SelectorFlags, allNamespaces bool, args []string) (query, error) {
	if err := CheckOutput(output, ReadFormats); err != nil {
		return query{}, err
	}
	sel, err := Parse(args)
	if err != nil {
		return query{}, err
	}
	q := query{Selection: sel, namespace: s.Namespace}
	if q.selected, err = selector.Of(q.Kinds); err != nil {
		return q, err
	}
	if allNamespaces {
		q.namespace = ""
	}
	switch {
	case len(q.Targets) > 0 && allNamespaces:
		return q, Usagef("an object has a name in one namespace only: use -n instead of -A")
	case len(q.Targets) > 0 && selector.Given():
		return q, Usagef("select either by name or by label and field, not both")
	}
	return q, nil
}
