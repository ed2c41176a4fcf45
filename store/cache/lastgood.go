package cache

import (
	"context"
	"log/slog"
	"strconv"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// A value that is damaged while the server runs is no object for readers. Proxies keep
// following the last good state of the object, because removing a rule might allow
// traffic that the rule denied.

// lastGood holds the last good states of objects whose values cannot be read now.
type lastGood struct {
	objects map[schema.Key]*schema.Object
	// since is the revision at which a state was last dropped. Changes from before it
	// do not lead to the present state.
	since int64
}

// LastGood returns the last good state of an object whose stored value cannot be read,
// which proxies follow instead. It returns nil if there is none.
func (c *Cache) LastGood(key schema.Key) *schema.Object {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.good.objects[key]
}

// keep saves the states that damaged values replaced.
func (g *lastGood) keep(events []store.Event, readings []store.Reading) {
	for _, ev := range events {
		if ev.Type != store.Deleted || ev.Previous == nil {
			continue
		}
		for _, r := range readings {
			if !r.Mended && r.Key == ev.Object.Key() && strconv.FormatInt(r.Revision, 10) == ev.Object.Meta.ResourceVersion {
				g.put(ev.Previous.WithoutStatus())
			}
		}
	}
}

func (g *lastGood) put(o *schema.Object) {
	if g.objects == nil {
		g.objects = map[schema.Key]*schema.Object{}
	}
	g.objects[o.Key()] = o
}

// dropMendedLocked drops the states whose values are readable again or removed.
func (c *Cache) dropMendedLocked() {
	for key := range c.good.objects {
		if _, damaged := c.unreadable.Of(key); !damaged || c.index.Get(key) != nil {
			delete(c.good.objects, key)
			c.good.since = c.changes.Revision()
		}
	}
}

// keepListedLocked saves the last good states of the unreadable values in a list that
// replaces the copy.
func (c *Cache) keepListedLocked(unreadable []store.Unreadable) {
	before := c.good
	c.good = lastGood{since: before.since}
	for _, u := range unreadable {
		known := c.index.Get(u.Key).WithoutStatus()
		if known == nil {
			known = before.objects[u.Key]
		}
		if known != nil {
			c.good.put(known)
		}
	}
}

// reportLostLocked logs the values that have no good state for proxies to follow.
func (c *Cache) reportLostLocked() {
	for _, u := range c.unreadable.In(store.Scope{}) {
		if c.good.objects[u.Key] != nil {
			continue
		}
		c.log.LogAttrs(context.Background(), slog.LevelError, "the mesh is served without an object: its stored value cannot be read, and no good state of it is known",
			slog.String("object", u.Key.String()), slog.String("place", u.Place), slog.String("error", u.Why))
	}
}
