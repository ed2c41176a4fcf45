package authz

import (
	"context"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// HideNames returns problems without the names of objects that the identity of ctx may not
// read. It may read the names of objects that it may get, and of those whose problems it may
// list. Problems that name others have a general message instead. The argument is not
// changed.
func (g Guard) HideNames(ctx context.Context, problems diag.List) diag.List {
	lists := Attributes{Verb: "list", Group: registryAPI, Resource: "problems"}
	if len(problems) == 0 || g.Allows(ctx, lists) {
		return problems
	}
	known := map[diag.Ref]bool{}
	hidden := func(ref diag.Ref) bool {
		is, ok := known[ref]
		if kind, exists := schema.KindByName(ref.Kind); !ok && exists {
			lists.Namespace = ref.Namespace
			is = !g.Allows(ctx, lists) && !g.Allows(ctx, On("get", schema.Key{Kind: kind.Kind, Namespace: ref.Namespace, Name: ref.Name}))
			known[ref] = is
		}
		return is
	}
	out := slices.Clone(problems)
	for i, p := range out {
		names := p.Names()
		if at := slices.IndexFunc(names, hidden); at >= 0 {
			out[i] = p.General(unreadable(names[at].Namespace == p.Object.Namespace))
		}
	}
	return out
}

func unreadable(ofSameNamespace bool) string {
	if ofSameNamespace {
		return "an object that you may not read"
	}
	return "an object of another namespace that you may not read"
}
