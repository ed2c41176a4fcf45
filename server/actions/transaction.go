package actions

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/intake"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// transactionsPath accepts operations that are all done or none.
const transactionsPath = "/apis/" + wire.RegistryVersion + "/transactions"

const (
	// maxTransaction bounds the body of a transaction in JSON, in bytes. A YAML body
	// may be no longer than that of an object, because of the memory that reading it
	// takes.
	maxTransaction = 8 << 20
)

// transaction is a Transaction of the API.
type transaction = action[transactionSpec]

// transactionSpec has the operations, which are all done or none.
type transactionSpec struct {
	Operations []operation `json:"operations"`
}

// transaction answers POST. It does all operations at one revision, or none.
func (h *Handler) transaction(w http.ResponseWriter, r *http.Request) error {
	writes, err := h.writesOf(r)
	if err != nil {
		return err
	}
	t, err := h.parseTransaction(r)
	if err != nil {
		return err
	}
	if err := h.allowOperations(r.Context(), t); err != nil {
		return err
	}
	stored, err := h.awaitStored(r, t)
	if err != nil {
		return err
	}
	release, err := h.bodies.EnterDecoding(r, stored, 0)
	if err != nil {
		return err
	}
	defer release()
	steps, err := h.readOperations(r, t)
	if err != nil {
		return err
	}
	return h.transact(w, r, writes, t.actionHead, steps)
}

// parseTransaction reads a body, but not the objects in it. It keeps no memory for
// decoding and no turn.
func (h *Handler) parseTransaction(r *http.Request) (*transaction, error) {
	release, err := h.bodies.EnterDecoding(r, 0, 0)
	if err != nil {
		return nil, err
	}
	defer release()
	leave, err := h.bodies.EnterText(r.Context(), intake.BodyLength(r))
	if err != nil {
		return nil, err
	}
	defer leave()
	return readTransaction(r)
}

// readOperations converts a transaction to steps. It fails with all operations that
// cannot be read.
func (h *Handler) readOperations(r *http.Request, t *transaction) ([]step, error) {
	leave, err := h.bodies.EnterText(r.Context(), intake.BodyLength(r))
	if err != nil {
		return nil, err
	}
	steps, errs := make([]step, len(t.Spec.Operations)), make([]error, len(t.Spec.Operations))
	err = h.readEach(r.Context(), t, false, steps, errs)
	leave()
	if err == nil {
		err = h.readEach(r.Context(), t, true, steps, errs)
	}
	if err != nil {
		return nil, err
	}
	return steps, together(errs)
}

// readEach reads the operations that are server-side applies, which need the stored
// objects, or all others.
func (h *Handler) readEach(ctx context.Context, t *transaction, applies bool, steps []step, errs []error) error {
	for i, op := range t.Spec.Operations {
		if op.owns() != applies {
			continue
		}
		if err := store.Overdue(ctx); err != nil {
			return err
		}
		if err := h.readOperation(ctx, i, op, &steps[i]); err != nil {
			errs[i] = atOperation(err, i, steps[i].Target())
		}
	}
	return nil
}

// transact does steps and answers with their results.
func (h *Handler) transact(w http.ResponseWriter, r *http.Request, writes store.Interface, head actionHead, steps []step) error {
	done, err := writes.Txn(r.Context(), opsOf(steps))
	if err != nil {
		return h.refusedSteps(r.Context(), steps, err)
	}
	status, changes := statusOfSteps(steps, done)
	var warnings diag.List
	for _, one := range steps {
		warnings = append(warnings, one.warnings...)
	}
	h.objects.WarnOf(w, r, warnings, changes...)
	return writeAction(w, r, head, status)
}

func readTransaction(r *http.Request) (*transaction, error) {
	body, media, err := intake.ReadBody(r, wire.ObjectTypes...)
	if err != nil {
		return nil, err
	}
	if media != wire.JSON.Names()[0] {
		switch {
		case len(body) > intake.MaxBody:
			return nil, intake.ErrTooLarge(intake.MaxBody)
		case schema.TooMany(body):
			return nil, wire.BadRequest("body: must have at most %d values", schema.MaxValues)
		}
		if body, err = intake.JSONOfYAML(body); err != nil {
			return nil, wire.BadRequest("body is not YAML: %v", err)
		}
	}
	if !json.Valid(body) {
		return nil, intake.MalformedJSON(body)
	}
	if intake.OutlineOf(body).ThirdCommas >= store.MaxTxnOps {
		return nil, wire.BadRequest("spec.operations: must have at most %d", store.MaxTxnOps)
	}
	t := &transaction{}
	if err := intake.ReadStrictly(body, t); err != nil {
		return nil, misreadTransaction(body, err)
	}
	if err := t.check(kindTransaction); err != nil {
		return nil, err
	}
	if len(t.Spec.Operations) == 0 {
		return nil, wire.BadRequest("spec.operations: must have at least one")
	}
	return t, nil
}

// misreadTransaction returns an error that names the operations, if any, because of
// which a body cannot be read.
func misreadTransaction(body []byte, err error) error {
	var t struct {
		Spec struct {
			Operations []json.RawMessage `json:"operations"`
		} `json:"spec"`
	}
	if json.Unmarshal(body, &t) == nil {
		errs := make([]error, len(t.Spec.Operations))
		for i, text := range t.Spec.Operations {
			in := json.NewDecoder(bytes.NewReader(text))
			in.DisallowUnknownFields()
			if err := in.Decode(new(operation)); err != nil {
				errs[i] = atOperation(wire.BadRequest("must be {%q: …, %q: …}: %v", "verb", "object", err), i, schema.Key{})
			}
		}
		if err := together(errs); err != nil {
			return err
		}
	}
	return wire.BadRequest("body: must be a %s, {%q: {%q: [{%q: …, %q: …}]}}: %v", kindTransaction, "spec", "operations", "verb", "object", err)
}
