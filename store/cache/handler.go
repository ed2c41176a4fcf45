package cache

import (
	"context"
	"slices"
	"sync"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Handler receives the changes of the objects of a kind. Any of its functions may be
// nil.
//
// The calls to one handler are sequential and in order. They come from a goroutine of
// their own and outside all locks, so a slow handler delays no other. A handler first
// gets an Add for every present object. A handler that falls far behind, and every
// handler after a full list, gets a difference instead of the changes that it missed:
// one Update for an object that changed several times, and nothing for an object that
// came and went. No call is made for an object that is unchanged.
type Handler struct {
	Add    func(obj *schema.Object)
	Update func(before, after *schema.Object)
	Delete func(last *schema.Object)
	// Synced, if it is set, is called once, after the first objects were added.
	Synced func()
}

type registration struct {
	scope   store.Scope
	handler Handler
}

// Handle registers a handler for a kind, or for all kinds if kind is nil. It may be
// called before Run or while Run runs. No handler is called after Run has returned.
func (c *Cache) Handle(kind *schema.Kind, h Handler) {
	r := registration{store.Scope{Kind: kind}, h}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running != nil {
		c.running(r)
		return
	}
	c.handlers = append(c.handlers, r)
}

func (c *Cache) startHandlers(run func(registration)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = run
	for _, r := range c.handlers {
		run(r)
	}
	c.handlers = nil
}

// serve keeps one handler current. At first, and whenever the change log no longer
// reaches back to the handler's state, it sends the difference. In between it sends the
// changes themselves.
func (c *Cache) serve(ctx context.Context, r registration) error {
	if err := c.WaitForSync(ctx); err != nil {
		return ctx.Err()
	}
	found := subscriber{handler: r.handler, known: map[schema.Key]*schema.Object{}}
	synced := sync.OnceFunc(func() {
		if r.handler.Synced != nil {
			r.handler.Synced()
		}
	})
	for ctx.Err() == nil {
		items, later, err := c.viewAndLater(ctx, r.scope)
		if err != nil {
			return err
		}
		found.difference(items)
		synced()
		for b := range later.Batches() {
			for _, ev := range b.Events {
				found.change(ev)
			}
		}
	}
	return ctx.Err()
}

// viewAndLater returns the cached objects in scope and a watch over later changes, both
// started at the same moment. If a full list went back to an older revision between the
// two, the watch would wait beyond it forever.
func (c *Cache) viewAndLater(ctx context.Context, scope store.Scope) ([]*schema.Object, store.Watcher, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	later, err := c.changes.Watch(ctx, scope, c.changes.Revision())
	return withoutStatuses(c.index.List(scope)), later, err
}

// subscriber is a handler and the objects that it knows.
type subscriber struct {
	handler Handler
	known   map[schema.Key]*schema.Object
}

// difference reports deleted objects, then new and changed ones, each in list order,
// because the order of the changes is unknown.
func (s *subscriber) difference(items []*schema.Object) {
	present := make(map[schema.Key]bool, len(items))
	for _, obj := range items {
		present[obj.Key()] = true
	}
	var gone []*schema.Object
	for key, obj := range s.known {
		if !present[key] {
			gone = append(gone, obj)
		}
	}
	slices.SortFunc(gone, store.Compare)
	for _, obj := range gone {
		s.change(store.Event{Type: store.Deleted, Object: obj})
	}
	for _, obj := range items {
		s.change(store.Event{Type: store.Modified, Object: obj})
	}
}

// change calls the function of the handler that matches an event and what it knows. A
// change of a status is no change of the object.
func (s *subscriber) change(ev store.Event) {
	key := ev.Object.Key()
	ev.Object = ev.Object.WithoutStatus()
	before, known := s.known[key]
	switch {
	case ev.Type == store.Deleted && !known:
	case ev.Type == store.Deleted:
		delete(s.known, key)
		if s.handler.Delete != nil {
			s.handler.Delete(ev.Object)
		}
	case known && sameVersion(before, ev.Object):
	default:
		s.known[key] = ev.Object
		s.appear(before, ev.Object)
	}
}

func (s *subscriber) appear(before, after *schema.Object) {
	switch {
	case before == nil && s.handler.Add != nil:
		s.handler.Add(after)
	case before != nil && s.handler.Update != nil:
		s.handler.Update(before, after)
	}
}
