package intake

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/admission"
	"github.com/pilot-api/pilot-api/store"
)

// enterLong waits for the turn of a write that takes long. The caller must call
// leave.
func (d *Decoder) enterLong(ctx context.Context) (leave func(), err error) {
	within, cancel := context.WithTimeout(ctx, admission.Patience)
	defer cancel()
	leave, err = d.long.Enter(within)
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) { // The time of the request may end first.
		return nil, apierrors.NewTooManyRequests("the server is at the limit of the time that it spends on large objects, so that others are served beside them; nothing was changed, try again", 5)
	}
	return leave, err
}

// AwaitLong waits for the turn but does not count the time of the work that
// follows.
func (d *Decoder) AwaitLong(ctx context.Context) error {
	leave, err := d.enterLong(ctx)
	if err == nil {
		leave()
	}
	return err
}

// AwaitLarge waits for the turn of a patch that is large or changes a large object.
func (d *Decoder) AwaitLarge(ctx context.Context, target schema.Key, length int) error {
	stored, err := d.reads.Get(ctx, target, store.ReadOptions{AtLeast: store.Any})
	if length <= schema.LargeText && (err != nil || !stored.Large()) {
		return nil
	}
	return d.AwaitLong(ctx)
}

// Counted returns a change that counts its time if it changes a large object. It does not
// wait, because AwaitLarge has waited before.
func (d *Decoder) Counted(change store.Change) store.Change {
	return func(current *schema.Object) (*schema.Object, error) {
		began := time.Now()
		next, err := change(current)
		if current != nil && current.Large() || next != nil && next.Large() {
			d.long.Spend(time.Since(began))
		}
		return next, err
	}
}

// decodeInTurn decodes a text. A large object waits for its turn: before decoding
// if its text is large, or before it is stored if its lists multiply to much.
func (d *Decoder) decodeInTurn(ctx context.Context, text []byte, opts schema.Options) (*schema.Object, diag.List, error) {
	leave, err := d.EnterText(ctx, len(text))
	if err != nil {
		return nil, nil, err
	}
	obj, problems := schema.Decode(text, opts)
	leave()
	if obj != nil && len(text) <= schema.LargeText && obj.Large() {
		err = d.AwaitLong(ctx)
	}
	return obj, problems, err
}

// ObjectsInTurn is objectsIn with turns as in decodeInTurn.
func (d *Decoder) ObjectsInTurn(ctx context.Context, text []byte, namespace string) ([]*schema.Object, error) {
	leave, err := d.EnterText(ctx, len(text))
	if err != nil {
		return nil, err
	}
	objects, err := objectsIn(ctx, text, namespace)
	leave()
	if err == nil && len(text) <= schema.LargeText && slices.ContainsFunc(objects, (*schema.Object).Large) {
		err = d.AwaitLong(ctx)
	}
	return objects, err
}

// EnterText waits for the turn of a text of that length. A small text does not
// wait.
func (d *Decoder) EnterText(ctx context.Context, length int) (leave func(), err error) {
	if length <= schema.LargeText {
		return func() {}, nil
	}
	return d.enterLong(ctx)
}
