package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/pilot-api/pilot-api/store"
)

// connection is a connection to the server that reports on stderr when it is lost and when it is back, in
// one line each, however many retries are in between.
type connection struct {
	store.Reader
	session *session
	lost    atomic.Bool
}

// newConnection returns a connection over which a store is read. The store may be nil if
// the caller reads in another way.
func newConnection(s *session, r store.Reader) *connection {
	return &connection{Reader: r, session: s}
}

func (c *connection) List(ctx context.Context, scope store.Scope, opts store.ListOptions) (*store.List, error) {
	list, err := c.Reader.List(ctx, scope, opts)
	c.gone(ctx, err)
	return list, err
}

func (c *connection) Watch(ctx context.Context, scope store.Scope, after int64) (store.Watcher, error) {
	w, err := c.Reader.Watch(ctx, scope, after)
	if err != nil {
		c.gone(ctx, err)
		return nil, err
	}
	c.back()
	return &connected{w, c, ctx}, nil
}

func (c *connection) back() {
	if c.lost.CompareAndSwap(true, false) {
		fmt.Fprintln(c.session.Stderr, "connected again")
	}
}

// gone reports a loss. An expired revision is no loss, because the objects are listed
// again. The caller knows of an interrupt or timeout already.
func (c *connection) gone(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	for _, harmless := range []error{nil, context.Canceled, store.ErrExpired, store.ErrFuture} {
		if errors.Is(err, harmless) {
			return
		}
	}
	if c.lost.CompareAndSwap(false, true) {
		fmt.Fprintf(c.session.Stderr, "connection to %s lost, retrying: %s\n", c.session.server, reason(err))
	}
}

// connected is a watch that reports a loss of its connection when it ends.
type connected struct {
	store.Watcher
	connection *connection
	asked      context.Context
}

func (c *connected) Err() error {
	err := c.Watcher.Err()
	c.connection.gone(c.asked, err)
	return err
}
