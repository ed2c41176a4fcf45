package server

import (
	"context"
	"net/http"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
)

// warnOf sends warnings about written objects: those of each object by itself, and
// those that this replica knows from all other objects.
func (a *api) warnOf(w http.ResponseWriter, r *http.Request, own diag.List, changes ...schema.Change) {
	warn(w, append(own, beside(a.amongOthers(r.Context(), discovery.Written{
		Changes: changes, DryRun: queryOf(r).Get("dryRun") != "",
	}), own)...))
}

// became returns the change of a write that is answered with an object. The object
// exists, or it was marked for deletion, has lost its last finalizer and is gone.
func became(answer *schema.Object) schema.Change {
	if answer.Meta.DeletionTimestamp != nil && len(answer.Meta.Finalizers) == 0 {
		return schema.Change{Before: answer}
	}
	return schema.Change{After: answer}
}

func (a *api) amongOthers(ctx context.Context, w discovery.Written) diag.List {
	if a.opts.Check == nil {
		return nil
	}
	found, _ := a.opts.Check(ctx, w)
	return found
}

// beside returns the problems of list that are not in own.
func beside(list, own diag.List) diag.List {
	known := map[diag.Problem]bool{}
	for _, p := range own {
		known[unnamed(p)] = true
	}
	var out diag.List
	for _, p := range list {
		if !known[unnamed(p)] {
			out = append(out, p)
		}
	}
	return out
}

// unnamed returns a problem without the fields that change when the object gets its
// name and is no longer text.
func unnamed(p diag.Problem) diag.Problem {
	p.Object.Name, p.Position = "", nil
	return p
}
