package objects

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/dryrun"
	"github.com/pilot-api/pilot-api/server/intake"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// create answers POST on the collection of a namespace.
func (k *resource) create(w http.ResponseWriter, r *http.Request) error {
	f, writes, obj, warnings, err := k.beginObject(r)
	if err != nil {
		return err
	}
	obj, err = createNamed(r.Context(), writes, obj)
	if err != nil {
		return err
	}
	return k.writeNew(w, r, f, obj, warnings)
}

// writeNew answers with a created object.
func (k *resource) writeNew(w http.ResponseWriter, r *http.Request, f wire.Format, obj *schema.Object, warnings diag.List) error {
	k.WarnOf(w, r, warnings, schema.Change{After: obj})
	w.Header().Set("Location", k.Path(obj))
	return k.writeObject(w, r, http.StatusCreated, f, obj)
}

// update answers PUT on an object.
func (k *resource) update(w http.ResponseWriter, r *http.Request) error {
	f, writes, obj, warnings, err := k.beginObject(r)
	if err != nil {
		return err
	}
	if onlyNew(r) {
		obj, err = writes.Create(r.Context(), obj)
		switch {
		case errors.Is(err, store.ErrExists):
			return errThere
		case err != nil:
			return err
		}
		return k.writeNew(w, r, f, obj, warnings)
	}
	m, err := ifMatch(r)
	if err != nil {
		return err
	}
	if obj, err = m.of(obj); err != nil {
		return err
	}
	if obj, err = writes.Update(r.Context(), obj); err != nil {
		return m.failed(err)
	}
	k.WarnOf(w, r, warnings, Became(obj))
	return k.writeObject(w, r, http.StatusOK, f, obj)
}

// delete answers DELETE on an object with its last state.
func (k *resource) delete(w http.ResponseWriter, r *http.Request) error {
	f, writes, opts, err := k.beginDelete(r, deleteParams)
	if err != nil {
		return err
	}
	pre, err := Preconditions(opts.Preconditions)
	if err != nil {
		return err
	}
	m, err := ifMatch(r)
	if err != nil {
		return err
	}
	if pre.ResourceVersion, err = m.with(pre.ResourceVersion); err != nil {
		return err
	}
	obj, err := writes.Delete(r.Context(), k.Target(r), pre)
	if err != nil {
		return m.failed(err)
	}
	return k.writeObject(w, r, http.StatusOK, f, obj)
}

// beginObject begins a write that carries a whole object.
func (k *resource) beginObject(r *http.Request) (wire.Format, store.Interface, *schema.Object, diag.List, error) {
	f, writes, err := k.beginWrite(r, writeParams)
	if err != nil {
		return 0, nil, nil, nil, err
	}
	obj, warnings, err := k.readObject(r)
	return f, writes, obj, warnings, err
}

// beginWrite checks what all writes have in common, before the body is read, and
// returns the store to write to: the real one or one for a dry run.
func (k *resource) beginWrite(r *http.Request, allowed []string) (wire.Format, store.Interface, error) {
	f, err := wire.Negotiate(r, wire.JSON, wire.YAML, wire.Table)
	if err != nil {
		return 0, nil, err
	}
	q := wire.Query(r)
	if err := wire.CheckParams(q, allowed); err != nil {
		return 0, nil, err
	}
	if err := CheckFieldValidation(q); err != nil {
		return 0, nil, err
	}
	writes, err := k.WritesOf(q)
	return f, writes, err
}

// WritesOf returns the store to write to: the real one or one for a dry run. It fails if
// the store does not answer.
func (a *API) WritesOf(q url.Values) (store.Interface, error) {
	if err := store.CheckWritable(a.opts.Reads); err != nil {
		return nil, err
	}
	if err := wire.CheckFilled(q, "dryRun"); err != nil {
		return nil, err
	}
	dryRun, err := wire.ChoiceParam(q, "dryRun", metav1.DryRunAll)
	if err != nil {
		return nil, err
	}
	writes := a.opts.Store
	if dryRun != "" {
		writes = dryrun.New(a.opts.Store, a.opts.MaxTransaction)
	}
	if a.opts.Statuses.AreStored() {
		writes = withStatuses(writes, a.opts.Reads, a.opts.Statuses.Stored)
	}
	return a.opts.Gate.Store(writes), nil
}

// CheckFieldValidation accepts the values of Kubernetes. Unknown fields are refused
// with any of them: a typo must not lose a rule.
func CheckFieldValidation(q url.Values) error {
	_, err := wire.ChoiceParam(q, "fieldValidation",
		metav1.FieldValidationStrict, metav1.FieldValidationWarn, metav1.FieldValidationIgnore)
	return err
}

// nameTries bounds the search for an unused generated name. With 36^5 names for
// each prefix, even a second try is rare.
const nameTries = 5

// createNamed creates an object. It generates the name if the object has only a
// prefix.
func createNamed(ctx context.Context, s store.Interface, obj *schema.Object) (*schema.Object, error) {
	if obj.Meta.Name != "" {
		return s.Create(ctx, obj)
	}
	for try := 1; ; try++ {
		named, err := withGeneratedName(obj)
		if err != nil {
			return nil, err
		}
		created, err := s.Create(ctx, named)
		if try == nameTries || !errors.Is(err, store.ErrExists) {
			return created, err
		}
	}
}

func withGeneratedName(obj *schema.Object) (*schema.Object, error) {
	meta := obj.Meta
	meta.Name = meta.GenerateName + rand.String(5)
	return obj.WithMeta(meta)
}

// readObject decodes the object in a body, checks each field, and checks that the
// object matches the URL. The list holds warnings.
func (k *resource) readObject(r *http.Request) (*schema.Object, diag.List, error) {
	body, media, err := intake.ReadBody(r, objectTypesOf(k.Kind)...)
	if err != nil {
		return nil, nil, err
	}
	if media == runtime.ContentTypeProtobuf {
		if body, err = FromProtobuf(body); err != nil {
			return nil, nil, err
		}
	}
	if media == wire.JSON.Names()[0] && !json.Valid(body) {
		return nil, nil, intake.MalformedJSON(body)
	}
	return k.bodies.DecodeFor(r.Context(), body, k.Target(r))
}
