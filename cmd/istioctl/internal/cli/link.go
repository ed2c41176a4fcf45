package cli

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/contexts"
	"github.com/pilot-api/pilot-api/store"
)

// mostDenials is how often in a row a Link is denied before it ends. A replica may not have a
// new role or account yet, and a file with a token may be empty while it is written.
const mostDenials = 5

// Link is a connection to the server that reports on stderr when it is lost and when it
// is back, in one line each, however many retries are in between. It ends if the server
// denies the reads, because retries do not help then.
type Link struct {
	store.Reader
	session *Session
	lost    atomic.Bool
	denials atomic.Int32
	end     func(error)
}

// NewLink returns a connection for reads of a store. The store may be nil if the caller
// reads in another way.
func NewLink(s *Session, r store.Reader) *Link {
	return &Link{Reader: r, session: s, end: func(error) {}}
}

// OnEnd sets what is called, possibly several times, once List and Watch are no longer
// worth a retry. Call it before the first read.
func (c *Link) OnEnd(end func(reason error)) { c.end = end }

// List lists like the store, and reports a loss.
func (c *Link) List(ctx context.Context, scope store.Scope, opts store.ListOptions) (*store.List, error) {
	list, err := c.Reader.List(ctx, scope, opts)
	c.gone(ctx, err)
	return list, err
}

// Watch watches like the store, and reports when the connection is lost and back.
func (c *Link) Watch(ctx context.Context, scope store.Scope, after int64) (store.Watcher, error) {
	w, err := c.Reader.Watch(ctx, scope, after)
	if err != nil {
		c.gone(ctx, err)
		return nil, err
	}
	c.Back()
	return &connected{w, c, ctx}, nil
}

// Back reports that the server has answered, if a loss was reported before.
func (c *Link) Back() {
	c.denials.Store(0)
	if c.lost.CompareAndSwap(true, false) {
		fmt.Fprintln(c.session.Stderr, "connected again")
	}
}

// Gone reports a loss. An expired revision is no loss, because the objects are listed
// again. The caller knows of an interrupt or timeout already. It returns an error, with
// the reason, if another try is useless.
func (c *Link) Gone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	for _, harmless := range []error{nil, context.Canceled, store.ErrExpired, store.ErrFuture} {
		if errors.Is(err, harmless) {
			return nil
		}
	}
	if isDenial(err) && c.denials.Add(1) >= mostDenials {
		return c.session.Fail(ctx, err)
	}
	if c.lost.CompareAndSwap(false, true) {
		fmt.Fprintf(c.session.Stderr, "connection to %s lost, retrying: %s\n", c.session.Server, Reason(err))
	}
	return nil
}

// isDenial reports whether only a person can mend the reason of an error.
func isDenial(err error) bool { return errors.Is(err, client.ErrDenied) || contexts.IsFinal(err) }

func (c *Link) gone(ctx context.Context, err error) {
	if final := c.Gone(ctx, err); final != nil {
		c.end(final)
	}
}

// connected is a watch that reports a loss of its connection when it ends.
type connected struct {
	store.Watcher
	connection *Link
	asked      context.Context
}

func (c *connected) Err() error {
	err := c.Watcher.Err()
	c.connection.gone(c.asked, err)
	return err
}
