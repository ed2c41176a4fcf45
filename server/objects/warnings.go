package objects

import (
	"net/http"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/wire"
)

// WarnOf sends warnings about written objects: those of each object by itself, and those
// that follow from all other objects on this replica. Objects that the client may not read
// are not named.
func (a *API) WarnOf(w http.ResponseWriter, r *http.Request, own diag.List, changes ...schema.Change) {
	if a.opts.Check != nil {
		own = append(own, beside(a.opts.Check(r.Context(), changes, wire.Query(r).Get("dryRun") != ""), own)...)
	}
	wire.Warn(w, a.opts.Guard.HideNames(r.Context(), own))
}

// Became returns the change of a write whose answer is an object. The object exists; or it
// was marked for deletion, lost its last finalizer, and was removed.
func Became(answer *schema.Object) schema.Change {
	if answer.Meta.DeletionTimestamp != nil && len(answer.Meta.Finalizers) == 0 {
		return schema.Change{Before: answer}
	}
	return schema.Change{After: answer}
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
