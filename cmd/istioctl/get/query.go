package get

import (
	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/targets"
)

// query is the request of a verb that reads.
type query struct {
	targets.Selection
	namespace string // "" for all
	selected  targets.Selector
	revision  int64 // of objects by name; 0 for now
	chunk     cli.ChunkSize
}

// what returns the selection to list if there are no names.
func (q query) what() client.Selection { return q.selected.Among(q.Kinds, q.namespace) }

func newQuery(s *cli.Session, output string, selector targets.SelectorFlags, allNamespaces bool, args []string) (query, error) {
	if err := printer.Check(output, printer.ReadFormats); err != nil {
		return query{}, err
	}
	sel, err := targets.Parse(args)
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
		return q, cli.Usagef("an object has a name in one namespace only: use -n instead of -A")
	case len(q.Targets) > 0 && selector.Given():
		return q, cli.Usagef("select either by name or by label and field, not both")
	}
	return q, nil
}
