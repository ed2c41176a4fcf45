package actions

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/intake"
	"github.com/pilot-api/pilot-api/store"
)

// maxStored bounds the stored objects that a transaction changes or deletes, in bytes.
// The server holds their states before and after it at the same time.
const maxStored = 2 * maxTransaction

// awaitStored returns the length of the stored objects of a transaction, in bytes. It
// refuses too many bytes. If a small body changes a large object, it waits for a turn.
func (h *Handler) awaitStored(r *http.Request, t *transaction) (length int, err error) {
	ctx, large := r.Context(), false
	for _, o := range t.Spec.Operations {
		if err := store.Overdue(ctx); err != nil {
			return 0, err
		}
		current, err := h.opts.Reads.Get(ctx, o.targetKey(), store.ReadOptions{AtLeast: store.Any})
		if err != nil {
			continue // The operation reports what is wrong.
		}
		large = large || current.Large() && o.Verb != string(store.OpDelete)
		if length += len(current.JSON()); length > maxStored {
			return 0, &store.Error{Kind: store.ErrTooLarge, Detail: fmt.Sprintf(
				"the stored objects of the transaction have more than %d bytes: send it in several transactions", maxStored)}
		}
	}
	if large && intake.BodyLength(r) <= schema.LargeText {
		err = h.bodies.AwaitLong(ctx)
	}
	return length, err
}

// targetKey returns the object of an operation, as far as it can be read without
// decoding the whole object.
func (o operation) targetKey() schema.Key {
	if o.Target != nil {
		return o.Target.key()
	}
	var head struct {
		Kind     string
		Metadata struct{ Namespace, Name string }
	}
	_ = json.Unmarshal(o.Object, &head)
	key := schema.Key{Kind: head.Kind, Namespace: head.Metadata.Namespace, Name: head.Metadata.Name}
	if key.Namespace == "" {
		key.Namespace = schema.DefaultNamespace
	}
	return key.Normal()
}
