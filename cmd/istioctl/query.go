package main

import "github.com/pilot-api/pilot-api/client"

// query is the request of a verb that reads.
type query struct {
	selection
	namespace string // "" for all
	selected  selector
	revision  int64 // of objects by name; 0 for now
	chunk     chunkSize
}

// what returns the selection to list if there are no names.
func (q query) what() client.Selection { return q.selected.among(q.kinds, q.namespace) }

func newQuery(s *session, output string, selector selectorFlags, allNamespaces bool, args []string) (query, error) {
	if err := checkOutput(output, readFormats); err != nil {
		return query{}, err
	}
	sel, err := parseSelection(args)
	if err != nil {
		return query{}, err
	}
	q := query{selection: sel, namespace: s.namespace}
	if q.selected, err = selector.of(q.kinds); err != nil {
		return q, err
	}
	if allNamespaces {
		q.namespace = ""
	}
	switch {
	case len(q.targets) > 0 && allNamespaces:
		return q, usagef("an object has a name in one namespace only: use -n instead of -A")
	case len(q.targets) > 0 && selector.given():
		return q, usagef("select either by name or by label and field, not both")
	}
	return q, nil
}
