package cache

import (
	"context"
	"slices"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Handler is told of the objects of a kind. Any of its functions may be nil.
//
// The calls to one handler come one at a time and in order, from a goroutine of
// its own and outside all locks; a slow handler holds up nobody else. It first
// gets an Add for everything that is there. One that stays far behind, and all
// after a relist, are told what they missed as a difference: an object that
// changed often gets one Update, one that came and went gets nothing. No call
// is made for an object that is the same as before.
type Handler struct {
	Add    func(obj *schema.Object)
	Update func(before, after *schema.Object)
	Delete func(last *schema.Object)
}

type registration struct {
	scope   store.Scope
	handler Handler
}

// Handle registers a handler for a kind, nil for all kinds, before Run or
// while it runs. No call is made after Run has returned.
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

// serve brings one handler from what it knows to what is, over and over: by
// the difference at first and whenever the window of changes no longer reaches
// back to it, by the changes themselves in between.
func (c *Cache) serve(ctx context.Context, r registration) error {
	if err := c.WaitForSync(ctx); err != nil {
		return ctx.Err()
	}
	told := subscriber{handler: r.handler, known: map[schema.Key]*schema.Object{}}
	for ctx.Err() == nil {
		items, later, err := c.viewAndLater(ctx, r.scope)
		if err != nil {
			return err
		}
		told.difference(items)
		for b := range later.Batches() {
			for _, ev := range b.Events {
				told.change(ev)
			}
		}
	}
	return ctx.Err()
}

// viewAndLater is what the cache holds in a scope and a watch over what comes
// after, begun in the same moment. Between the two a relist could go back to
// an older revision, and the watch would wait beyond it without ever knowing.
func (c *Cache) viewAndLater(ctx context.Context, scope store.Scope) ([]*schema.Object, store.Watcher, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	later, err := c.changes.Watch(ctx, scope, c.changes.Revision())
	return c.index.List(scope), later, err
}

// subscriber is one handler and what it has been told.
type subscriber struct {
	handler Handler
	known   map[schema.Key]*schema.Object
}

// difference tells what is gone, then what is new or changed, each in the order
// of lists: when it happened is not known.
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

// change tells of one event, in the words that fit what is known.
func (s *subscriber) change(ev store.Event) {
	key := ev.Object.Key()
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
