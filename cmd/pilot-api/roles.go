package main

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/security/authz"
	"github.com/pilot-api/pilot-api/server/gate"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
)

// followRoles returns the roles and the hosts that are stored, as a cache follows them; nil
// if no roles decide.
func (o *options) followRoles(cached *cache.Cache, known *accessKnown) (*authz.Roles, *gate.Hosts) {
	if !o.access.byRoles() {
		return nil, nil
	}
	roles, hosts := &authz.Roles{}, &gate.Hosts{}
	put := func(o *schema.Object) {
		roles.Put(o)
		if !o.Kind.Flat {
			hosts.Put(o)
		}
	}
	cached.Handle(nil, cache.Handler{
		Add: put, Update: func(_, after *schema.Object) { put(after) },
		Delete: func(last *schema.Object) { roles.Delete(last.Key()); hosts.Delete(last.Key()) },
		Synced: known.awaits(),
	})
	return roles, hosts
}

// accessKnown reports whether the roles, hosts, accounts and keys are read from the store. It
// is safe for concurrent use once all parts are added.
type accessKnown struct {
	left  atomic.Int32
	known chan struct{} // closed when nothing is left
}

func newAccessKnown() *accessKnown { return &accessKnown{known: make(chan struct{})} }

// awaits adds a part, and returns what the part calls once when it has read everything.
func (k *accessKnown) awaits() (read func()) {
	k.left.Add(1)
	return func() {
		if k.left.Add(-1) == 0 {
			close(k.known)
		}
	}
}

// all is called when all parts are added.
func (k *accessKnown) all() {
	if k.left.Load() == 0 {
		close(k.known)
	}
}

// is reports whether all parts have read everything.
func (k *accessKnown) is() bool {
	select {
	case <-k.known:
		return true
	default:
		return false
	}
}

// wait waits until all parts have read everything, or ctx ends.
func (k *accessKnown) wait(ctx context.Context) error {
	select {
	case <-k.known:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// follow keeps the accounts as a cache has them.
func (a *access) follow(cached *cache.Cache) {
	if a.accounts == nil {
		return
	}
	kind, _ := schema.KindByName(schema.KindServiceAccount)
	put := func(o *schema.Object) { a.accounts.Put(o.Meta.Namespace, o.Meta.Name, string(o.Meta.UID)) }
	cached.Handle(kind, cache.Handler{
		Add: put, Update: func(_, after *schema.Object) { put(after) },
		Delete: func(last *schema.Object) { a.accounts.Delete(last.Meta.Namespace, last.Meta.Name) },
		Synced: a.known.awaits(),
	})
}

// builtInRetry is the time between two tries to store the built-in roles.
const builtInRetry = 2 * time.Second

// keepBuiltIns stores the built-in roles and bindings that are missing or differ, and then
// waits for ctx. An operator keeps one as it is by its annotation authz.AutoUpdate: "false".
func keepBuiltIns(ctx context.Context, to store.Interface, log *slog.Logger) error {
	ctx = store.WithAuthor(ctx, store.Author{User: "system:pilot-api", UserAgent: "pilot-api"})
	for _, o := range authz.BuiltIns() {
		for err := keepBuiltIn(ctx, to, o); err != nil; err = keepBuiltIn(ctx, to, o) {
			if ctx.Err() == nil {
				log.Warn("a built-in role is not stored yet", "object", o.Key().String(), "error", err)
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(builtInRetry):
			}
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

func keepBuiltIn(ctx context.Context, to store.Interface, o *schema.Object) error {
	_, err := to.Create(ctx, o)
	if !errors.Is(err, store.ErrExists) {
		return err
	}
	_, err = to.UpdateFunc(ctx, o.Key(), func(stored *schema.Object) (*schema.Object, error) {
		if stored.Meta.Annotations[authz.AutoUpdate] == "false" || stored.SameSpec(o) {
			return stored, nil
		}
		meta := stored.Meta
		meta.ResourceVersion = ""
		return o.WithMeta(meta)
	})
	return err
}
