package inspect

import (
	"context"
	"net/http"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/wire"
)

// referencesPath lists what an object names and what names it.
const referencesPath = "/apis/" + wire.RegistryVersion + "/references"

var referenceParams = wire.Params("object", "resourceVersion")

// references answers from the objects that the published configuration was compiled
// from. They are as fresh as in problems.
func (h *Handler) references(w http.ResponseWriter, r *http.Request) error {
	q := wire.Query(r)
	if err := wire.CheckParams(q, referenceParams); err != nil {
		return err
	}
	of, err := objectParam(q)
	if err != nil {
		return err
	}
	if len(of) == 0 {
		return wire.BadRequest("object: say which, as KIND/NAMESPACE/NAME")
	}
	if err := h.opts.Guard.Check(r.Context(), inspecting("get", "references", of[0].Namespace)); err != nil {
		return err
	}
	atLeast, err := wire.AtLeastParam(q)
	if err != nil {
		return err
	}
	if err := h.AwaitPublished(r.Context(), atLeast); err != nil {
		return err
	}
	found, revision, err := h.opts.Discovery.References(schema.Key(of[0]))
	if err != nil {
		return notInspected(err)
	}
	h.hideReferences(r.Context(), &found)
	return h.opts.LargeReads.WriteJSON(w, r, "references", func() (any, error) { return referencesAnswer{revision, found}, nil })
}

// hideReferences counts references from and to objects of namespaces whose references the
// caller may not see, instead of showing them.
func (h *Handler) hideReferences(ctx context.Context, found *diag.References) {
	may := h.namespaces(ctx, "get", "references")
	hidden := func(r diag.Reference) bool {
		return !may(r.From.Namespace) || r.To != (diag.Ref{}) && !may(r.To.Namespace)
	}
	all := len(found.RefersTo) + len(found.ReferredBy)
	found.RefersTo = slices.DeleteFunc(slices.Clone(found.RefersTo), hidden)
	found.ReferredBy = slices.DeleteFunc(slices.Clone(found.ReferredBy), hidden)
	found.Omitted += all - len(found.RefersTo) - len(found.ReferredBy)
}

type referencesAnswer struct {
	Revision int64 `json:"revision"` // of the objects
	diag.References
}
