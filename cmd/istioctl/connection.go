package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/pilot-api/pilot-api/store"
)

// connection is a store that tells the person who follows it when it is out of
// reach and when it is back: a line each, however many tries are between.
type connection struct {
	store.Reader
	session *session
	lost    atomic.Bool
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

// gone tells a loss. What was forgotten is listed again, which loses nothing,
// and that it was interrupted, or its time is over, is known to whoever said so.
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

// connected is a watch whose end is the loss of its connection.
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
