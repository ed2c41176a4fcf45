package actions

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/pilot-api/pilot-api/server/intake"
	"github.com/pilot-api/pilot-api/server/objects"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// rollbacksPath accepts rollbacks.
const rollbacksPath = "/apis/" + wire.RegistryVersion + "/rollbacks"

// rollbackWeight is the most memory that a rollback takes: a page of changes and the
// operations of a transaction, each as stored bytes, as objects and in the answer.
const rollbackWeight = 3 * (store.MaxChangesPage + maxTransaction)

// rollback is a Rollback of the API.
type rollback = action[rollbackSpec]

// rollbackSpec names what to restore to its state at a revision.
type rollbackSpec struct {
	Revision  writtenRevision `json:"revision"`
	Kind      *string         `json:"kind,omitempty"`
	Namespace *string         `json:"namespace"`
	Name      *string         `json:"name,omitempty"`
	// Steps asks for one step, the first or the one that Continue names, instead of a
	// whole rollback in one transaction.
	Steps    bool   `json:"steps,omitempty"`
	Continue string `json:"continue,omitempty"`
}

// writtenRevision is a revision in a body: a number, or a string like the
// resourceVersion in objects and histories.
type writtenRevision int64

// UnmarshalJSON implements json.Unmarshaler.
func (n *writtenRevision) UnmarshalJSON(text []byte) error {
	revision, err := strconv.ParseInt(strings.Trim(string(text), `"`), 10, 64)
	if err != nil {
		return fmt.Errorf("spec.revision: must be a resourceVersion, found %s", text)
	}
	*n = writtenRevision(revision)
	return nil
}

// refuseNull refuses fields of a spec that are null: to a program it may mean a variable
// that is not set, and without the field the request would be for more objects.
func refuseNull(text []byte, names ...string) error {
	var given struct {
		Spec map[string]json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(text, &given); err != nil {
		return wire.BadRequest("body: %v", err)
	}
	for _, name := range names {
		if value, there := given.Spec[name]; there && string(value) == "null" {
			return wire.BadRequest("spec.%s: must not be null; leave it out to mean all", name)
		}
	}
	return nil
}

// rollback answers POST. It undoes the changes of an object or a namespace since a
// revision.
func (h *Handler) rollback(w http.ResponseWriter, r *http.Request) error {
	writes, err := h.writesOf(r)
	if err != nil {
		return err
	}
	body, _, err := intake.ReadBody(r, wire.ObjectTypes...)
	if err != nil {
		return err
	}
	var asked rollback
	text, err := intake.ReadYAMLStrictly(body, &asked)
	if err != nil {
		return wire.BadRequest("body: must be a %s, whose spec has revision, namespace and perhaps kind, name, steps and continue: %v", kindRollback, err)
	}
	if err := asked.check(kindRollback); err != nil {
		return err
	}
	if err := refuseNull(text, "kind", "namespace", "name"); err != nil {
		return err
	}
	spec := asked.Spec
	if spec.Revision < 1 || spec.Namespace == nil {
		return wire.BadRequest("spec: revision must be a resourceVersion, and namespace given")
	}
	scope, err := objects.ScopeOf(spec.Kind, spec.Namespace, spec.Name)
	if err == nil {
		err = h.opts.Guard.CheckHistory(r.Context(), scope.Kind, scope.Namespace)
	}
	switch {
	case err != nil:
		return err
	case spec.Steps:
		return h.rollBackStep(w, r, writes, scope, &asked)
	case spec.Continue != "":
		return wire.BadRequest("spec.continue: is for steps")
	}
	return h.rollBackAtOnce(w, r, writes, scope, &asked)
}

// rollBackAtOnce rolls back in one transaction. It fails and changes nothing if
// somebody changes one of the objects meanwhile.
func (h *Handler) rollBackAtOnce(w http.ResponseWriter, r *http.Request, writes store.Interface, scope store.Scope, asked *rollback) error {
	p, err := h.survey(r.Context(), scope, store.ChangesOptions{Since: int64(asked.Spec.Revision)}, noBound)
	switch {
	case err != nil:
		return err
	case len(p.lost) > 0:
		_, _, err := p.lost[0].Undo()
		return err
	case p.ops == nil && p.count > 0:
		return &store.Error{Kind: store.ErrTooLarge, Detail: fmt.Sprintf(
			"the rollback changes %d objects of %d bytes, one transaction may change %d objects of %d bytes: roll back in steps, or one kind after the other",
			p.count, p.bytes, h.opts.MaxTransaction, maxTransaction)}
	}
	return h.transact(w, r, writes, asked.actionHead, stepsOf(p.ops))
}

// surveyed is the work of a rollback.
type surveyed struct {
	count, bytes int
	// ops is nil if the operations do not fit into one transaction.
	ops  []store.Op
	lost []store.Difference
	// rest is where an incomplete survey goes on. It has no key if the survey is
	// complete.
	rest store.ChangesOptions
}

// noBound is the bound of a complete survey.
const noBound = -1

// survey compares a scope with a revision, up to about bound objects. It keeps the
// operations only if one transaction can hold them.
func (h *Handler) survey(ctx context.Context, scope store.Scope, opts store.ChangesOptions, bound int) (*surveyed, error) {
	p, compared := &surveyed{ops: []store.Op{}}, 0
	var err error
	if p.lost, err = h.objects.LostSince(ctx, scope, opts.Since); err != nil {
		return nil, err
	}
	opts.Limit = comparedAtOnce
	for {
		page, more, err := h.opts.Store.ChangesPage(ctx, scope, opts)
		if err != nil {
			return nil, err
		}
		compared += len(page)
		if more {
			opts.After = page[len(page)-1].Key
		}
		for _, d := range objects.OfScope(scope, page) {
			if err := h.note(p, d); err != nil {
				return nil, err
			}
		}
		if !more {
			sortOps(p.ops)
			return p, nil
		}
		if bound != noBound && compared >= bound {
			p.rest, p.ops = opts, nil
			return p, nil
		}
	}
}

// note counts a difference that the rollback must undo.
func (h *Handler) note(p *surveyed, d store.Difference) error {
	op, ok, err := d.Undo()
	if err != nil || !ok {
		return err
	}
	p.count++
	p.bytes += sizeOf(op)
	if p.count > h.opts.MaxTransaction || p.bytes > maxTransaction {
		p.ops = nil
	}
	if p.ops != nil {
		p.ops = append(p.ops, op)
	}
	return nil
}

// sizeOf returns the length of an operation's object as JSON, in bytes.
func sizeOf(op store.Op) int {
	if op.Object == nil {
		return 0
	}
	return len(op.Object.JSON())
}

// sortOps sorts operations in the order of Historian.Changes.
func sortOps(ops []store.Op) {
	slices.SortFunc(ops, func(a, b store.Op) int {
		x, y := a.Target(), b.Target()
		return cmp.Or(strings.Compare(x.Kind, y.Kind), strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Name, y.Name))
	})
}
