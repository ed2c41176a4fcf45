package server

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// longPatience is how long a write of a large object waits for its turn.
const longPatience = 20 * time.Second

// enterLong waits for the turn of a write that takes long. The caller must call
// leave.
func (s *Server) enterLong(ctx context.Context) (leave func(), err error) {
	within, cancel := context.WithTimeout(ctx, longPatience)
	defer cancel()
	leave, err = s.opts.Long.Enter(within)
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) { // The time of the request may end first.
		return nil, apierrors.NewTooManyRequests("the server is at the limit of the time that it spends on large objects, so that others are served beside them; nothing was changed, try again", 5)
	}
	return leave, err
}

// awaitLong waits for the turn but does not count the time of the work that
// follows.
func (s *Server) awaitLong(ctx context.Context) error {
	leave, err := s.enterLong(ctx)
	if err == nil {
		leave()
	}
	return err
}

// awaitLarge waits for the turn of a patch that is large or changes a large object.
func (s *Server) awaitLarge(ctx context.Context, target schema.Key, length int) error {
	stored, err := s.opts.Reads.Get(ctx, target, store.ReadOptions{AtLeast: store.Any})
	if length <= schema.LargeText && (err != nil || !stored.Large()) {
		return nil
	}
	return s.awaitLong(ctx)
}

// counted returns a change that counts its time if it changes a large object. It does
// not wait: awaitLarge has done so.
func (s *Server) counted(change store.Change) store.Change {
	return func(current *schema.Object) (*schema.Object, error) {
		began := time.Now()
		next, err := change(current)
		if current != nil && current.Large() || next != nil && next.Large() {
			s.opts.Long.Spend(time.Since(began))
		}
		return next, err
	}
}

// decodeInTurn decodes a text. A large object waits for its turn: before decoding
// if its text is large, or before it is stored if its lists multiply to much.
func (s *Server) decodeInTurn(ctx context.Context, text []byte, opts schema.Options) (*schema.Object, diag.List, error) {
	leave, err := s.enterWith(ctx, len(text))
	if err != nil {
		return nil, nil, err
	}
	obj, problems := schema.Decode(text, opts)
	leave()
	if obj != nil && len(text) <= schema.LargeText && obj.Large() {
		err = s.awaitLong(ctx)
	}
	return obj, problems, err
}

// objectsInTurn is objectsIn with turns as in decodeInTurn.
func (s *Server) objectsInTurn(ctx context.Context, text []byte, namespace string) ([]*schema.Object, error) {
	leave, err := s.enterWith(ctx, len(text))
	if err != nil {
		return nil, err
	}
	objects, err := objectsIn(ctx, text, namespace)
	leave()
	if err == nil && len(text) <= schema.LargeText && slices.ContainsFunc(objects, (*schema.Object).Large) {
		err = s.awaitLong(ctx)
	}
	return objects, err
}

// enterWith waits for the turn of a text of that length. A small text does not
// wait.
func (s *Server) enterWith(ctx context.Context, length int) (leave func(), err error) {
	if length <= schema.LargeText {
		return func() {}, nil
	}
	return s.enterLong(ctx)
}
