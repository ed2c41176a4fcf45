package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// transactionsPath accepts operations that are all done or none.
const transactionsPath = "/apis/" + registryVersion + "/transactions"

const (
	registryVersion = "registry.istio.io/v1"
	// maxTransaction bounds the body of a transaction in JSON, in bytes. A YAML body
	// may be no longer than that of an object, because of the memory that reading it
	// takes.
	maxTransaction = 8 << 20
)

var transactionParams = params("dryRun", "fieldManager", "fieldValidation")

// transaction is the body of a POST.
type transaction struct {
	metav1.TypeMeta `json:",inline"`
	Operations      []operation `json:"operations"`
}

// operation is one step. Create, update and apply have an object, whose
// resourceVersion is a precondition; patch and delete name one. Apply with a
// fieldManager is a server-side apply of some fields of the object.
type operation struct {
	Verb      string          `json:"verb"`
	Object    json.RawMessage `json:"object,omitempty"`
	Kind      string          `json:"kind,omitempty"`
	Namespace string          `json:"namespace,omitempty"`
	Name      string          `json:"name,omitempty"`

	FieldManager *string `json:"fieldManager,omitempty"`
	Force        bool    `json:"force,omitempty"`

	PatchType     string                `json:"patchType,omitempty"`
	Patch         json.RawMessage       `json:"patch,omitempty"`
	Preconditions *metav1.Preconditions `json:"preconditions,omitempty"`
}

// transactionResult is the answer. Everything that the operations wrote has its
// resourceVersion.
type transactionResult struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ListMeta   `json:"metadata"`
	Results         []operationResult `json:"results"`
	// Undone are the objects that a step of a rollback leaves as they are.
	Undone []undone `json:"undone,omitempty"`
}

// operationResult is the result of the operation with the same index.
type operationResult struct {
	Verb store.Verb `json:"verb"`
	// Object is the present state. After a delete it is the last state, with the
	// resourceVersion of the deletion.
	Object json.RawMessage `json:"object"`
}

// transaction answers POST. It does all operations at one revision, or none.
func (s *Server) transaction(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	if err := wire.CheckParams(q, transactionParams); err != nil {
		return err
	}
	if err := checkFieldValidation(q); err != nil {
		return err
	}
	writes, err := s.writesOf(q)
	if err != nil {
		return err
	}
	t, err := s.parseTransaction(r)
	if err != nil {
		return err
	}
	stored, err := s.awaitStored(r, t)
	if err != nil {
		return err
	}
	release, err := s.enterDecoding(r, stored, 0)
	if err != nil {
		return err
	}
	defer release()
	ops, warnings, err := s.readOperations(r, t)
	if err != nil {
		return err
	}
	return s.transact(w, r, writes, ops, warnings)
}

// parseTransaction reads a body, but not the objects in it. It keeps no memory for
// decoding and no turn.
func (s *Server) parseTransaction(r *http.Request) (*transaction, error) {
	release, err := s.enterDecoding(r, 0, 0)
	if err != nil {
		return nil, err
	}
	defer release()
	leave, err := s.enterWith(r.Context(), bodyLength(r))
	if err != nil {
		return nil, err
	}
	defer leave()
	return readTransaction(r)
}

// readOperations converts a transaction to operations of the store.
func (s *Server) readOperations(r *http.Request, t *transaction) ([]store.Op, []diag.List, error) {
	leave, err := s.enterWith(r.Context(), bodyLength(r))
	if err != nil {
		return nil, nil, err
	}
	ops, warnings, err := s.decodeOperations(r.Context(), t)
	leave()
	if err != nil {
		return nil, nil, err
	}
	for i, op := range t.Operations {
		if !op.owns() {
			continue
		}
		if err := store.Overdue(r.Context()); err != nil {
			return nil, nil, err
		}
		if ops[i], err = s.applyFields(r.Context(), i, op, &warnings[i]); err != nil {
			return nil, nil, atOperation(err, i, ops[i].Target())
		}
	}
	return ops, warnings, nil
}

// decodeOperations skips server-side applies, which need the stored objects.
func (s *Server) decodeOperations(ctx context.Context, t *transaction) (ops []store.Op, warnings []diag.List, err error) {
	ops, warnings = make([]store.Op, len(t.Operations)), make([]diag.List, len(t.Operations))
	for i, op := range t.Operations {
		if err := store.Overdue(ctx); err != nil {
			return nil, nil, err
		}
		if op.owns() {
			continue
		}
		if ops[i], err = s.decodeOp(ctx, i, op, &warnings[i]); err != nil {
			return nil, nil, atOperation(err, i, ops[i].Target())
		}
	}
	return ops, warnings, nil
}

// transact does operations and answers with their results.
func (s *Server) transact(w http.ResponseWriter, r *http.Request, writes store.Interface, ops []store.Op, warnings []diag.List) error {
	done, err := writes.Txn(r.Context(), ops)
	if err != nil {
		return failedTransaction(err)
	}
	answer, changes := resultOf(ops, done)
	s.warnOf(w, r, slices.Concat(warnings...), changes...)
	return writeJSON(w, r, answer)
}

// resultOf returns the answer for completed operations, and what they changed.
func resultOf(ops []store.Op, done []*schema.Object) (transactionResult, []schema.Change) {
	answer := transactionResult{
		TypeMeta: metav1.TypeMeta{APIVersion: registryVersion, Kind: "TransactionResult"},
		Results:  make([]operationResult, len(done)),
	}
	newest := int64(0)
	changes := make([]schema.Change, len(done))
	for i, obj := range done {
		changes[i] = became(obj)
		if ops[i].Verb == store.OpDelete && len(obj.Meta.Finalizers) == 0 {
			changes[i] = schema.Change{Before: obj}
		}
		answer.Results[i] = operationResult{ops[i].Verb, obj.JSON()}
		newest = max(newest, obj.Revision())
	}
	if newest > 0 {
		answer.Metadata.ResourceVersion = strconv.FormatInt(newest, 10)
	}
	return answer, changes
}

// failedTransaction converts the error of a whole transaction for the client.
func failedTransaction(err error) error {
	var e *store.Error
	if !errors.As(err, &e) || e.Cause != nil {
		return err // The cause is for the log.
	}
	return &apierrors.StatusError{ErrStatus: *store.ToTxnStatus(err)}
}

// atOperation adds to an error the operation that cannot be read or does not fit.
func atOperation(err error, index int, key schema.Key) error {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		st := status.Status()
		st.Details = st.Details.DeepCopy() // errNameless is shared.
		store.InOp(&st, index, string(st.Reason))
		return &apierrors.StatusError{ErrStatus: st}
	}
	var e *store.Error
	if errors.As(err, &e) && e.Key == (schema.Key{}) {
		named := *e
		named.Key = key
		err = &named
	}
	return failedTransaction(store.AtIndex(err, index))
}

func readTransaction(r *http.Request) (*transaction, error) {
	body, media, err := readBody(r, objectTypes...)
	if err != nil {
		return nil, err
	}
	if media != wire.JSON.Names()[0] {
		switch {
		case len(body) > maxBody:
			return nil, errTooLarge(maxBody)
		case schema.TooMany(body):
			return nil, wire.BadRequest("body: must have at most %d values", schema.MaxValues)
		}
		if body, err = jsonOfYAML(body); err != nil {
			return nil, wire.BadRequest("body is not YAML: %v", err)
		}
	}
	if !json.Valid(body) {
		return nil, malformedJSON(body)
	}
	if outlineOf(body).second >= store.MaxTxnOps {
		return nil, wire.BadRequest("operations: must have at most %d", store.MaxTxnOps)
	}
	t := &transaction{}
	switch err := readStrictly(body, t); {
	case err != nil:
		return nil, misreadTransaction(body, err)
	case t.Kind != "" && t.Kind != "Transaction" || t.APIVersion != "" && t.APIVersion != registryVersion:
		return nil, wire.BadRequest("body: must be a Transaction of %s, found %s of %s", registryVersion, t.Kind, t.APIVersion)
	case len(t.Operations) == 0:
		return nil, wire.BadRequest("operations: must have at least one")
	}
	return t, nil
}

// misreadTransaction returns an error that names the operation, if any, because of
// which a body cannot be read.
func misreadTransaction(body []byte, err error) error {
	var t struct {
		Operations []json.RawMessage `json:"operations"`
	}
	if json.Unmarshal(body, &t) == nil {
		for i, text := range t.Operations {
			in := json.NewDecoder(bytes.NewReader(text))
			in.DisallowUnknownFields()
			if err := in.Decode(new(operation)); err != nil {
				return atOperation(wire.BadRequest("must be {%q: …, %q: …}: %v", "verb", "object", err), i, schema.Key{})
			}
		}
	}
	return wire.BadRequest("body: must be a Transaction, {%q: [{%q: …, %q: …}]}: %v", "operations", "verb", "object", err)
}

// decodeOp converts an operation to one of the store.
func (s *Server) decodeOp(ctx context.Context, index int, o operation, warnings *diag.List) (store.Op, error) {
	if o.FieldManager != nil || o.Force {
		return store.Op{}, wire.BadRequest("fieldManager and force are for apply")
	}
	switch o.Verb {
	case "create", "update", "apply":
		obj, err := s.decodeObject(ctx, o, warnings)
		return store.Op{Verb: store.Verb(o.Verb), Object: obj}, err
	case "patch":
		return s.patchOf(ctx, index, o, warnings)
	case "delete":
		pre, err := preconditions(o.Preconditions)
		if err != nil {
			return store.Op{}, err
		}
		if _, err := o.namedKind(); err != nil {
			return store.Op{}, err
		}
		op := store.Op{Verb: store.OpDelete, Key: o.key(), Pre: pre}
		return op, o.wants(o.Object == nil && o.Patch == nil, "kind, namespace and name, and perhaps preconditions")
	}
	return store.Op{}, wire.BadRequest("verb: must be create, update, apply, patch or delete, found %q", o.Verb)
}

// owns reports whether the operation is a server-side apply, which owns fields.
func (o operation) owns() bool { return o.Verb == "apply" && (o.FieldManager != nil || o.Force) }

// applyFields converts a server-side apply to an operation of the store.
func (s *Server) applyFields(ctx context.Context, index int, o operation, warnings *diag.List) (store.Op, error) {
	if err := o.wantsObject(); err != nil {
		return store.Op{}, err
	}
	a, err := s.application(ctx, o.Object, schema.Key{Namespace: schema.DefaultNamespace}, *cmp.Or(o.FieldManager, new(string)), o.Force)
	if err != nil {
		return store.Op{}, err
	}
	key := a.part.Key()
	if key.Name == "" {
		return store.Op{}, errNameless
	}
	return store.Op{Verb: store.OpApply, Key: key, Change: s.inOperation(ctx, index, key, func(current *schema.Object) (*schema.Object, error) {
		next, err := a.change(current)
		if err == nil {
			*warnings = a.warnings
		}
		return next, err
	})}, nil
}

// inOperation returns change with errors that name its operation. It changes nothing
// after ctx has ended.
func (s *Server) inOperation(ctx context.Context, index int, key schema.Key, change store.Change) store.Change {
	change = s.counted(change)
	return func(current *schema.Object) (*schema.Object, error) {
		if err := store.Overdue(ctx); err != nil {
			return nil, err
		}
		next, err := change(current)
		if err != nil {
			return nil, atOperation(err, index, key)
		}
		return next, nil
	}
}

var errNameless = wire.BadRequest("metadata.name: required in a transaction")

func (o operation) key() schema.Key {
	return schema.Key{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
}

// namedKind requires an operation to name its object, and returns the kind of it.
func (o operation) namedKind() (*schema.Kind, error) {
	for _, one := range []struct{ field, value string }{{"kind", o.Kind}, {"namespace", o.Namespace}, {"name", o.Name}} {
		if one.value == "" {
			return nil, wire.BadRequest("%s: required to %s", one.field, o.Verb)
		}
	}
	return kindNamed("kind", o.Kind)
}

func (o operation) wants(ok bool, what string) error {
	if ok {
		return nil
	}
	return wire.BadRequest("%s takes %s, and nothing else", o.Verb, what)
}

func (o operation) wantsObject() error {
	ok := o.Object != nil && o.key() == schema.Key{} && o.Patch == nil && o.Preconditions == nil
	return o.wants(ok, "an object, whose metadata.resourceVersion is the precondition")
}

// decodeObject decodes an object as strictly as a request of its own.
func (s *Server) decodeObject(ctx context.Context, o operation, warnings *diag.List) (*schema.Object, error) {
	if err := o.wantsObject(); err != nil {
		return nil, err
	}
	obj, problems := schema.Decode(o.Object, schema.Options{Namespace: schema.DefaultNamespace})
	if obj == nil && o.Verb != string(store.OpCreate) && len(problems) > 0 {
		obj, problems = s.decodeNext(ctx, o.Object, schema.Key(problems[0].Object), problems)
	}
	switch {
	case obj == nil:
		return nil, refused(problems)
	case obj.Meta.Name == "":
		return nil, errNameless
	}
	*warnings = problems.Warnings()
	return obj, nil
}

func (s *Server) patchOf(ctx context.Context, index int, o operation, warnings *diag.List) (store.Op, error) {
	kind, err := o.namedKind()
	if err != nil {
		return store.Op{}, err
	}
	if err := o.wants(o.Patch != nil && o.Object == nil && o.Preconditions == nil, "kind, namespace, name, patchType and patch"); err != nil {
		return store.Op{}, err
	}
	media := o.PatchType
	if media == "" {
		media = string(types.MergePatchType)
	}
	patcher, err := patcherOf(o.Patch, media)
	if err != nil {
		return store.Op{}, err
	}
	return store.Op{Verb: store.OpUpdate, Key: o.key(), Change: s.inOperation(ctx, index, o.key(), patcher.of(kind.Version, warnings))}, nil
}
