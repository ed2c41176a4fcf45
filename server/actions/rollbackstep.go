package actions

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

const (
	// comparedAtOnce is how many objects are read at a time to be compared.
	comparedAtOnce = 500
	// comparedPerStep is how many objects are compared for one answer at most, changed
	// or not.
	comparedPerStep = 5000
	// stepBytes bounds the objects of one step, in bytes of JSON. The object that
	// exceeds it is the last of its step.
	stepBytes = 2 << 20
)

// undone is an object that a step leaves as it is, and the reason.
type undone struct {
	Kind      string              `json:"kind"`
	Namespace string              `json:"namespace"`
	Name      string              `json:"name"`
	Reason    metav1.StatusReason `json:"reason"`
	Message   string              `json:"message"`
}

func undoneBecause(key schema.Key, err error) undone {
	status := store.ToStatus(err)
	return undone{key.Kind, key.Namespace, key.Name, status.Reason, status.Message}
}

// stepToken is the position at which a rollback in steps goes on. It is opaque to
// clients. A forged token can do no more than another rollback.
type stepToken struct {
	Version int   `json:"v"`
	Since   int64 `json:"since"`
	// Began is the newest revision at the beginning of the rollback. Objects that others
	// have changed since then stay unchanged.
	Began int64 `json:"began"`
	// Pass counts the passes of the rollback from 1. Objects are counted in pass 0.
	Pass int `json:"pass"`
	// Namespace and Name, and Kind in pass 0, name the last object that was examined.
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"ns,omitempty"`
	Name      string `json:"name,omitempty"`
	// Left is the number of counted objects that are still to be changed.
	Left int `json:"left"`
}

// maxStepToken bounds a token. It is far more than the longest names need.
const maxStepToken = 2048

const stepTokenVersion = 1

func (t stepToken) text() string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // Numbers and strings always encode.
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func (t stepToken) after() schema.Key {
	return schema.Key{Kind: t.Kind, Namespace: t.Namespace, Name: t.Name}
}

// at returns the token after an object.
func (t stepToken) at(key schema.Key) stepToken {
	t.Kind, t.Namespace, t.Name = key.Kind, key.Namespace, key.Name
	return t
}

// readStepToken reads a token of a rollback to a revision.
func readStepToken(text string, revision int64) (stepToken, error) {
	var t stepToken
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if len(text) > maxStepToken || err != nil || json.Unmarshal(decoded, &t) != nil || t.Version != stepTokenVersion {
		return t, wire.BadRequest("spec.continue: is not a value that this server returned")
	}
	if t.Since != revision {
		return t, wire.BadRequest("spec.continue: belongs to a rollback to revision %d, this one is to revision %d", t.Since, revision)
	}
	if t.Pass < 0 || t.Began < 1 || t.Left < 0 {
		return t, wire.BadRequest("spec.continue: is not a value that this server returned")
	}
	return t, nil
}

// stepping is a step in progress.
type stepping struct {
	handler *Handler
	scope   store.Scope
	passes  []pass
	now     stepToken // after the objects examined
	left    int       // objects that may still be compared

	steps  []plannedStep
	bytes  int
	undone []leftOut
}

// plannedStep is an operation and the token after its object.
type plannedStep struct {
	op store.Op
	at stepToken
}

// leftOut is an object that is left as it is, and the number of operations before
// it.
type leftOut struct {
	undone
	before int
}

// rollBackStep does one step of a rollback. It first counts the changes, which may
// take several answers. If one transaction can hold all of them, it does them at
// once; otherwise each step is a transaction of its own.
func (h *Handler) rollBackStep(w http.ResponseWriter, r *http.Request, writes store.Interface, scope store.Scope, asked *rollback) error {
	at, err := h.stepOf(r.Context(), asked.Spec)
	if err != nil {
		return err
	}
	if at.Pass == 0 {
		return h.beginRollback(w, r, writes, scope, at, asked)
	}
	return h.continueRollback(w, r, writes, scope, at, asked.actionHead)
}

func (h *Handler) stepOf(ctx context.Context, asked *rollbackSpec) (stepToken, error) {
	if asked.Continue != "" {
		return readStepToken(asked.Continue, int64(asked.Revision))
	}
	began, err := h.opts.Store.Revision(ctx)
	return stepToken{Version: stepTokenVersion, Since: int64(asked.Revision), Began: began}, err
}

// beginRollback counts the changes. That finds objects whose earlier state is
// unknown before anything is changed.
func (h *Handler) beginRollback(w http.ResponseWriter, r *http.Request, writes store.Interface, scope store.Scope, at stepToken, asked *rollback) error {
	first := asked.Spec.Continue == ""
	p, err := h.survey(r.Context(), scope, store.ChangesOptions{Since: at.Since, After: at.after()}, comparedPerStep)
	if err != nil {
		return err
	}
	answer := actionStatus{Results: []operationResult{}}
	var changes []schema.Change
	whole := first && p.ops != nil
	if whole {
		done, err := writes.Txn(r.Context(), p.ops)
		switch {
		case err == nil:
			answer, changes = statusOfSteps(stepsOf(p.ops), done)
		case errors.Is(err, store.ErrTooLarge) && len(p.ops) > 1:
			whole = false // The store counts other bytes.
		default:
			return h.refusedSteps(r.Context(), stepsOf(p.ops), err)
		}
	}
	if !whole {
		at.Left += p.count
		if at = at.at(p.rest.After); p.rest.After == (schema.Key{}) {
			at.Pass++
		}
		answer.goesOn(at)
	}
	if first {
		for _, d := range p.lost {
			_, _, err := d.Undo()
			answer.Undone = append(answer.Undone, undoneBecause(d.Key, err))
		}
	}
	h.objects.WarnOf(w, r, nil, changes...)
	return writeAction(w, r, asked.actionHead, answer)
}

// goesOn sets the token of the next step, and how many of the objects counted so
// far are left.
func (a *actionStatus) goesOn(at stepToken) { a.Continue, a.Remaining = at.text(), at.Left }

// continueRollback does the next operations.
func (h *Handler) continueRollback(w http.ResponseWriter, r *http.Request, writes store.Interface, scope store.Scope, at stepToken, head actionHead) error {
	st := &stepping{handler: h, scope: scope, passes: passesOf(scope), now: at, left: comparedPerStep}
	if err := st.plan(r.Context()); err != nil {
		return err
	}
	ops, done, err := st.do(r.Context(), writes)
	if err != nil {
		return failedTransaction(err)
	}
	answer, changes := statusOfSteps(stepsOf(ops), done)
	for _, u := range st.undone {
		answer.Undone = append(answer.Undone, u.undone)
	}
	if st.now.Pass <= len(st.passes) {
		st.now.Left = max(0, at.Left-len(ops)-len(st.undone))
		answer.goesOn(st.now)
	}
	if !wire.Query(r).Has("dryRun") { // A dry run has not stored what they refer to.
		h.objects.WarnOf(w, r, nil, changes...)
	}
	return writeAction(w, r, head, answer)
}

// pass is one run over the objects of a kind. It writes those of a rank, or deletes
// them.
type pass struct {
	schema.KindRank
	deletes bool
}

// passesOf returns the passes of a scope. Objects are written before the objects
// that refer to them, and deleted after them.
func passesOf(scope store.Scope) []pass {
	var writes, deletes []pass
	for _, of := range schema.ReferenceOrder() {
		if scope.Kind == nil && !of.Kind.Flat || scope.Kind == of.Kind {
			writes, deletes = append(writes, pass{of, false}), append(deletes, pass{of, true})
		}
	}
	slices.Reverse(deletes)
	return append(writes, deletes...)
}

// has reports whether the pass handles a difference.
func (p pass) has(d store.Difference) bool {
	if p.deletes != (d.Then == nil) {
		return false
	}
	obj := cmp.Or(d.Then, d.Now)
	if obj == nil { // An unreadable value has the first rank of its kind.
		return p.Rank == p.Kind.ReferenceRanks()[0]
	}
	return schema.ReferenceRank(obj) == p.Rank
}

// plan looks for operations until a step has enough.
func (st *stepping) plan(ctx context.Context) error {
	for st.now.Pass <= len(st.passes) && st.left > 0 {
		p := st.passes[st.now.Pass-1]
		scope := store.Scope{Kind: p.Kind, Namespace: st.scope.Namespace, Name: st.scope.Name}
		opts := store.ChangesOptions{Since: st.now.Since, Limit: min(comparedAtOnce, st.left)}
		if st.now.Name != "" {
			opts.After = schema.Key{Kind: p.Kind.Kind, Namespace: st.now.Namespace, Name: st.now.Name}
		}
		page, more, err := st.handler.opts.Store.ChangesPage(ctx, scope, opts)
		if err != nil {
			return err
		}
		for _, d := range page {
			if len(st.steps) == st.handler.opts.MaxTransaction || st.bytes >= stepBytes {
				return nil
			}
			st.left--
			st.now = st.now.at(d.Key)
			if err := st.consider(p, d); err != nil {
				return err
			}
		}
		if !more {
			st.now = st.now.at(schema.Key{})
			st.now.Pass++
		}
	}
	return nil
}

// consider plans what a pass does for a difference.
func (st *stepping) consider(p pass, d store.Difference) error {
	if !p.has(d) {
		return nil
	}
	op, ok, err := d.Undo()
	if err != nil || !ok {
		return err
	}
	marked := d.Then == nil && d.Now != nil && d.Now.Meta.DeletionTimestamp != nil
	if d.Revision > st.now.Began && !marked {
		st.leave(d.Key, &store.Error{Kind: store.ErrConflict, Key: d.Key, Detail: fmt.Sprintf(
			"somebody changed it at revision %d, after the rollback began at revision %d", d.Revision, st.now.Began)})
		return nil
	}
	st.steps = append(st.steps, plannedStep{op, st.now})
	st.bytes += sizeOf(op)
	return nil
}

func (st *stepping) leave(key schema.Key, err error) {
	st.undone = append(st.undone, leftOut{undoneBecause(key, err), len(st.steps)})
}

// do performs as many operations as one transaction accepts. An operation that the
// store refuses ends the step before it. If it is the first one, its object is left
// out.
func (st *stepping) do(ctx context.Context, writes store.Interface) ([]store.Op, []*schema.Object, error) {
	for len(st.steps) > 0 {
		ops := make([]store.Op, len(st.steps))
		for i, one := range st.steps {
			ops[i] = one.op
		}
		done, err := writes.Txn(ctx, ops)
		if err == nil {
			return ops, done, nil
		}
		n, ok := lessOf(err, len(ops))
		if !ok {
			return nil, nil, err
		}
		if n == 0 {
			key, at := ops[0].Target(), st.steps[0].at
			st.cut(0)
			st.now = at
			st.leave(key, err)
			return nil, nil, nil
		}
		st.cut(n)
	}
	return nil, nil, nil
}

// cut keeps the first n operations of a step and the objects left out before them.
func (st *stepping) cut(n int) {
	st.steps = st.steps[:n]
	st.undone = slices.DeleteFunc(st.undone, func(u leftOut) bool { return u.before >= max(n, 1) })
	if n > 0 {
		st.now = st.steps[n-1].at
	}
}

// lessOf returns how many operations to try after the store has refused ops
// operations. ok is false if fewer would fail too.
func lessOf(err error, ops int) (n int, ok bool) {
	var e *store.Error
	if !errors.As(err, &e) {
		return 0, false
	}
	switch e.Kind {
	case store.ErrTooLarge:
		return ops / 2, true
	case store.ErrConflict, store.ErrExists, store.ErrNotFound, store.ErrInvalid, store.ErrUnreadable:
		return e.Index, e.Key != (schema.Key{})
	}
	return 0, false
}
