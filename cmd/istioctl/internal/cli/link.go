package cli

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/pilot-api/pilot-api/store"
)

// Link is a connection to the server that reports on stderr when it is lost and when it
// is back, in one line each, however many retries are in between.
type Link struct {
	store.Reader
	session *Session
	lost    atomic.Bool
}

// NewLink returns a connection for reads of a store. The store may be nil if the caller
// reads in another way.
func NewLink(s *Session, r store.Reader) *Link {
	return &Link{Reader: r, session: s}
}

// List lists like the store, and reports a loss.
func (c *Link) List(ctx context.Context, scope store.Scope, opts store.ListOptions) (*store.List, error) {
	list, err := c.Reader.List(ctx, scope, opts)
	c.Gone(ctx, err)
	return list, err
}

// Watch watches like the store, and reports when the connection is lost and back.
func (c *Link) Watch(ctx context.Context, scope store.Scope, after int64) (store.Watcher, error) {
	w, err := c.Reader.Watch(ctx, scope, after)
	if err != nil {
		c.Gone(ctx, err)
		return nil, err
	}
	c.Back()
	return &connected{w, c, ctx}, nil
}

// Back reports that the server has answered, if a loss was reported before.
func (c *Link) Back() {
	if c.lost.CompareAndSwap(true, false) {
		fmt.Fprintln(c.session.Stderr, "connected again")
	}
}

// Gone reports a loss. An expired revision is no loss, because the objects are listed
// again. The caller knows of an interrupt or timeout already.
func (c *Link) Gone(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	for _, harmless := range []error{nil, context.Canceled, store.ErrExpired, store.ErrFuture} {
		if errors.Is(err, harmless) {
			return
		}
	}
	if c.lost.CompareAndSwap(false, true) {
		fmt.Fprintf(c.session.Stderr, "connection to %s lost, retrying: %s\n", c.session.Server, Reason(err))
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
	c.connection.Gone(c.asked, err)
	return err
}
