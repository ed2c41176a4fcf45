package objects

import (
	"context"
	"errors"
	"net/http"
	"slices"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/intake"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/managedfields"
)

// applyTypes are the media types of a server-side apply, whose body is the part of
// an object that the caller wants.
var applyTypes = []string{string(types.ApplyYAMLPatchType), "application/apply-patch+json"}

// Application is one server-side apply.
type Application struct {
	Part    *schema.Part
	manager string
	force   bool
	// past is that of an object that has no managedFields yet.
	past managedfields.Past
	// Results of the last attempt.
	created  bool
	Warnings diag.List
}

// apply answers PATCH with a server-side apply. It creates the object if there is
// none.
func (k *resource) apply(w http.ResponseWriter, r *http.Request, f wire.Format, writes store.Interface, body []byte) error {
	force, err := wire.BoolParam(wire.Query(r), "force")
	if err != nil {
		return err
	}
	a, err := k.Application(r.Context(), body, k.Target(r), wire.Query(r).Get("fieldManager"), force)
	if err != nil {
		return err
	}
	m, err := ifMatch(r)
	if err != nil {
		return err
	}
	stored, err := m.operate(r.Context(), writes, store.Op{Verb: store.OpApply, Key: k.Target(r), Change: k.bodies.Counted(a.Change)})
	if err != nil {
		return err
	}
	k.WarnOf(w, r, a.Warnings, Became(stored))
	code := http.StatusOK
	if a.created {
		code = http.StatusCreated
		w.Header().Set("Location", k.Path(stored))
	}
	return k.writeObject(w, r, code, f, stored)
}

// Application decodes text as an apply to target. If target has no name, its
// namespace is only the default for a text without one.
func (a *API) Application(ctx context.Context, text []byte, target schema.Key, manager string, force bool) (*Application, error) {
	if err := checkManager(manager, target); err != nil {
		return nil, err
	}
	part, problems := schema.DecodePart(text, target)
	if target.Name == "" {
		target.Namespace = ""
	}
	if part == nil {
		return nil, intake.DisagreementOr(wire.Refused(problems), target, problems)
	}
	if err := intake.Agree(target, part.Key().Ref()); err != nil {
		return nil, err
	}
	past, err := a.past(ctx, part.Key())
	return &Application{Part: part, manager: manager, force: force, past: past}, err
}

// checkManager checks the fieldManager, which an apply requires.
func checkManager(manager string, target schema.Key) error {
	const param = "fieldManager"
	var errs field.ErrorList
	if manager == "" {
		errs = field.ErrorList{field.Required(field.NewPath(param), "is required for an apply")}
	} else {
		errs = metav1validation.ValidateFieldManager(manager, field.NewPath(param))
	}
	var problems diag.List
	for _, e := range errs {
		problems = append(problems, diag.Problem{Severity: diag.Error, Reason: diag.FieldInvalid, Field: param, Message: e.ErrorBody()})
	}
	if len(problems) == 0 {
		return nil
	}
	return &store.Error{Kind: store.ErrInvalid, Key: target, Problems: problems}
}

// past returns the past of an object that has no managedFields yet. It reads the
// history as a large answer is read, because its length is not known before.
func (a *API) past(ctx context.Context, key schema.Key) (past managedfields.Past, err error) {
	current, err := a.opts.Reads.Get(ctx, key, store.ReadOptions{})
	if errors.Is(err, store.ErrNotFound) || err == nil && len(current.Meta.ManagedFields) > 0 {
		return past, nil
	}
	if err != nil {
		return past, err
	}
	done, err := a.largeReads.Read(ctx, historyOf(key), func(ctx context.Context) (int, error) {
		records := &measuredHistory{Historian: a.opts.Store}
		known, err := records.History(ctx, key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return 0, err
		}
		past = managedfields.Follow(versionsOf(known))
		return records.size, nil
	})
	if err == nil {
		done()
	}
	return past, err
}

// versionsOf converts the versions of an object. They become oldest first.
func versionsOf(known []store.Version) []managedfields.Version {
	var out []managedfields.Version
	for _, v := range slices.Backward(known) {
		one := managedfields.Version{Object: v.Object}
		if c := v.Change; c != nil {
			one.Created, one.Program, one.Time = c.Verb == store.OpCreate, c.Author.UserAgent, c.Time
		}
		out = append(out, one)
	}
	return out
}

// failed converts a merge failure to an error of the store's contract.
func (a *Application) failed(err error) error {
	var misfit *managedfields.Misfit
	switch {
	case errors.Is(err, managedfields.ErrTooMany):
		return &store.Error{Kind: store.ErrTooLarge, Key: a.Part.Key(), Detail: err.Error()}
	case errors.As(err, &misfit):
		return &store.Error{Kind: store.ErrInvalid, Key: a.Part.Key(), Problems: diag.List{{
			Severity: diag.Error, Reason: diag.FieldInvalid, Field: misfit.Field, Message: misfit.Message,
		}}}
	}
	return err
}

// failedOn is failed for a stored object; current is nil if there is none. An
// object of an older version may have fields that nobody can own.
func (a *Application) failedOn(current *schema.Object, err error) error {
	if failed := a.failed(err); failed != err || current == nil { //nolint:errorlint // Is it the same?
		return failed
	}
	if broken := schema.Violations(current); len(broken) > 0 {
		return &store.Error{Kind: store.ErrInvalid, Key: a.Part.Key(), Problems: broken, Cause: err}
	}
	return err
}

// Change is the store.Change of an apply.
func (a *Application) Change(current *schema.Object) (next *schema.Object, err error) {
	if a.created = current == nil; !a.created {
		stored := current
		if current, err = managedfields.Since(a.past, stored); err != nil {
			return nil, a.failedOn(stored, err)
		}
	}
	text, err := managedfields.Apply(current, a.Part, a.manager, a.force)
	if err != nil {
		return nil, a.failedOn(current, err)
	}
	next, a.Warnings, err = intake.DecodeMade(text, current, a.Part.Key())
	return next, err
}
